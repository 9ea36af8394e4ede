"""Lookups and loads: what is promised, what is put off, and what is then loaded."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kvproof.impl.scheduler.ledger import Ledger
from kvproof.impl.scheduler.loads import MOST_POLLS, Loads
from kvproof.impl.scheduler.lookup import Finder
from kvproof.impl.scheduler.plan import Transfer
from kvproof.impl.scheduler.recency import Recency
from kvproof.impl.scheduler.request import Limits, RequestState
from kvproof.impl.scheduler.views import Found

from .small_world import (
    SmallRequest,
    SmallTier,
    World,
    chunked,
    full,
    key,
    recurrent,
    sizes,
    window,
)


def resident(world: World, *lasts: int, group: int = 0) -> None:
    world.tier.fill(key(group, last) for last in lasts)


def test_all_but_the_last_token_can_be_loaded() -> None:
    world = World(sizes(full(2)))
    resident(world, 1, 3, 5)
    request = world.add(SmallRequest("a", 6))
    assert world.scheduler.lookup(request, 0) == 5
    assert world.scheduler.lookup(request, 4) == 1
    assert world.scheduler.lookup(request, 0, bound=3) == 3
    assert world.scheduler.lookup(SmallRequest("unknown", 6), 0) == 0


def test_a_client_s_caps_are_kept() -> None:
    world = World(sizes(full(2)))
    resident(world, 1, 3, 5)
    for request_id, limits, tokens in (
        ("a", Limits(max_load=0), 0),
        ("b", Limits(max_load=3), 3),
        ("c", Limits(skip_reading=True), 0),
    ):
        request = world.add(SmallRequest(request_id, 8), limits)
        assert world.scheduler.lookup(request, 0) == tokens


def test_a_load_brings_the_chunks_behind_the_blocks_that_were_handed_out() -> None:
    world = World(sizes(full(2), window(2, 3), recurrent(2)))
    resident(world, 1, 3, 5)
    resident(world, 1, 3, 5, group=1)
    resident(world, 3, 5, group=2)
    request = world.add(SmallRequest("a", 7))
    assert world.scheduler.lookup(request, 2) == 4
    blocks = [[0, 12, 13, 14], [0, 0, 23, 24], [0, 0, 33, 34]]
    world.scheduler.allocated(request, blocks, 4, 2)
    plan = world.step({}, leased=())
    keys = [key(0, 3), key(0, 5), key(1, 5), key(2, 5)]
    assert plan.loads == {0: Transfer("a", [12, 13, 23, 33], [2, 1, 1], [1, 2, 2], keys)}
    assert world.tier.pins == dict.fromkeys(keys, 1)
    world.scheduler.report(0)
    assert world.tier.pins == dict.fromkeys(keys, 0)
    assert not world.scheduler.has_work


def test_a_part_of_an_answer_may_be_taken() -> None:
    world = World(sizes(full(2)))
    resident(world, 1, 3, 5)
    request = world.add(SmallRequest("a", 8))
    assert world.scheduler.lookup(request, 0) == 6
    world.scheduler.allocated(request, [[1, 2]], 4, 0)
    assert world.step({}).loads == {0: Transfer("a", [1, 2], [2], [0], [key(0, 1), key(0, 3)])}


def test_a_load_that_cannot_be_made_is_told() -> None:
    world = World(sizes(full(2)))
    resident(world, 1, 3)
    request = world.add(SmallRequest("a", 5))
    assert world.scheduler.lookup(request, 0) == 4
    world.tier.chunks.clear()
    world.scheduler._ledger.gone([key(0, 1), key(0, 3)])
    world.scheduler.allocated(request, [[1, 2]], 4, 0)
    assert world.scheduler.has_work
    plan = world.step({})
    assert (plan.loads, plan.lost) == ({}, ["a"])
    assert world.scheduler.counts == {"lost_loads": 1}
    assert not world.scheduler.has_work


def test_a_lookup_waits_for_what_is_being_stored_and_no_longer_than_that() -> None:
    world = World(sizes(full(2)))
    first = world.add(SmallRequest("a", 4))
    world.table("a", [1, 2])
    world.step({"a": 4})
    second = world.add(SmallRequest("b", 5))
    assert [world.scheduler.lookup(second, 0) for _ in range(3)] == [None] * 3
    world.scheduler.report(0)
    assert world.scheduler.lookup(second, 0) == 4
    assert first.num_computed_tokens == 4


def test_a_lookup_is_put_off_a_bounded_number_of_times() -> None:
    tier = SmallTier(closed=False)
    tier.fill([key(0, 1)], Found.RETRY)
    world = World(sizes(full(2)), tier)
    request = world.add(SmallRequest("a", 3))
    answers = [world.scheduler.lookup(request, 0) for _ in range(MOST_POLLS + 3)]
    assert answers.index(0) == MOST_POLLS + 1
    assert set(answers[: MOST_POLLS + 1]) == {None}


def test_a_load_is_not_made_twice_at_a_time() -> None:
    for avoid, answer in ((True, None), (False, 2)):
        world = World(sizes(full(2)), avoid_double_loads=avoid)
        resident(world, 1)
        requests = [world.add(SmallRequest(request_id, 3)) for request_id in "ab"]
        assert world.scheduler.lookup(requests[0], 0) == 2
        world.scheduler.allocated(requests[0], [[1, 2]], 2, 0)
        assert world.scheduler.lookup(requests[1], 0) == answer
        world.step({})
        world.scheduler.report(0)
        assert world.scheduler.lookup(requests[1], 0) == 2


def test_a_failed_load_of_a_life_that_has_ended_is_not_remembered() -> None:
    world = World(sizes(full(2)))
    resident(world, 1)
    request = world.add(SmallRequest("a", 3))
    assert world.scheduler.lookup(request, 0) == 2
    world.scheduler.allocated(request, [[1, 2]], 2, 0)
    world.step({})
    world.scheduler.finish("a", 0, [[1, 2]])
    world.step({})
    world.scheduler.report(0, failed=True)
    assert world.scheduler.lookup(world.add(SmallRequest("a", 3)), 0) == 2


def test_keys_whose_load_failed_are_not_loaded_again_for_that_request() -> None:
    world = World(sizes(full(2)))
    resident(world, 1)
    requests = [world.add(SmallRequest(request_id, 3)) for request_id in "ab"]
    world.scheduler.lookup(requests[0], 0)
    world.scheduler.allocated(requests[0], [[1, 2]], 2, 0)
    world.step({})
    world.scheduler.report(0, failed=True)
    assert world.scheduler.lookup(requests[0], 0) == 0
    assert world.scheduler.lookup(requests[1], 0) == 2
    assert world.scheduler.counts == {"failed_loads": 1}


def test_a_reset_gives_up_a_load_that_no_worker_has() -> None:
    world = World(sizes(full(2)))
    resident(world, 1)
    request = world.add(SmallRequest("a", 3))
    world.scheduler.lookup(request, 0)
    world.scheduler.allocated(request, [[1, 2]], 2, 0)
    world.scheduler.reset()
    plan = world.step({})
    assert (plan.loads, plan.lost, plan.flush) == ({}, ["a"], set())


# --- asking again ---------------------------------------------------------------------------------


def test_a_closed_tier_is_not_asked_again_until_something_changes() -> None:
    world = World(sizes(full(2)))
    resident(world, *range(1, 1000, 2))
    request = world.add(SmallRequest("a", 1001))
    assert world.scheduler.lookup(request, 0) == 1000
    assert len(world.tier.asked) == 500
    assert world.scheduler.lookup(request, 0) == 1000
    assert len(world.tier.asked) == 500


def test_what_is_no_hit_is_all_that_is_asked_for_after_an_addition() -> None:
    world = World(sizes(full(2)))
    resident(world, *range(1, 1000, 2))
    request = world.add(SmallRequest("a", 2000))
    assert world.scheduler.lookup(request, 0) == 1000
    asked = len(world.tier.asked)
    other = world.add(SmallRequest("b", 2, of="b"))
    world.table("b", [1])
    world.step({"b": 2})
    world.scheduler.report(0)
    assert world.scheduler.lookup(request, 0) == 1000
    assert world.tier.asked[asked:] == [key(0, 1001)]
    assert other.num_computed_tokens == 2
    # One look found the missing chunk, another the rest: the load asks for all that it takes.
    world.scheduler.allocated(request, [list(range(1, 501))], 1000, 0)
    assert len(world.tier.asked) == asked + 1 + 500
    assert len(world.step({}).loads[1].blocks) == 500


def test_a_lookup_goes_on_where_it_was_put_off_and_the_load_asks_for_all_of_it() -> None:
    world = World(sizes(full(2)))
    resident(world, *range(1, 100, 2))
    world.add(SmallRequest("a", 102))
    world.table("a", list(range(1, 52)))
    world.step({"a": 102})
    request = world.add(SmallRequest("b", 103))
    assert world.scheduler.lookup(request, 0) is None
    asked = len(world.tier.asked)
    world.scheduler.report(0)
    assert world.scheduler.lookup(request, 0) == 102
    # The doubt, and then the lookup from there on.
    assert world.tier.asked[asked:] == [key(0, 101)] * 2
    world.scheduler.allocated(request, [list(range(1, 52))], 102, 0)
    assert world.tier.asked[asked + 2 :] == [key(0, last) for last in range(1, 102, 2)]
    assert len(world.step({}).loads[1].blocks) == 51


def test_an_open_tier_is_asked_every_time() -> None:
    world = World(sizes(full(2)), SmallTier(closed=False))
    resident(world, 1, 3)
    request = world.add(SmallRequest("a", 5))
    for times in (1, 2, 3):
        assert world.scheduler.lookup(request, 0) == 4
        assert len(world.tier.asked) == 2 * times


@settings(max_examples=300)
@given(st.data())
def test_an_answer_is_always_that_of_a_new_lookup(data: st.DataObject) -> None:
    geometry = sizes(full(1), window(1, 3), full(2), blocks_per_chunk=data.draw(st.integers(1, 2)))
    tier = SmallTier(slots=data.draw(st.integers(4, 40)))
    tier.fast = data.draw(st.booleans())
    ledger = Ledger(tier, 1)
    loads = Loads(geometry, ledger, Recency(geometry, ledger), True)
    request = SmallRequest("a", 16)
    state = RequestState(request, None, Limits(), [0, 0, 0], 0)
    # By position, so that some boundary is often served.
    ends = sorted(
        ((chunk + 1) * group.tokens_per_chunk, group.index)
        for group in geometry.groups
        for chunk in range(16 // group.tokens_per_chunk)
    )
    keys = [key(group, end - 1) for end, group in ends]
    computed = 0
    for _ in range(data.draw(st.integers(1, 25))):
        match data.draw(st.sampled_from(["store", "store", "end", "fail", "reset", "move"])):
            case "store":
                count = data.draw(st.integers(1, len(keys)))
                room = tier.prepare_store(keys[:count] if count % 2 else keys[-count:], None)
                if room is not None:
                    ledger.gone(room.evicted)
                    ledger.issue_store("other", room.keys, None, [])
            case "end" | "fail" as how if ledger.jobs.live:
                number = data.draw(st.sampled_from(sorted(ledger.jobs.live)))
                ledger.report(number, 1, how == "fail")
            case "reset":
                ledger.reset()
            case _:
                computed = data.draw(st.integers(0, 8))
        loads.lookup(state, computed, None)
        found = Finder(geometry, tier, ledger.coverage).find(
            request.block_hashes, None, computed, 15
        )
        assert state.answer.boundary == found.boundary
        assert state.answer.worth_waiting == found.worth_waiting


def test_a_boundary_for_which_nothing_is_loaded_is_no_hit() -> None:
    world = World(sizes(window(2, 1)))
    request = world.add(SmallRequest("a", 9))
    assert world.scheduler.lookup(request, 0) == 0
    world = World(sizes(window(2, 1), chunked(2, 4)))
    world.tier.fill([key(1, last) for last in (1, 3, 5)])
    request = world.add(SmallRequest("a", 7))
    assert world.scheduler.lookup(request, 0) == 6


def test_what_is_loaded_is_used_now() -> None:
    world = World(sizes(full(2)))
    world.tier.fill([key(0, 1), key(0, 3), key(0, 1, "b")])
    request = world.add(SmallRequest("a", 5))
    assert world.scheduler.lookup(request, 0) == 4
    world.scheduler.allocated(request, [[1, 2]], 4, 0)
    assert list(world.tier.chunks) == [key(0, 1, "b"), key(0, 3), key(0, 1)]
    assert world.tier.ends == {key(0, 1): 2, key(0, 3): 4}


class Bringing(SmallTier):
    """A tier of one slot over one that has everything: it brings back what it is asked for."""

    def __init__(self) -> None:
        super().__init__(slots=1, closed=False)

    def lookup(self, key: bytes, context: Any) -> Found:
        if key not in self.chunks and Found.PENDING not in self.chunks.values():
            self.chunks = {key: Found.PENDING}
        return super().lookup(key, context)

    def arrive(self) -> None:
        self.chunks = dict.fromkeys(self.chunks, Found.HIT)


def test_a_lookup_does_not_answer_with_what_it_has_driven_out_itself() -> None:
    tier = Bringing()
    world = World(sizes(full(2)), tier)
    request = world.add(SmallRequest("a", 5))
    for _ in range(MOST_POLLS + 1):
        assert world.scheduler.lookup(request, 0) is None
        tier.arrive()
    # The first chunk is there, the second one takes its place while it is being looked up.
    assert list(tier.chunks) == [key(0, 1)]
    assert world.scheduler.lookup(request, 0) == 0


def test_a_request_whose_load_was_lost_computes_and_is_not_put_off_again() -> None:
    tier = SmallTier(closed=False)
    world = World(sizes(full(2)), tier)
    request = world.add(SmallRequest("a", 5))
    world.table("a", [1, 2, 3])
    resident(world, 1)
    assert world.scheduler.lookup(request, 0) == 2
    del tier.chunks[key(0, 1)]
    world.scheduler.allocated(request, [[1, 2, 3]], 2, 0)
    assert world.step({}).lost == ["a"]
    tier.fill([key(0, 1)])
    tier.fill([key(0, 3)], Found.PENDING)
    assert world.scheduler.lookup(request, 0) == 0
    # Once it has run, it may ask again.
    world.step({"a": 5})
    world.step({}, put_back=["a"])
    assert world.scheduler.lookup(request, 0) is None
