"""What running requests use stays younger than what they store later (E7), at bounded cost (E6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kvproof.impl.scheduler.recency import KEYS_PER_OFFER, MOST_SAVED
from kvproof.impl.scheduler.views import Key
from tests.impl.small_world import (
    SmallRequest,
    SmallTier,
    World,
    full,
    key,
    recurrent,
    sizes,
    window,
)


class Counting(SmallTier):
    """Counts the keys that are touched."""

    touched = 0

    def touch(self, keys: Sequence[Key], context: Any) -> None:
        self.touched += len(keys)
        super().touch(keys, context)


def store(world: World, request_id: str, tokens: int) -> None:
    """A step of one request; its stores end at once."""
    for number in world.step({request_id: tokens}).stores:
        world.scheduler.report(number)


def test_a_request_that_outgrows_the_tier_keeps_its_head() -> None:
    world = World(sizes(full(1)), SmallTier(slots=4))
    world.add(SmallRequest("a", 3))
    world.table("a", list(range(1, 9)))
    store(world, "a", 3)
    for _ in range(3):
        store(world, "a", 1)
    assert list(world.tier.chunks) == [key(0, last) for last in (2, 1, 0, 5)]


def test_the_head_of_a_request_that_runs_outlives_its_tail_when_another_needs_room() -> None:
    world = World(sizes(full(1)), SmallTier(slots=4))
    for name, blocks in (("a", [1, 2, 3, 4]), ("b", [5, 6, 7])):
        world.add(SmallRequest(name, 2, of=name))
        world.table(name, blocks)
        store(world, name, 2)
    store(world, "b", 1)
    # Of both some key is the oldest; the tail of whoever used it first goes.
    assert set(world.tier.chunks) == {key(0, 0, "a"), *(key(0, n, "b") for n in range(3))}


def test_what_is_over_leaves_before_what_a_running_request_has_used_before_it() -> None:
    world = World(sizes(full(1)), SmallTier(slots=4))
    for name, blocks in (("a", [1, 2, 3, 4]), ("b", [5, 6])):
        world.add(SmallRequest(name, 2, of=name))
        world.table(name, blocks)
        store(world, name, 2)
    world.finish("b")
    world.step({})
    store(world, "a", 1)
    assert set(world.tier.chunks) == {key(0, 0, "b"), *(key(0, n, "a") for n in range(3))}


def test_a_last_offer_takes_nothing_of_the_head_either() -> None:
    world = World(sizes(full(2)), SmallTier(slots=2))
    world.add(SmallRequest("a", 4))
    world.table("a", [1, 2, 3])
    store(world, "a", 4)
    world.step({"a": 1})
    world.requests["a"].output += 1
    world.requests["a"].num_computed_tokens += 1
    world.finish("a")
    assert [transfer.blocks for transfer in world.step({}).stores.values()] == [[3]]
    assert set(world.tier.chunks) == {key(0, 1), key(0, 5)}


@pytest.mark.parametrize("slots", [1 << 30, 1000])
def test_nothing_is_used_again_while_there_is_room(slots: int) -> None:
    tier = Counting(slots=slots)
    world = World(sizes(full(1), window(1, 4)), tier)
    world.add(SmallRequest("a", 400))
    world.table("a", list(range(1, 500)), list(range(501, 1000)))
    store(world, "a", 400)
    for _ in range(50):
        store(world, "a", 1)
    assert tier.touched == 0


def test_in_a_tier_that_is_too_small_the_work_for_an_offer_is_bounded() -> None:
    tier = Counting(slots=50_000)
    world = World(sizes(full(1)), tier)
    for name in "ab":
        world.add(SmallRequest(name, 25_000, of=name))
        world.table(name, list(range(1, 26_000)))
        store(world, name, 25_000)
    before = tier.touched
    for _ in range(200):
        store(world, "a", 1)
    # The last of them may overdraw what was saved by one request.
    assert 0 < tier.touched - before <= MOST_SAVED + 200 * KEYS_PER_OFFER + 25_200


def test_of_an_ended_request_nothing_is_kept() -> None:
    world = World(sizes(full(1)), SmallTier(slots=4))
    world.add(SmallRequest("a", 2))
    world.table("a", [1, 2])
    store(world, "a", 2)
    assert world.scheduler.residue()["users"] == 1
    world.finish("a")
    world.step({})
    assert world.scheduler.residue()["users"] == 0


def test_what_was_offered_in_the_step_before_is_used_again_too() -> None:
    """The engine counts tokens as computed only when their step is over."""
    world = World(sizes(full(1)), SmallTier(slots=4))
    for name, blocks in (("a", [1, 2, 3]), ("b", [5, 6])):
        world.add(SmallRequest(name, len(blocks), of=name))
        world.table(name, blocks)
    for number in world.step({"a": 3, "b": 1}).stores:
        world.scheduler.report(number)
    store(world, "b", 1)
    assert set(world.tier.chunks) == {
        *(key(0, n, "a") for n in range(2)),
        *(key(0, n, "b") for n in range(2)),
    }


def test_when_a_request_ends_its_tail_leaves_first_in_whichever_group() -> None:
    world = World(sizes(full(1), window(1, 2), recurrent(1)), SmallTier(slots=12))
    world.add(SmallRequest("a", 3))
    world.table("a", [1, 2, 3], [0, 4, 5], [0, 0, 6])
    # The last state is offered in the step that ends with it; an earlier one was handed over.
    for number in world.step({"a": 3}, handed={"a": [(2, 7, 2)]}).stores:
        world.scheduler.report(number)
    world.finish("a")
    world.step({})
    assert list(world.tier.chunks) == [
        *(key(group, 2) for group in (2, 1, 0)),
        *(key(group, 1) for group in (2, 1, 0)),
        key(0, 0),
    ]
