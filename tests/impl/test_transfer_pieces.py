"""Which block goes where: exact plans, what is refused, and a dumb alternative as the oracle."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvproof.impl.transfer.pieces import Pieces, pieces

Flat = list[tuple[int, int, int, int]]


def flat(found: list[Pieces]) -> Flat:
    """(group, block, slot, offset) of each piece."""
    return [
        (one.group, block, slot, offset)
        for one in found
        for block, slot, offset in zip(
            one.blocks.tolist(), one.slots.tolist(), one.offsets.tolist(), strict=True
        )
    ]


def test_a_block_is_its_own_chunk_when_chunks_have_one() -> None:
    assert flat(pieces([7, 5], [2], [3], [1, 0], 1)) == [(0, 7, 1, 0), (0, 5, 0, 0)]


def test_the_first_chunk_may_begin_in_the_middle_and_the_last_one_end_early() -> None:
    assert flat(pieces([10, 11, 12, 13], [4], [4], [8, 2], 3)) == [
        (0, 10, 8, 1),
        (0, 11, 8, 2),
        (0, 12, 2, 0),
        (0, 13, 2, 1),
    ]


def test_each_group_has_chunks_of_its_own_and_an_empty_one_has_none() -> None:
    assert flat(pieces([4, 5, 9], [2, 0, 1], [1, 7, 3], [0, 1, 2], 2)) == [
        (0, 4, 0, 1),
        (0, 5, 1, 0),
        (2, 9, 2, 1),
    ]


def test_nothing_to_move_is_no_piece() -> None:
    assert pieces([], [0, 0], [0, 5], [], 4) == []


@pytest.mark.parametrize(
    ("blocks", "sizes", "firsts", "slots", "message"),
    [
        ([1, 2], [1], [0], [0], "2 blocks for groups of [1]"),
        ([1], [2, -1], [0, 0], [0], "1 blocks for groups of [2, -1]"),
        ([1], [1], [0, 0], [0], "2 positions for 1 groups"),
        ([1, 2], [2], [1], [5], "1 slots are too few for groups of [2]"),
        ([1, 2], [2], [0], [5, 6], "2 slots, of which blocks at [0] fill 1"),
    ],
)
def test_what_does_not_belong_together_is_refused(
    blocks: list[int], sizes: list[int], firsts: list[int], slots: list[int], message: str
) -> None:
    with pytest.raises(ValueError) as refused:
        pieces(blocks, sizes, firsts, slots, 2)
    assert str(refused.value) == message


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 20)), min_size=1, max_size=4),
    st.integers(1, 5),
)
def test_it_is_what_walking_through_the_positions_one_by_one_finds(
    groups: list[tuple[int, int]], per: int
) -> None:
    wanted: Flat = []
    blocks: list[int] = []
    slots: list[int] = []
    for group, (size, first) in enumerate(groups):
        slot_of: dict[int, int] = {}
        for position in range(first, first + size):
            chunk = position // per
            if chunk not in slot_of:
                slot_of[chunk] = 1000 - len(slots)
                slots.append(slot_of[chunk])
            blocks.append(7 * len(blocks))
            wanted.append((group, blocks[-1], slot_of[chunk], position % per))
    sizes, firsts = zip(*groups, strict=True)
    assert flat(pieces(blocks, sizes, firsts, slots, per)) == wanted
