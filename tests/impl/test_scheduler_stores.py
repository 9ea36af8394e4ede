"""Stores: what is offered when, from which blocks, and what becomes of a refusal."""

from __future__ import annotations

from kvproof.impl.scheduler.plan import Transfer
from kvproof.impl.scheduler.request import Limits

from .small_world import SmallRequest, SmallTier, World, full, key, recurrent, sizes, window


def test_chunks_are_stored_in_the_step_that_completes_them() -> None:
    world = World(sizes(full(2), window(2, 3)))
    world.add(SmallRequest("a", 5))
    world.table("a", [1, 2, 3], [4, 5, 6])
    first = world.step({"a": 3})
    keys = (key(0, 1), key(1, 1))
    assert first.stores == {0: Transfer("a", [1, 4], [1, 1], [0, 0], keys)}
    assert (first.loads, first.flush, first.lost) == ({}, set(), [])
    second = world.step({"a": 2})
    keys = (key(0, 3), key(1, 3))
    assert second.stores == {1: Transfer("a", [2, 5], [1, 1], [1, 1], keys)}
    assert world.step({"a": 1}).stores == {
        2: Transfer("a", [3, 6], [1, 1], [2, 2], (key(0, 5), key(1, 5)))
    }
    assert world.step({"a": 1}).stores == {}


def test_a_request_reads_no_table_while_it_completes_nothing() -> None:
    world = World(sizes(full(64)))
    world.add(SmallRequest("a", 1))
    world.step({"a": 1})
    for _ in range(62):
        assert world.step({"a": 1}).stores == {}
    world.table("a", [7])
    assert world.step({"a": 1}).stores == {0: Transfer("a", [7], [1], [0], (key(0, 63),))}


def test_what_the_tier_has_is_not_stored_again() -> None:
    world = World(sizes(full(2)))
    world.tier.fill([key(0, 1), key(0, 5)])
    world.add(SmallRequest("a", 8))
    world.table("a", [1, 2, 3, 4])
    plan = world.step({"a": 8})
    assert plan.stores == {0: Transfer("a", [2, 4], [2], [1], (key(0, 3), key(0, 7)))}


def test_a_block_that_has_slid_away_is_not_read() -> None:
    world = World(sizes(full(2), window(2, 3)))
    world.add(SmallRequest("a", 6))
    world.table("a", [1, 2, 3], [0, 5, 6])
    plan = world.step({"a": 6})
    assert plan.stores[0] == Transfer(
        "a",
        [1, 2, 3, 5, 6],
        [3, 2],
        [0, 1],
        (*(key(0, n) for n in (1, 3, 5)), key(1, 3), key(1, 5)),
    )


def test_a_chunk_without_its_first_block_is_remembered_as_such() -> None:
    world = World(sizes(window(2, 3), blocks_per_chunk=2))
    world.add(SmallRequest("a", 9))
    world.table("a", [0, 5, 6, 7])
    plan = world.step({"a": 8})
    assert plan.stores == {0: Transfer("a", [5, 6, 7], [3], [1], (key(0, 3), key(0, 7)))}
    world.scheduler.report(0)
    # Starting at 4 a forward reads positions 2 and 3; at 5 it would read 3 and 4, and so on.
    again = SmallRequest("b", 5)
    world.add(again)
    assert world.scheduler.lookup(again, 0) == 4
    shorter = SmallRequest("c", 4)
    world.add(shorter)
    assert world.scheduler.lookup(shorter, 0) == 0


def test_a_refused_offer_halves_and_the_rest_waits_for_room() -> None:
    world = World(sizes(full(2)), SmallTier(slots=2))
    world.add(SmallRequest("a", 8))
    world.table("a", [1, 2, 3, 4])
    assert world.step({"a": 8}).stores == {
        0: Transfer("a", [1, 2], [2], [0], (key(0, 1), key(0, 3)))
    }
    # All four, then the two that were left, then one of them.
    assert world.scheduler.counts == {"refused_offers": 3}
    assert world.step({"a": 1}).stores == {}
    # Slots that were written can be evicted: the tier has room again.
    world.scheduler.report(0)
    assert world.step({"a": 1}).stores == {
        1: Transfer("a", [3, 4], [2], [2], (key(0, 5), key(0, 7)))
    }


def test_an_offer_is_not_repeated_while_room_is_the_same() -> None:
    world = World(sizes(full(2)), SmallTier(slots=0))
    world.add(SmallRequest("a", 2))
    world.table("a", [1, 2])
    world.step({"a": 2})
    assert world.scheduler.counts["refused_offers"] == 1
    world.step({"a": 1})
    assert world.scheduler.counts["refused_offers"] == 1
    world.step({"a": 1})
    assert world.scheduler.counts["refused_offers"] == 2


def test_prompt_only_stores_no_chunk_with_a_generated_token() -> None:
    world = World(sizes(full(2)), prompt_only=True)
    world.add(SmallRequest("a", 3))
    world.table("a", [1, 2, 3, 4])
    assert world.step({"a": 3}).stores[0].blocks == [1]
    for _ in range(4):
        assert world.step({"a": 1}).stores == {}


def test_a_client_s_cap_is_kept() -> None:
    world = World(sizes(full(2)))
    for request_id, cap in (("a", 0), ("b", 3), ("c", 4)):
        world.add(SmallRequest(request_id, 6, of=request_id), Limits(max_store=cap))
        world.table(request_id, [1, 2, 3])
    plan = world.step({"a": 6, "b": 6, "c": 6})
    assert {transfer.request_id: transfer.blocks for transfer in plan.stores.values()} == {
        "b": [1],
        "c": [1, 2],
    }


def test_a_drafter_s_last_chunk_is_stored_with_the_token_after_it_or_at_the_end() -> None:
    world = World(sizes(full(2, draft=True)))
    world.add(SmallRequest("a", 2))
    world.table("a", [1, 2, 3])
    # Of a prompt every token is accepted.
    assert world.step({"a": 2}).stores[0].blocks == [1]
    assert world.step({"a": 1}).stores == {}
    assert world.step({"a": 1}).stores == {}
    assert world.step({"a": 1}).stores[1].blocks == [2]
    assert world.step({"a": 1}).stores == {}
    world.finish("a")
    assert world.step({}).stores[2].blocks == [3]


def test_a_drafter_s_chunk_within_the_cap_waits_for_a_token_beyond_it() -> None:
    world = World(sizes(full(2, draft=True)))
    world.add(SmallRequest("a", 1), Limits(max_store=2))
    world.table("a", [1, 2])
    assert world.step({"a": 1}).stores == {}
    assert world.step({"a": 1}).stores == {}
    assert world.step({"a": 1}).stores[0].blocks == [1]


def test_states_are_stored_as_they_are_handed_over_and_at_the_end() -> None:
    world = World(sizes(full(2), recurrent(2)))
    world.add(SmallRequest("a", 5))
    world.table("a", [1, 2, 3], [0, 0, 6])
    plan = world.step({"a": 5}, handed={"a": [(1, 9, 4), (1, 8, 3), (7, 8, 4)]})
    assert plan.stores == {
        0: Transfer("a", [9], [0, 1], [0, 1], (key(1, 3),)),
        1: Transfer("a", [1, 2], [2, 0], [0, 0], (key(0, 1), key(0, 3))),
    }
    world.step({"a": 1})
    world.finish("a")
    assert world.step({}).stores == {3: Transfer("a", [6], [0, 1], [0, 2], (key(1, 5),))}


def test_a_finished_request_stores_what_is_left_and_then_says_goodbye() -> None:
    world = World(sizes(full(2)))
    world.add(SmallRequest("a", 2))
    world.table("a", [1])
    world.finish("a")
    assert world.tier.finished == []
    assert world.scheduler.has_work
    plan = world.step({})
    assert (plan.stores, plan.flush) == ({}, set())
    assert world.tier.finished == ["a"]
    assert not world.scheduler.has_work


def test_a_store_of_a_finished_request_is_flushed_when_its_block_is_given_away_at_once() -> None:
    for leased, flush in (((1,), {0}), ((2,), set())):
        world = World(sizes(full(4)))
        world.add(SmallRequest("a", 4))
        world.step({"a": 3})
        world.step({"a": 1})
        world.table("a", [1])
        world.finish("a")
        plan = world.step({}, leased=leased)
        assert (plan.stores[0].blocks, plan.flush) == ([1], flush)


def test_a_store_is_flushed_when_a_block_that_it_reads_is_handed_out() -> None:
    world = World(sizes(window(2, 3)))
    world.add(SmallRequest("a", 8))
    world.table("a", [1, 2])
    world.step({"a": 4})
    assert world.step({"a": 1}, leased=(3,)).flush == set()
    assert world.step({"a": 1}, leased=(2, 4)).flush == {0}
    world.scheduler.report(0)
    assert world.step({"a": 1}, leased=(1,)).flush == set()


def test_a_failed_store_is_forgotten() -> None:
    world = World(sizes(full(2)), workers=2)
    world.add(SmallRequest("a", 3))
    world.table("a", [1])
    world.step({"a": 3})
    assert world.scheduler.report(0, failed=True) is None
    assert world.scheduler.report(0) is not None
    assert (world.tier.chunks, world.scheduler.counts) == ({}, {"failed_stores": 1})
    assert not world.scheduler.has_work


def test_a_reset_kills_stores_and_everything_is_offered_again() -> None:
    world = World(sizes(full(2)))
    world.add(SmallRequest("a", 4))
    world.table("a", [1, 2])
    world.step({"a": 4})
    world.scheduler.reset()
    world.scheduler.reset()
    plan = world.step({"a": 1})
    assert plan.flush == {0}
    assert plan.stores == {1: Transfer("a", [1, 2], [2], [0], (key(0, 1), key(0, 3)))}
    # A report of the dead changes nothing.
    world.scheduler.report(0)
    assert set(world.tier.chunks.values()) == {2}


def test_a_reset_is_heard_by_requests_that_have_nothing_left_to_compute() -> None:
    world = World(sizes(full(2)))
    for request_id, blocks in (("a", [1, 2]), ("b", [3, 4])):
        world.add(SmallRequest(request_id, 4, of=request_id))
        world.table(request_id, blocks)
    world.step({"a": 4, "b": 4})
    world.scheduler.reset()
    plan = world.step({"a": 1})
    assert [transfer.blocks for transfer in plan.stores.values()] == [[1, 2], [3, 4]]
    assert world.step({"b": 1}).stores == {}


def test_a_state_that_was_refused_is_offered_again_while_it_is_there() -> None:
    for block, stored in ((9, [9]), (8, [])):
        world = World(sizes(recurrent(2)), SmallTier(slots=1))
        world.add(SmallRequest("full", 2, of="b"))
        world.table("full", [1])
        world.step({"full": 2}, handed={"full": [(0, 1, 2)]})
        world.add(SmallRequest("a", 6))
        world.table("a", [0, 9, 6])
        assert world.step({"a": 5}, handed={"a": [(0, 9, 4)]}).stores == {}
        assert world.step({"a": 1}).stores == {}
        world.scheduler.report(0)
        world.table("a", [0, block, 6])
        stores = world.step({}).stores
        assert [transfer.blocks for transfer in stores.values()] == ([stored] if stored else [])
        assert world.scheduler.counts["refused_offers"] == 1


def test_a_refused_state_of_a_request_that_ends_is_offered_once_more() -> None:
    world = World(sizes(recurrent(2)), SmallTier(slots=1))
    world.add(SmallRequest("full", 2, of="b"))
    world.table("full", [1])
    world.step({"full": 2}, handed={"full": [(0, 1, 2)]})
    world.add(SmallRequest("a", 6))
    world.table("a", [0, 9, 6])
    world.step({"a": 5}, handed={"a": [(0, 9, 4)]})
    world.finish("a")
    world.scheduler.report(0)
    plan = world.step({}, leased=(9,))
    assert plan.stores == {1: Transfer("a", [9], [1], [1], (key(0, 3),))}
    assert plan.flush == {1}
    assert world.step({}).stores == {}


def test_what_was_refused_is_offered_in_a_step_that_does_not_schedule_its_request() -> None:
    world = World(sizes(full(2)), SmallTier(slots=1))
    world.add(SmallRequest("a", 4))
    world.table("a", [1, 2])
    assert world.step({"a": 4}).stores[0].blocks == [1]
    world.scheduler.report(0)
    assert world.step({}).stores[1].blocks == [2]


def test_a_request_that_is_put_back_offers_what_it_computes_again() -> None:
    world = World(sizes(full(2)))
    world.add(SmallRequest("a", 6))
    world.table("a", [1, 2, 3])
    world.step({"a": 6})
    world.tier.chunks.clear()
    world.requests["a"].num_computed_tokens = 2
    world.running.discard("a")
    world.table("a", [1, 4, 5])
    # Its first block is still on the GPU.
    assert world.step({"a": 4}).stores[1] == Transfer("a", [4, 5], [2], [1], (key(0, 3), key(0, 5)))


def test_the_tier_is_told_where_keys_end_and_what_is_used_again() -> None:
    world = World(sizes(full(2), window(4, 5)), SmallTier(slots=4))
    world.tier.fill([key(0, 1), key(1, 3), key(0, 9, "b"), key(0, 3)])
    world.add(SmallRequest("a", 6))
    world.table("a", [1, 2, 3], [4, 5])
    # All but one are there; the one that nobody uses leaves for it.
    assert world.step({"a": 6}).stores[0].blocks == [3]
    assert world.tier.ends == {key(0, 1): 2, key(0, 3): 4, key(0, 5): 6, key(1, 3): 4}
    # Used last are the heads.
    assert list(world.tier.chunks) == [key(0, 5), key(1, 3), key(0, 3), key(0, 1)]


def test_a_request_that_is_put_back_does_not_repeat_what_was_refused() -> None:
    world = World(sizes(full(2)), SmallTier(slots=1))
    world.add(SmallRequest("a", 4))
    world.table("a", [1, 2])
    assert world.step({"a": 4}).stores[0].blocks == [1]
    refused = world.scheduler.counts["refused_offers"]
    world.requests["a"].num_computed_tokens = 0
    world.running.discard("a")
    world.table("a", [3, 4])
    assert world.step({"a": 4}).stores == {}
    assert world.scheduler.counts["refused_offers"] == refused
    world.scheduler.report(0)
    assert world.step({"a": 1}).stores[1].blocks == [4]


def test_a_session_that_goes_on_offers_what_is_part_of_its_prompt_by_then() -> None:
    world = World(sizes(full(2)), prompt_only=True)
    request = world.add(SmallRequest("a", 2))
    world.table("a", [1, 2, 3])
    assert world.step({"a": 2}).stores[0].blocks == [1]
    assert world.step({"a": 1}).stores == {}
    request.num_prompt_tokens, request.output = 6, 0
    world.running.discard("a")
    assert world.step({"a": 3}).stores[1].blocks == [2, 3]


def test_a_state_that_was_refused_among_other_chunks_is_offered_again() -> None:
    world = World(sizes(recurrent(2), blocks_per_chunk=2), SmallTier(slots=1), retention=0)
    world.add(SmallRequest("full", 5, of="b"))
    world.table("full", [0, 1, 2])
    assert world.step({"full": 4}).stores[0].blocks == [1]
    world.add(SmallRequest("a", 7))
    world.table("a", [0, 9, 6, 7])
    assert world.step({"a": 4}).stores == {}
    assert world.step({"a": 2}).stores == {}
    world.scheduler.report(0)
    assert world.step({"a": 1}).stores[1].blocks == [9]


def test_a_reset_says_nothing_to_who_has_not_been_taken_up_since_its_load() -> None:
    """Its blocks count as new in the step that takes it up: a store of them would be flushed."""
    world = World(sizes(full(2)))
    world.add(SmallRequest("a", 4, num_computed_tokens=4))
    world.table("a", [1, 2])
    world.scheduler.requests["a"].filled = True
    world.scheduler.reset()
    assert world.step({}).stores == {}
    assert world.step({"a": 1}).stores[0].blocks == [1, 2]


def test_a_request_that_is_put_back_remembers_what_was_refused_behind_what_it_computes() -> None:
    world = World(sizes(full(2)), SmallTier(slots=1))
    request = world.add(SmallRequest("a", 6))
    world.table("a", [1, 2, 3])
    assert world.step({"a": 4}).stores[0].blocks == [1]
    assert world.scheduler.counts["refused_offers"] == 2
    request.num_computed_tokens = 0
    world.running.discard("a")
    assert world.step({"a": 2}).stores == {}
    assert world.step({"a": 2}).stores == {}
    assert world.scheduler.counts["refused_offers"] == 2
    world.scheduler.report(0)
    assert world.step({"a": 1}).stores[1].blocks == [2]
