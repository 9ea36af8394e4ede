"""What is stored of requests that end: never what a load did not bring, never under a new life."""

from __future__ import annotations

from kvproof.impl.scheduler.plan import Transfer

from .small_world import SmallRequest, SmallTier, World, full, key, sizes

WHOLE = Transfer("a", [1, 2], [2], [0], (key(0, 1), key(0, 3)))


def loading() -> tuple[World, int]:
    """A request that computed nothing and loads 4 tokens; the number of the load."""
    world = World(sizes(full(2)), SmallTier(slots=2))
    world.tier.fill([key(0, 1), key(0, 3)])
    request = world.add(SmallRequest("a", 5))
    assert world.scheduler.lookup(request, 0) == 4
    world.table("a", [1, 2])
    world.scheduler.allocated(request, [[1, 2]], 4, 0)
    request.num_computed_tokens = 4
    (load,) = world.step({}).loads
    return world, load


def lose_the_tier(world: World) -> None:
    """Nothing is there any more, so that everything would be taken again."""
    world.tier.chunks.clear()


def test_what_a_load_failed_to_bring_is_not_stored() -> None:
    world, load = loading()
    world.scheduler.report(load, failed=True)
    lose_the_tier(world)
    world.finish("a")
    assert world.step({}).stores == {}


def test_what_is_still_being_loaded_is_not_stored() -> None:
    world, _ = loading()
    lose_the_tier(world)
    world.finish("a")
    assert world.step({}).stores == {}


def test_what_was_loaded_is_stored_when_the_tier_has_lost_it() -> None:
    world, load = loading()
    world.scheduler.report(load)
    lose_the_tier(world)
    world.finish("a")
    assert list(world.step({}).stores.values()) == [WHOLE]


def test_so_is_what_was_loaded_across_a_reset_when_the_request_has_run_since() -> None:
    world, load = loading()
    world.scheduler.reset()
    world.scheduler.report(load)  # says nothing any more
    world.table("a", [])  # so that nothing is stored before the end
    assert world.step({"a": 1}).stores == {}
    world.table("a", [1, 2])
    world.finish("a")
    assert list(world.step({}).stores.values()) == [WHOLE]


def test_the_offer_of_a_request_that_has_ended_is_not_made_again_for_its_successor() -> None:
    world = World(sizes(full(2)), SmallTier(slots=1))
    world.add(SmallRequest("x", 2, of="x"))
    world.table("x", [9])
    (store,) = world.step({"x": 2}).stores
    world.add(SmallRequest("a", 2, of="b"))
    world.table("a", [1])
    assert world.step({"a": 2}).stores == {}
    world.finish("a")
    world.step({})
    assert world.tier.finished == ["a"]
    world.add(SmallRequest("a", 3, of="c"))
    world.table("a", [2])
    world.scheduler.report(store)
    assert world.step({"a": 1}).stores == {}


def test_a_request_that_ends_leaves_its_successor_waiting_for_room() -> None:
    world = World(sizes(full(2)), SmallTier(slots=1))
    world.add(SmallRequest("x", 2, of="x"))
    world.table("x", [9])
    (store,) = world.step({"x": 2}).stores
    world.add(SmallRequest("a", 2, of="b"))
    world.table("a", [1])
    assert world.step({"a": 2}).stores == {}
    world.finish("a")
    world.add(SmallRequest("a", 2, of="c"))
    world.table("a", [2])
    assert world.step({"a": 2}).stores == {}
    world.scheduler.report(store)
    (stored,) = world.step({"a": 1}).stores.values()
    assert stored == Transfer("a", [2], [1], [0], (key(0, 1, "c"),))


def test_what_was_on_the_gpu_is_not_stored_for_a_request_that_computed_nothing() -> None:
    world = World(sizes(full(2)))
    world.tier.fill([key(0, 3)])
    request = world.add(SmallRequest("a", 5))
    assert world.scheduler.lookup(request, 2) == 2
    world.table("a", [1, 2])
    world.scheduler.allocated(request, [[0, 2]], 2, 2)
    request.num_computed_tokens = 4
    (load,) = world.step({}).loads
    world.scheduler.report(load, failed=True)
    world.finish("a")
    assert world.step({}).stores == {}


def test_what_another_connector_has_yet_to_bring_is_not_stored() -> None:
    world = World(sizes(full(2)))
    request = world.add(SmallRequest("a", 5))
    assert world.scheduler.lookup(request, 0) == 0
    world.table("a", [1, 2])
    world.scheduler.allocated(request, [[]], 0, 0)
    request.num_computed_tokens = 4
    world.finish("a")
    assert world.step({}).stores == {}
