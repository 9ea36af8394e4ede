"""Windows that slide: at a request's end, and before it is put back."""

from __future__ import annotations

from kvproof.impl.scheduler.plan import Transfer

from .small_world import SmallRequest, SmallTier, World, chunked, key, sizes, window


def full_tier(slots: int) -> SmallTier:
    """A tier over other tiers, full of chunks that it does not let go for the time being."""
    tier = SmallTier(slots=slots, closed=False)
    tier.fill(key(0, number, "x") for number in range(slots))
    tier.pins = dict.fromkeys(tier.chunks, 1)
    return tier


def test_a_block_that_leaves_its_window_with_the_end_is_stored() -> None:
    for group, stored in (
        (window(2, 3), Transfer("a", [1, 2], [2], [0], (key(0, 1), key(0, 3)))),
        # Behind an attention chunk nothing of it is read.
        (chunked(2, 4), Transfer("a", [1], [1], [0], (key(0, 1),))),
    ):
        world = World(sizes(group))
        world.add(SmallRequest("a", 4))
        world.table("a", [1, 2])
        world.step({"a": 4})
        world.scheduler.reset()
        world.table("a", [0, 2])
        world.finish("a")
        assert world.step({}).stores == {1: stored}


def test_so_is_a_chunk_whose_hash_comes_with_the_end() -> None:
    world = World(sizes(window(2, 2)))
    request = world.add(SmallRequest("a", 3))
    world.table("a", [1, 2])
    # Scheduled ahead: the fourth token is computed before it is known.
    assert world.step({"a": 4}).stores == {0: Transfer("a", [1], [1], [0], (key(0, 1),))}
    request.output = 1
    world.table("a", [0, 0])
    world.finish("a")
    assert world.step({}).stores == {1: Transfer("a", [2], [1], [1], (key(0, 3),))}


def test_a_store_at_the_end_is_flushed_when_its_block_is_given_away_at_once() -> None:
    world = World(sizes(window(2, 3)))
    world.add(SmallRequest("a", 4))
    world.table("a", [1, 2])
    world.step({"a": 4})
    world.scheduler.reset()
    world.table("a", [0, 2])
    world.finish("a")
    assert world.step({}, leased=[1]).flush == {0, 1}


def test_what_has_slid_since_the_last_step_is_not_read() -> None:
    tier = SmallTier(slots=1)
    world = World(sizes(window(2, 2)), tier)
    world.add(SmallRequest("a", 4))
    world.table("a", [1, 2])
    assert world.step({"a": 4}).stores == {0: Transfer("a", [1], [1], [0], (key(0, 1),))}
    world.table("a", [0, 0, 3])
    world.step({"a": 1})
    world.scheduler.report(0)
    world.finish("a")
    assert world.step({}).stores == {}


def test_what_was_there_in_the_last_step_is() -> None:
    tier = SmallTier(slots=1)
    world = World(sizes(window(2, 3)), tier)
    world.add(SmallRequest("a", 4))
    world.table("a", [1, 2])
    world.step({"a": 4})
    world.table("a", [0, 2, 3])
    world.step({"a": 1})
    world.scheduler.report(0)
    world.table("a", [0, 0, 3])
    world.finish("a")
    assert world.step({}).stores == {1: Transfer("a", [2], [1], [1], (key(0, 3),))}
    assert world.scheduler.residue()["open"] == 0


def test_nothing_is_read_of_who_was_put_back_before_it_ended() -> None:
    world = World(sizes(window(2, 3)))
    world.add(SmallRequest("a", 4))
    world.table("a", [1, 2])
    world.step({"a": 4})
    world.scheduler.reset()
    world.requests["a"].num_computed_tokens = 0
    world.table("a", [])
    world.finish("a")
    assert world.step({}).stores == {}


def test_who_comes_back_offers_what_it_shares_and_had_no_room_for() -> None:
    tier = full_tier(1)
    world = World(sizes(window(2, 3)), tier)
    request = world.add(SmallRequest("a", 4))
    world.table("a", [1, 2])
    assert world.step({"a": 4}).stores == {}
    request.output = 2
    world.table("a", [0, 2, 3])
    tier.pins.clear()
    assert world.step({"a": 2}).stores == {0: Transfer("a", [3], [1], [2], (key(0, 5),))}
    world.scheduler.report(0)
    world.table("a", [])
    world.step({}, put_back=["a"])
    world.table("a", [7, 8, 9])
    world.requests["a"].num_computed_tokens = 4
    assert world.step({"a": 2}).stores == {1: Transfer("a", [7], [1], [0], (key(0, 1),))}


def test_room_that_its_own_chunk_has_made_is_offered_to_what_waits() -> None:
    tier = full_tier(2)
    world = World(sizes(window(2, 9)), tier)
    world.add(SmallRequest("a", 2))
    world.table("a", [1, 2])
    assert world.step({"a": 2}).stores == {}
    tier.pins.clear()
    world.requests["a"].output = 2
    assert world.step({"a": 2}).stores == {
        0: Transfer("a", [2], [1], [1], (key(0, 3),)),
        1: Transfer("a", [1], [1], [0], (key(0, 1),)),
    }


def test_also_at_the_end() -> None:
    tier = full_tier(2)
    world = World(sizes(window(2, 9)), tier)
    request = world.add(SmallRequest("a", 2))
    world.table("a", [1, 2])
    assert world.step({"a": 2}).stores == {}
    tier.pins.clear()
    request.output, request.num_computed_tokens = 3, 4
    world.finish("a")
    assert world.step({}).stores == {
        0: Transfer("a", [2], [1], [1], (key(0, 3),)),
        1: Transfer("a", [1], [1], [0], (key(0, 1),)),
    }


def test_what_a_session_has_had_before_is_not_flushed() -> None:
    for computed in (0, 2):
        world = World(sizes(window(2, 9)))
        request = world.add(SmallRequest("a", 2))
        world.table("a", [1, 2])
        assert world.step({"a": 2}).stores
        # Without a prefix cache no block is told from one that was handed out just now.
        world.scheduler.allocated(request, [[1, 2]], 0, computed)
        assert world.step({}).flush == set()
        world.scheduler.allocated(SmallRequest("b", 2), [[1, 2]], 0, 0)
        assert world.step({}).flush == {0}
