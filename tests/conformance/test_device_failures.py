"""One call of the runtime fails, whichever: one job is lost at most, and nothing is left behind."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from kvproof.conformance.device.failing import FailingDevice
from kvproof.conformance.device.histories import SMALL, one_group
from kvproof.conformance.device.policy import Early, Late, Policy, Priorities
from kvproof.impl.transfer.engine import Ended, TransferEngine
from kvproof.impl.transfer.runtime import TransferError

POLICIES: dict[str, Callable[[], Policy]] = {
    "early": Early,
    "late": Late,
    "random": lambda: Priorities(1),
}

# job -> (is a store, block, slot): the second store and the second load share a slot, and no other
# two share anything.
JOBS = {1: (True, 0, 0), 2: (True, 1, 1), 3: (False, 2, 2), 4: (False, 3, 1)}


class World:
    """Four jobs on a device that fails."""

    def __init__(self, policy: Policy, at: int | None, halfway: bool = False) -> None:
        self.device = FailingDevice(policy, at, halfway)
        self.cache = np.arange(SMALL.cache_bytes, dtype=np.uint8)
        self.tier = np.arange(100, 100 + SMALL.tier_bytes, dtype=np.uint8)
        self.device.memory.add("the KV cache", self.cache)
        self.device.memory.add("the tier", self.tier)
        self.told: list[Ended] = []

    def run(self) -> None:
        layout = SMALL.layout(self.cache.ctypes.data, self.tier.ctypes.data)
        engine = TransferEngine(self.device, layout)
        for job, (store, block, slot) in JOBS.items():
            submit = engine.submit_store if store else engine.submit_load
            submit(job, one_group([block], [slot]))
        engine.wait([2])
        self.told += engine.ended()
        while self.device.progress():
            self.told += engine.ended()
        self.told += engine.ended()
        engine.shutdown()

    def block(self, block: int) -> list[int]:
        return list(map(int, self.cache[4 * block : 4 * block + 4]))

    def slot(self, slot: int) -> list[int]:
        return list(map(int, self.tier[4 * slot : 4 * slot + 4]))


def calls(policy: Policy) -> list[str]:
    world = World(policy, at=None)
    world.run()
    assert world.device.live == {"streams": 0, "events": 0, "pins": 0, "descriptors": 0}
    told = sorted((end.job, end.size, end.error) for end in world.told)
    assert told == [(job, 4, None) for job in JOBS]
    return world.device.calls


@pytest.mark.parametrize("name", list(POLICIES))
@pytest.mark.parametrize("halfway", [False, True])
def test_a_call_that_fails_costs_one_job_at_most(name: str, halfway: bool) -> None:
    made = calls(POLICIES[name]())
    assert {"stream", "event", "record", "order", "copy", "done", "wait", "drain"} <= set(made)
    for at, failing in enumerate(made):
        world = World(POLICIES[name](), at, halfway)
        try:
            world.run()
        except TransferError as error:
            # Without its streams and its first event there is no engine.
            assert str(error) == f"call {at} failed: {failing}"
            assert failing in ("event", "stream")
            assert at < 3
            assert set(world.device.live.values()) == {0}
            continue
        lost = {end.job: end.error for end in world.told if end.error is not None}
        assert sorted(end.job for end in world.told) == [1, 2, 3, 4], (at, failing)
        assert len(lost) <= 1, (at, failing)
        assert set(lost.values()) <= {f"call {at} failed: {failing}"}
        harmless = {"seconds", "pin", "unpin", "destroy_event", "destroy_stream", "drain"}
        assert bool(lost) == (failing not in harmless), (at, failing)
        leaked = {"destroy_event": "events", "destroy_stream": "streams", "unpin": "pins"}
        assert {what for what, count in world.device.live.items() if count} == (
            {leaked[failing]} if failing in leaked else set()
        ), (at, failing)
        assert world.device.races == []
        if 1 not in lost:
            assert world.slot(0) == [0, 1, 2, 3]
        if 2 not in lost:
            assert world.slot(1) == [4, 5, 6, 7]
        if 3 not in lost:
            assert world.block(2) == [108, 109, 110, 111]
        if not {2, 4} & lost.keys():
            assert world.block(3) == [4, 5, 6, 7]
        assert world.block(0) == [0, 1, 2, 3]
        assert world.slot(2) == [108, 109, 110, 111]


def test_a_tier_that_cannot_be_pinned_is_copied_all_the_same() -> None:
    made = calls(Late())
    world = World(Late(), made.index("pin"))
    layout = SMALL.layout(world.cache.ctypes.data, world.tier.ctypes.data)
    engine = TransferEngine(world.device, layout)
    assert engine.unpinned == f"call {made.index('pin')} failed: pin"
    engine.submit_store(1, one_group([1], [0]))
    engine.wait([1])
    assert [(end.job, end.size, end.error) for end in engine.ended()] == [(1, 4, None)]
    engine.shutdown()
    assert world.slot(0) == [4, 5, 6, 7]


def test_a_failed_copy_that_is_half_under_way_is_told_only_when_it_is_over() -> None:
    made = calls(Late())
    world = World(Late(), made.index("copy"), halfway=True)
    layout = SMALL.layout(world.cache.ctypes.data, world.tier.ctypes.data)
    engine = TransferEngine(world.device, layout)
    engine.submit_store(1, one_group([1], [0]))
    assert engine.ended() == []
    assert world.device.progress() and world.device.progress()
    assert [(end.job, end.size, end.error) for end in engine.ended()] == [
        (1, 0, f"call {made.index('copy')} failed: copy")
    ]
    engine.shutdown()
    assert set(world.device.live.values()) == {0}


def test_times_are_the_device_s_own_and_missing_where_it_cannot_tell() -> None:
    world = World(Early(), None)
    world.run()
    assert [end.seconds for end in world.told] == [2.0] * len(JOBS)
    made = calls(Early())
    world = World(Early(), made.index("seconds"))
    world.run()
    assert [end.seconds for end in world.told] == [None, 2.0, 2.0, 2.0]
