"""The CUDA runtime on a GPU: exact bytes both ways, order, times. None of it runs without one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from kvproof.impl.transfer.cuda import CudaRuntime
from kvproof.impl.transfer.engine import TransferEngine
from kvproof.impl.transfer.memory import Part, Region, Tier
from kvproof.impl.transfer.pieces import pieces
from kvproof.impl.transfer.plan import plan_load

pytestmark = pytest.mark.gpu

BLOCKS, SLOTS, PER = 64, 40, 2


class Scene:
    """Two KV caches of pages with padding, each byte of them random, and a tier."""

    def __init__(self, page: int, kernel: bool = False) -> None:
        import torch

        self.torch = torch
        padded = page + 64
        generator = torch.Generator(device="cuda").manual_seed(0)
        self.caches = [
            torch.randint(
                -128, 128, (BLOCKS, padded), dtype=torch.int8, device="cuda", generator=generator
            )
            for _ in range(2)
        ]
        regions = [Region(cache.data_ptr(), BLOCKS, page, padded) for cache in self.caches]
        self.tier = Tier(regions, [[Part(0, page), Part(1, page)]], SLOTS, PER)
        small: Any = None
        if kernel:
            from kvproof.impl.transfer.cuda_kernel import SmallPages

            small = SmallPages(0)
        self.runtime = CudaRuntime(0, lambda: torch.cuda.current_stream().cuda_stream, small)
        self.engine = TransferEngine(self.runtime, self.tier.layout)
        self.page = page

    def seen(self) -> list[Any]:
        self.torch.cuda.synchronize()
        return [cache.cpu().numpy() for cache in self.caches]


@pytest.fixture(params=[(4096, False), (4096, True), (65536, False), (1 << 20, False)])
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    scene = Scene(*request.param)
    yield scene
    scene.engine.shutdown()


def test_the_tier_is_pinned_and_copies_go_in_batches(scene: Scene) -> None:
    assert scene.engine.unpinned is None
    assert scene.runtime.pinned


def test_what_was_stored_comes_back_in_other_blocks_byte_for_byte(scene: Scene) -> None:
    before = scene.seen()
    order = np.random.default_rng(1).permutation(BLOCKS)
    there, back = order[:31], order[31:62]
    slots = np.random.default_rng(2).permutation(SLOTS)[:16]
    scene.engine.submit_store(1, pieces(there, [31], [1], slots, PER))
    scene.engine.submit_load(2, pieces(back, [31], [1], slots, PER))
    scene.engine.wait([1, 2])
    ended = scene.engine.ended()
    assert [(end.job, end.size, end.error) for end in ended] == [
        (1, 62 * scene.page, None),
        (2, 62 * scene.page, None),
    ]
    assert all(end.seconds is not None and end.seconds > 0 for end in ended)
    for cache, old in zip(scene.seen(), before, strict=True):
        wanted = old.copy()
        wanted[back, : scene.page] = old[there, : scene.page]
        assert cache.tobytes() == wanted.tobytes()


def test_a_store_sees_what_the_model_was_given_to_do_before_it(scene: Scene) -> None:
    torch = scene.torch
    busy = torch.ones((4096, 4096), device="cuda")
    for _ in range(50):
        busy = busy @ busy * 0
    scene.caches[0][3] = 77
    scene.engine.submit_store(1, pieces([3], [1], [0], [5], PER))
    scene.engine.wait([1])
    assert np.unique(scene.tier.chunks[0][5, 0]).tolist() == [77]


def test_a_load_waits_for_what_the_model_was_given_to_do_before_it(scene: Scene) -> None:
    torch = scene.torch
    scene.tier.chunks[0][5, 0] = 66
    busy = torch.ones((4096, 4096), device="cuda")
    for _ in range(50):
        busy = busy @ busy * 0
    scene.caches[0][3].zero_()
    scene.engine.submit_load(1, pieces([3], [1], [0], [5], PER))
    scene.engine.wait([1])
    assert np.unique(scene.seen()[0][3, : scene.page]).tolist() == [66]


def test_a_driver_without_batches_does_the_same() -> None:
    scene = Scene(4096)
    scene.runtime._batched = None
    before = scene.seen()[0]
    scene.engine.submit_store(1, pieces([3, 9], [2], [0], [5], PER))
    scene.engine.wait([1])
    assert [end.error for end in scene.engine.ended()] == [None]
    scene.engine.shutdown()
    stored = scene.tier.chunks[0][5].reshape(2, -1)
    assert stored.tobytes() == before[[3, 9], :4096].tobytes()


def test_small_pages_are_what_the_kernel_takes() -> None:
    from kvproof.impl.transfer.cuda_kernel import SmallPages

    kernel = SmallPages(0)
    moved = pieces(list(range(40)), [40], [0], list(range(20)), PER)
    small, large = Scene(4096), Scene(65536)
    assert kernel.takes(plan_load(small.tier.layout, moved))
    assert not kernel.takes(plan_load(large.tier.layout, moved))
    assert not kernel.takes(plan_load(small.tier.layout, moved[:0]))
    small.engine.shutdown()
    large.engine.shutdown()
