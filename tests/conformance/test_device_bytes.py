"""The device itself: random geometries there and back under every policy, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvproof.conformance.device.device import SimulatedDevice
from kvproof.conformance.device.edges import random_history
from kvproof.conformance.device.histories import (
    SMALL,
    Load,
    Move,
    Store,
    Told,
    Write,
    draw,
    one_group,
)
from kvproof.conformance.device.play import play
from kvproof.conformance.device.policy import Early, Late, Policy, Priorities, every_order
from kvproof.impl.transfer.engine import TransferEngine
from kvproof.impl.transfer.pieces import pieces
from kvproof.impl.transfer.plan import CopyPlan, Grid
from kvproof.impl.transfer.runtime import Reads, TransferError
from kvproof.model.functions import piece_place, slots_filled
from tests.impl.transfer_world import World, jobs, worlds


@given(st.data())
@settings(max_examples=60)
def test_jobs_do_in_any_order_what_they_do_one_after_the_other(data: st.DataObject) -> None:
    world: World = data.draw(worlds())
    policy: Policy = data.draw(
        st.one_of(
            st.builds(Early), st.builds(Late), st.builds(Priorities, st.integers(0, 2**32 - 1))
        )
    )
    device = SimulatedDevice(policy)
    device.memory.add("the KV cache", world.device)
    device.memory.add("the tier", world.host)
    cache, tier = world.device.copy(), world.host.copy()
    engine = TransferEngine(device, world.layout)
    sizes = {}
    for number in range(data.draw(st.integers(1, 5))):
        moved, store = data.draw(jobs(world)), data.draw(st.booleans())
        (engine.submit_store if store else engine.submit_load)(number, moved)
        sizes[number] = world.copy_dumbly(cache, tier, moved, store)
    engine.wait(list(sizes))
    ended = engine.ended()
    engine.shutdown()
    assert {end.job: (end.size, end.error) for end in ended} == {
        number: (size, None) for number, size in sizes.items()
    }
    assert device.races == []
    assert world.device.tobytes() == cache.tobytes()
    assert world.host.tobytes() == tier.tobytes()
    assert set(device.live.values()) == {0}


def test_early_is_at_once_and_late_is_not_before_it_must() -> None:
    for policy, wanted in ((Early(), [1]), (Late(), [])):
        device = SimulatedDevice(policy)
        cache = np.arange(SMALL.cache_bytes, dtype=np.uint8)
        tier = np.zeros(SMALL.tier_bytes, np.uint8)
        device.memory.add("the KV cache", cache)
        device.memory.add("the tier", tier)
        engine = TransferEngine(device, SMALL.layout(cache.ctypes.data, tier.ctypes.data))
        engine.submit_store(1, one_group([1], [0]))
        assert [end.job for end in engine.ended()] == wanted
        assert tier[:4].tolist() == ([4, 5, 6, 7] if wanted else [0] * 4)
        engine.shutdown()
        assert tier[:4].tolist() == [4, 5, 6, 7]


def test_every_order_of_a_small_history_is_played_once() -> None:
    def run(policy: Policy) -> tuple[int, ...]:
        order: list[int] = []
        device = SimulatedDevice(policy)
        cache = np.zeros(SMALL.cache_bytes, np.uint8)
        zone = device.memory.add("the KV cache", cache)
        device.memory.add("the tier", np.zeros(SMALL.tier_bytes, np.uint8))
        device.launch("one", 0, 0, lambda: order.append(1), lambda: order.append(2))
        device.host_does("two", 0, 0, lambda: order.append(3))
        while device.progress():
            pass
        assert zone.first > 0
        return tuple(order)

    # A launch, then the host: the read may come before it, the write as well, or neither.
    assert set(every_order(run, 100)) == {(1, 2, 3), (1, 3, 2), (3, 1, 2)}
    assert len(list(every_order(run, 2))) == 2


def test_a_race_with_the_model_that_no_engine_can_prevent_is_told_though_bytes_are_right() -> None:
    history: list[Move] = [Store(1, one_group([0], [0])), Write((0,)), Load(2, one_group([1], [0]))]
    outcome = play(history, SMALL, SimulatedDevice(Early()))
    assert [str(race) for race in outcome.races] == [
        "store 1 reads and the model's write of block 0 writes 4 bytes of the KV cache from 0;"
        " missing: the end of store 1 before the model's write of block 0 writes"
    ]
    assert outcome.wrong == []
    outcome = play(history, SMALL, SimulatedDevice(Late()))
    assert outcome.wrong == ["cache", "tier"]


def test_being_told_orders_what_comes_after_it() -> None:
    history: list[Move] = [Store(1, one_group([0], [0])), Told((1,)), Write((0,))]
    for policy in (Early(), Late(), Priorities(0)):
        outcome = play(history, SMALL, SimulatedDevice(policy))
        assert (outcome.races, outcome.wrong) == ([], [])
        assert [(end.job, end.size, end.error) for end in outcome.told] == [(1, 4, None)]


def test_a_seed_is_a_history_and_an_order() -> None:
    one, other = draw(5, 14), draw(5, 14)
    assert str(one) == str(other)
    assert str(draw(6, 14)) != str(one)
    assert random_history(5) == []


def test_memory_that_nobody_made_known_is_refused() -> None:
    device = SimulatedDevice(Early())
    ids = np.zeros(1, np.int64)
    plan = CopyPlan((Grid(ids, ids, ids, ids, ids + 8, 8),), 8)
    with pytest.raises(ValueError, match="8 bytes at 0 lie in no zone"):
        device.copy(device.stream("kv-store"), plan, Reads.IN_STREAM_ORDER)
    with pytest.raises(TransferError, match="the event was never recorded"):
        device.done(device.event())


@given(st.data())
@settings(max_examples=100)
def test_pieces_go_where_the_verified_functions_say(data: st.DataObject) -> None:
    per = data.draw(st.integers(1, 8))
    groups = data.draw(
        st.lists(st.tuples(st.integers(0, 20), st.integers(0, 30)), min_size=1, max_size=8)
    )
    sizes, firsts = [size for size, _ in groups], [first for _, first in groups]
    filled = [slots_filled(first, size, per) for size, first in groups]
    slots = list(range(100, 100 + sum(filled)))
    found = {one.group: one for one in pieces(range(sum(sizes)), sizes, firsts, slots, per)}
    used = 0
    for group, (size, first) in enumerate(groups):
        wanted = [piece_place(first, number, per) for number in range(size)]
        if wanted:
            places = zip(found[group].slots.tolist(), found[group].offsets.tolist(), strict=True)
            assert list(places) == [(slots[used + slot], offset) for slot, offset in wanted]
        used += filled[group]
