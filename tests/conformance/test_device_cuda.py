"""The CUDA runtime against the calls of CUDA as a simulated device answers them.

What a GPU would do with these calls only a GPU can show (tests/impl/test_transfer_gpu.py). Here it
is shown that the calls are the right ones: the same random histories, every edge in place.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvproof.conformance.device.cuda import COMPUTE, EmulatedCuda
from kvproof.conformance.device.device import SimulatedDevice
from kvproof.conformance.device.histories import MIXED, SMALL, draw, one_group
from kvproof.conformance.device.play import play
from kvproof.conformance.device.policy import Early, Late, Priorities
from kvproof.impl.transfer.cuda import CudaRuntime
from kvproof.impl.transfer.engine import Ended, TransferEngine
from kvproof.impl.transfer.plan import CopyPlan
from kvproof.impl.transfer.runtime import TransferError
from tests.impl.transfer_world import World, jobs, worlds


def runtime_on(device: SimulatedDevice, batched: bool = True) -> CudaRuntime:
    return CudaRuntime(0, lambda: COMPUTE, api=EmulatedCuda(device, batched))


@pytest.mark.parametrize("batched", [True, False])
def test_random_histories_have_no_race_and_the_right_bytes(batched: bool) -> None:
    for seed in range(150):
        device = SimulatedDevice(Priorities(seed))
        outcome = play(draw(seed, 14), MIXED, device, lambda one: runtime_on(one, batched))
        assert ([str(race) for race in outcome.races], outcome.wrong) == ([], []), seed
        assert set(outcome.live.values()) == {0}
        assert {end.error for end in outcome.told} <= {None}


@given(st.data())
@settings(max_examples=30)
def test_random_geometries_there_and_back(data: st.DataObject) -> None:
    world: World = data.draw(worlds(most_tensors=16))
    device = SimulatedDevice(Priorities(data.draw(st.integers(0, 2**32 - 1))))
    device.memory.add("the KV cache", world.device)
    device.memory.add("the tier", world.host)
    cache, tier = world.device.copy(), world.host.copy()
    engine = TransferEngine(runtime_on(device), world.layout)
    for number in range(3):
        moved, store = data.draw(jobs(world)), data.draw(st.booleans())
        (engine.submit_store if store else engine.submit_load)(number, moved)
        world.copy_dumbly(cache, tier, moved, store)
    engine.wait(range(3))
    assert [end.error for end in engine.ended()] == [None] * 3
    engine.shutdown()
    assert device.races == []
    assert world.device.tobytes() == cache.tobytes()
    assert world.host.tobytes() == tier.tobytes()


class Scene:
    """A store of two blocks, then a load of one of them, on an early device."""

    def __init__(self, batched: bool = True, refused: frozenset[str] = frozenset()) -> None:
        self.device = SimulatedDevice(Early())
        self.cache = np.arange(SMALL.cache_bytes, dtype=np.uint8)
        self.tier = np.zeros(SMALL.tier_bytes, np.uint8)
        self.device.memory.add("the KV cache", self.cache)
        self.device.memory.add("the tier", self.tier)
        self.api = EmulatedCuda(self.device, batched)
        self.runtime = CudaRuntime(0, lambda: COMPUTE, api=self.api)
        self.api.refused |= refused

    def play(self) -> list[Ended]:
        layout = SMALL.layout(self.cache.ctypes.data, self.tier.ctypes.data)
        engine = TransferEngine(self.runtime, layout)
        engine.submit_store(1, one_group([3, 1], [0, 2]))
        engine.submit_load(2, one_group([0], [2]))
        engine.wait([1, 2])
        ended = engine.ended()
        engine.shutdown()
        return ended


def test_a_job_is_a_batch_and_takes_its_time() -> None:
    scene = Scene()
    assert scene.runtime.batches
    assert scene.play() == [Ended(1, 8, 2.0), Ended(2, 4, 2.0)]
    assert scene.cache[:4].tolist() == [4, 5, 6, 7]
    assert scene.tier.tolist() == [12, 13, 14, 15, 0, 0, 0, 0, 4, 5, 6, 7]
    assert scene.api.calls.count("cuMemcpyBatchAsync") == 2
    assert "cudaMemcpyAsync" not in scene.api.calls


def test_an_old_driver_gets_one_copy_after_the_other() -> None:
    scene = Scene(batched=False)
    assert not scene.runtime.batches
    assert [(end.job, end.size, end.error) for end in scene.play()] == [(1, 8, None), (2, 4, None)]
    assert scene.tier.tolist() == [12, 13, 14, 15, 0, 0, 0, 0, 4, 5, 6, 7]
    assert scene.api.calls.count("cudaMemcpyAsync") == 3


def test_a_driver_that_does_not_know_the_batched_copy_is_an_old_driver() -> None:
    api = EmulatedCuda(SimulatedDevice(Early()))
    api.refused.add("cudaGetDriverEntryPointByVersion")
    assert not CudaRuntime(0, lambda: COMPUTE, api=api).batches


def test_memory_that_cannot_be_pinned_is_copied_one_by_one() -> None:
    scene = Scene(refused=frozenset({"cudaHostRegister"}))
    assert [(end.size, end.error) for end in scene.play()] == [(8, None), (4, None)]
    assert not scene.runtime.batches
    assert scene.api.calls.count("cudaMemcpyAsync") == 3
    assert "cudaHostUnregister" not in scene.api.calls


def test_what_the_driver_refuses_is_a_result() -> None:
    scene = Scene(refused=frozenset({"cuMemcpyBatchAsync"}))
    refusal = "a batch of {} copies was refused: CUDA driver error 1"
    assert [end.error for end in scene.play()] == [refusal.format(2), refusal.format(1)]
    assert set(scene.device.live.values()) == {0}
    scene = Scene(refused=frozenset({"cudaEventQuery"}))
    layout = SMALL.layout(scene.cache.ctypes.data, scene.tier.ctypes.data)
    engine = TransferEngine(scene.runtime, layout)
    engine.submit_store(1, one_group([3], [0]))
    assert [end.error for end in engine.ended()] == ["cudaEventQuery failed: 1"]
    engine.shutdown()


def test_no_gpu_and_no_such_gpu_are_one_line() -> None:
    device = SimulatedDevice(Late())
    with pytest.raises(TransferError) as refused:
        CudaRuntime(1, lambda: COMPUTE, api=EmulatedCuda(device))
    assert str(refused.value) == "there is no CUDA device 1: 1 are found"
    api = EmulatedCuda(device)
    api.refused.add("cudaGetDeviceCount")
    with pytest.raises(TransferError) as refused:
        CudaRuntime(0, lambda: COMPUTE, api=api)
    assert str(refused.value) == "cudaGetDeviceCount failed: 1"


def test_loads_of_small_pages_go_to_the_kernel_and_stores_do_not() -> None:
    class Kernel:
        def __init__(self) -> None:
            self.launched: list[tuple[int, int]] = []

        def takes(self, plan: CopyPlan) -> bool:
            return plan.largest < 8

        def __call__(self, stream: int, plan: CopyPlan) -> object:
            self.launched.append((stream, plan.count))
            return object()

    kernel = Kernel()
    scene = Scene()
    scene.runtime = CudaRuntime(0, lambda: COMPUTE, kernel, api=scene.api)
    assert [end.error for end in scene.play()] == [None, None]
    assert [count for _, count in kernel.launched] == [1]
    assert scene.api.calls.count("cuMemcpyBatchAsync") == 1
