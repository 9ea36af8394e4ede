"""Copies to and from a GPU: kvproof's, vLLM's batched copy, and one large asynchronous copy.

This needs PyTorch for CUDA, NVIDIA's bindings and a GPU; see docs/gpu.md.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import numpy as np
import torch

from kvproof.impl.transfer.cuda import CudaRuntime
from kvproof.impl.transfer.engine import TransferEngine
from kvproof.impl.transfer.memory import Part, Region, Tier
from kvproof.impl.transfer.pieces import pieces
from kvproof.impl.transfer.plan import plan_load, plan_store
from kvproof.impl.transfer.runtime import TransferError

TENSORS = 4
"""KV caches, each with pages of its own."""

Calls = dict[str, Callable[[], object]]


class OnGpu(msgspec.Struct, frozen=True):
    """GB/s of one way or both at once.

    ``release`` is vLLM's batched copy of the same addresses; None where it is not installed.
    """

    way: str
    page: int
    chunk: int
    kvproof: float
    release: float | None
    large: float


def missing() -> str | None:
    """Why there is nothing to measure, in one line; None when there is."""
    if not torch.cuda.is_available():
        return "PyTorch finds no CUDA device"
    try:
        CudaRuntime(0, lambda: 0)
    except TransferError as error:
        return str(error)
    return None


class Copies:
    """One job of ``size`` bytes for stores and one for loads, on memory of their own."""

    def __init__(self, page: int, blocks_per_chunk: int, size: int) -> None:
        self.page, self.chunk = page, page * blocks_per_chunk
        count = max(1, size // self.chunk // TENSORS)
        blocks = 2 * count * blocks_per_chunk
        self._caches = [
            torch.ones((blocks, page), dtype=torch.int8, device="cuda") for _ in range(TENSORS)
        ]
        regions = [Region(cache.data_ptr(), blocks, page, page) for cache in self._caches]
        parts = [[Part(number, page) for number in range(TENSORS)]]
        self.tier = Tier(regions, parts, 2 * count, blocks_per_chunk)
        self._runtime = CudaRuntime(0, lambda: torch.cuda.current_stream().cuda_stream, _kernel())
        self.engine = TransferEngine(self._runtime, self.tier.layout)
        order, slots = np.random.default_rng(0).permutation(blocks), np.arange(2 * count)
        half = blocks // 2
        self._stored = pieces(order[:half], [half], [0], slots[:count], blocks_per_chunk)
        self._loaded = pieces(order[half:], [half], [0], slots[count:], blocks_per_chunk)
        self.bytes = count * self.chunk * TENSORS
        self._large = torch.ones(self.bytes, dtype=torch.int8, device="cuda")
        self._large_host = torch.ones(self.bytes, dtype=torch.int8, pin_memory=True)
        self._streams = [torch.cuda.Stream(), torch.cuda.Stream()]
        self._job = 0

    def close(self) -> None:
        """Give everything back."""
        self.engine.shutdown()

    def kvproof(self, ways: Sequence[str]) -> None:
        """Submit, wait, be told; planning is part of it."""
        for way in ways:
            self._job += 1
            store = way == "store"
            submit = self.engine.submit_store if store else self.engine.submit_load
            submit(self._job, self._stored if store else self._loaded)
        self.engine.wait([self._job - number for number in range(len(ways))])
        for end in self.engine.ended():
            if end.error is not None:
                raise TransferError(end.error)

    def large(self, ways: Sequence[str]) -> None:
        """One asynchronous copy a way."""
        for way, stream in zip(ways, self._streams, strict=False):
            with torch.cuda.stream(stream):
                if way == "store":
                    self._large_host.copy_(self._large, non_blocking=True)
                else:
                    self._large.copy_(self._large_host, non_blocking=True)
        torch.cuda.synchronize()

    def release(self, batched: Any) -> Callable[[Sequence[str]], None]:
        """vLLM's batched copy of the same pages; addresses are computed beforehand."""
        plans = {
            "store": plan_store(self.tier.layout, self._stored),
            "load": plan_load(self.tier.layout, self._loaded),
        }
        arrays = {way: self._tensors(plan.arrays()) for way, plan in plans.items()}

        def run(ways: Sequence[str]) -> None:
            for way, stream in zip(ways, self._streams, strict=False):
                with torch.cuda.stream(stream):
                    batched(*arrays[way], is_src_access_order_any=way == "load")
            torch.cuda.synchronize()

        return run

    def _tensors(self, batch: Any) -> list[Any]:
        return [torch.from_numpy(one) for one in (batch.sources, batch.targets, batch.sizes)]


def _kernel() -> Any:
    try:
        from kvproof.impl.transfer.cuda_kernel import SmallPages
    except ImportError:
        return None
    return SmallPages(0)


def _batched() -> Any:
    """vLLM's batched copy, if a vLLM for CUDA is there."""
    try:
        from vllm import _custom_ops
    except ImportError:
        return None
    known = hasattr(getattr(torch.ops, "_C_cache_ops", None), "swap_blocks_batch")
    return _custom_ops.swap_blocks_batch if known else None


@contextmanager
def _copies(page: int, per: int, size: int) -> Iterator[Copies]:
    copies = Copies(page, per, size)
    try:
        yield copies
    finally:
        copies.close()


def measure(page: int, per: int, size: int, times: int) -> list[OnGpu]:
    """Stores, loads, and both at once."""
    batched = _batched()
    found = []
    with _copies(page, per, size) as copies:
        for ways in (["store"], ["load"], ["store", "load"]):
            timed: dict[str, Callable[[Sequence[str]], None]] = {
                "kvproof": copies.kvproof,
                "large": copies.large,
            }
            if batched is not None:
                timed["release"] = copies.release(batched)
            taken = _in_turns(timed, ways, times)
            speed = {name: copies.bytes * len(ways) / s / 1e9 for name, s in taken.items()}
            found.append(
                OnGpu(
                    " and ".join(ways),
                    page,
                    copies.chunk,
                    speed["kvproof"],
                    speed.get("release"),
                    speed["large"],
                )
            )
    return found


def _in_turns(
    timed: dict[str, Callable[[Sequence[str]], None]], ways: Sequence[str], times: int
) -> dict[str, float]:
    """Median seconds by the clock: the work is the GPU's, not this thread's."""
    taken: dict[str, list[float]] = {name: [] for name in timed}
    for turn in range(times + 1):
        for name, call in timed.items():
            torch.cuda.synchronize()
            began = time.perf_counter()
            call(ways)
            if turn:  # the first one warms up
                taken[name].append(time.perf_counter() - began)
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


def table(size: int, times: int) -> list[OnGpu]:
    """Pages of 4 to 64 KiB, and chunks of 512 KiB and more."""
    shapes = [(4, 1), (8, 1), (16, 1), (32, 1), (64, 1), (64, 8), (512, 1), (2048, 1)]
    return [row for page, per in shapes for row in measure(page << 10, per, size, times)]
