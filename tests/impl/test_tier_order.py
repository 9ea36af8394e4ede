"""What a use costs: each slot a few steps, in whichever order slots come and whoever had them."""

from __future__ import annotations

from collections.abc import Callable
from typing import SupportsIndex

import pytest

from kvproof.impl.tier.order import UNCHAINED, Order

SLOTS = 600
HEAD = range(500)
"""Slots that are chained, in the order of their prefix."""
TAIL = range(500, 600)
"""What follows in it."""

READS_OF_A_SLOT = 6
"""Links that are followed for one slot, at most."""


class Counted(list[int]):
    """Links of an order, and how often one was read."""

    reads = 0

    def __getitem__(self, place: SupportsIndex) -> int:  # type: ignore[override]
        self.reads += 1
        return super().__getitem__(place)


def started() -> Order:
    order = Order([0] * SLOTS, [*range(16, 16 * SLOTS + 1, 16)])
    for user in ("first", "second", "third"):
        order.begin(user)
    return order


def stored_by_the_first(order: Order) -> None:
    order.use(HEAD, "first")


def used_by_a_later_one(order: Order) -> None:
    order.touch(HEAD, "second")


def used_by_an_earlier_one(order: Order) -> None:
    order.touch(HEAD, "first")


def the_later_one_ends(order: Order) -> None:
    order.forget("second")


def its_tail_is_there(order: Order) -> None:
    order.use(TAIL, "first")


def its_tail_is_elsewhere(order: Order) -> None:
    order.use(TAIL, "second")


def all_by_the_third(order: Order) -> None:
    order.touch([*HEAD, *TAIL], "third")


@pytest.mark.parametrize(
    "moves",
    [
        [stored_by_the_first],
        [its_tail_is_there, stored_by_the_first],
        [stored_by_the_first, used_by_a_later_one],
        [stored_by_the_first, used_by_a_later_one, used_by_an_earlier_one],
        [stored_by_the_first, used_by_a_later_one, the_later_one_ends],
        [its_tail_is_there, stored_by_the_first, used_by_a_later_one, the_later_one_ends],
        [its_tail_is_elsewhere, stored_by_the_first, used_by_a_later_one],
        [its_tail_is_elsewhere, stored_by_the_first, all_by_the_third],
    ],
    ids=lambda moves: ", ".join(move.__name__ for move in moves),
)
def test_a_slot_takes_its_place_in_a_few_steps(moves: list[Callable[[Order], None]]) -> None:
    order = started()
    *before, last = moves
    for move in before:
        move(order)
    younger, older = Counted(order._younger), Counted(order._older)
    order._younger, order._older = younger, older
    last(order)
    # At most once along what a segment has, and a few steps for each slot.
    assert younger.reads + older.reads <= READS_OF_A_SLOT * SLOTS + 2 * len(TAIL)
    in_order = [slot for slot in order if slot in HEAD]
    assert in_order == sorted(HEAD, reverse=True)


def test_users_of_a_slot_are_kept_once_for_all_that_have_the_same() -> None:
    order = Order([0] * SLOTS, [*range(16, 16 * SLOTS + 1, 16)])
    for user in range(5):
        order.begin(user)
        order.touch(HEAD, user)
    groups = {order._group[slot] for slot in HEAD}
    (group,) = groups
    assert group is not None
    assert (group.slots, len(group.others)) == (len(HEAD), 4)
    order.remove(HEAD)
    assert all(not segment.borrows and not segment.lends for segment in order._segments.values())


def test_what_is_of_use_alone_stays_as_it_was_used() -> None:
    order = Order([0] * 4, [UNCHAINED] * 4)
    order.touch([0, 1, 2, 3], "user")
    assert list(order) == [3, 2, 1, 0]
