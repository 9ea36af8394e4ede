"""The emitted functions against brute force, which knows attention and none of their formulas."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product, takewhile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvproof.model.functions import (
    ABSENT,
    CHUNKED,
    FULL,
    PENDING,
    READY,
    RECURRENT,
    WINDOW,
    chunk_range,
    first_needed,
    greatest_boundary,
    greatest_served,
    keeps_chunk,
    needed_chunk,
    piece_place,
    place_of,
    prefix_hits,
    served,
    slots_filled,
    suffix_hits,
)

KINDS = (FULL, WINDOW, CHUNKED, RECURRENT)
exhaustive = settings(derandomize=True, max_examples=300, deadline=None, database=None)

kinds = st.sampled_from(KINDS)
sizes = st.integers(1, 5)
statuses = st.lists(
    st.sampled_from((ABSENT, PENDING, READY, READY, READY)), min_size=40, max_size=40
)
levels = st.sampled_from((PENDING, READY))


def read_by(kind: int, window: int, query: int) -> list[int]:
    """The earlier positions that the token at ``query`` reads, from what each kind means."""
    return [
        key
        for key in range(query)
        if kind == FULL
        or (kind == WINDOW and key > query - window)
        or (kind == CHUNKED and key // window == query // window)
        or (kind == RECURRENT and key == query - 1)
    ]


def can_start(
    kind: int, window: int, block: int, status: list[int], floor: int, boundary: int, level: int
) -> bool:
    if boundary == floor:
        return True
    if kind == RECURRENT and boundary % block:
        return False
    wanted = [p for p in read_by(kind, window, boundary) if p >= floor]
    return all(status[p // block] >= level for p in wanted)


def test_constants() -> None:
    assert (ABSENT, PENDING, READY) == (0, 1, 2)
    assert (FULL, WINDOW, CHUNKED, RECURRENT) == (0, 1, 2, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_first_needed_is_the_first_position_that_is_read(kind: int) -> None:
    for window, boundary in product(range(1, 9), range(1, 30)):
        wanted = read_by(kind, window, boundary)
        assert first_needed(kind, window, boundary) == min(wanted, default=boundary)
        assert wanted == list(range(first_needed(kind, window, boundary), boundary))


@exhaustive
@given(kinds, st.integers(1, 9), sizes, statuses, st.integers(0, 20), st.integers(0, 19), levels)
def test_served_and_greatest_served(
    kind: int, window: int, block: int, status: list[int], floor: int, more: int, level: int
) -> None:
    boundaries = range(floor, floor + more + 1)
    wanted = [n for n in boundaries if can_start(kind, window, block, status, floor, n, level)]
    at = status.__getitem__
    assert [n for n in boundaries if served(kind, window, block, at, floor, n, level)] == wanted
    assert greatest_served(kind, window, block, at, floor, floor + more, level) == wanted[-1]


@exhaustive
@given(
    st.lists(st.tuples(kinds, st.integers(1, 9), sizes, statuses), max_size=4),
    st.integers(0, 8),
    st.integers(0, 25),
    levels,
)
def test_greatest_boundary_is_the_greatest_that_all_groups_serve(
    groups: list[tuple[int, int, int, list[int]]], floor: int, more: int, level: int
) -> None:
    def greatest(group: int, limit: int) -> int:
        kind, window, block, status = groups[group]
        return greatest_served(kind, window, block, status.__getitem__, floor, limit, level)

    wanted = max(
        n
        for n in range(floor, floor + more + 1)
        if all(can_start(*group, floor, n, level) for group in groups)
    )
    assert greatest_boundary(len(groups), greatest, floor, floor + more) == wanted


@exhaustive
@given(statuses, st.integers(0, 10), st.integers(0, 12))
def test_prefix_hits_is_the_leading_run(status: list[int], start: int, count: int) -> None:
    run = list(takewhile(lambda s: s != ABSENT, status[start : start + count]))
    assert prefix_hits(status.__getitem__, start, start + count) == (len(run), PENDING in run)


@exhaustive
@given(statuses, st.integers(0, 10), st.integers(0, 12), sizes, st.integers(0, 3))
def test_suffix_hits_is_the_last_place_where_enough_chunks_end(
    status: list[int], start: int, count: int, window: int, more: int
) -> None:
    end = start + count
    enough = {**dict.fromkeys(range(start, end), window), end: window + more}
    wanted = max(
        stop
        for stop, length in enough.items()
        if ABSENT not in status[max(start, stop - length) : stop]
    )
    assert suffix_hits(status.__getitem__, start, end, window, window + more) == wanted


@exhaustive
@given(statuses, st.integers(0, 10), st.integers(0, 12), sizes)
def test_suffix_hits_with_one_window_is_a_scan_that_counts(
    status: list[int], start: int, count: int, window: int
) -> None:
    run, wanted = 0, None
    for chunk in reversed(range(start, start + count)):
        run = 0 if status[chunk] == ABSENT else run + 1
        if run == window:
            wanted = chunk + window
            break
    if wanted is None:
        wanted = start + run
    assert suffix_hits(status.__getitem__, start, start + count, window, window) == wanted


@exhaustive
@given(
    st.integers(0, 6),
    st.integers(0, 60),
    st.integers(0, 15),
    st.integers(0, 8),
    st.integers(1, 4),
    st.integers(1, 4),
)
def test_chunk_range_is_all_that_is_complete_from_the_cursor_on(
    stored: int, computed: int, allocated: int, keyed: int, block: int, blocks: int
) -> None:
    complete = [
        chunk
        for chunk in range(stored, 100)
        if chunk < keyed
        and all(b < allocated for b in range(chunk * blocks, (chunk + 1) * blocks))
        and all(
            position < computed
            for position in range(chunk * blocks * block, (chunk + 1) * blocks * block)
        )
    ]
    first, last = chunk_range(stored, computed, allocated, keyed, block, blocks)
    assert (first, list(range(first, last))) == (stored, complete)


def chunks_read(kind: int, window: int, block: int, blocks: int, boundary: int) -> set[int]:
    if kind == RECURRENT and boundary % block:
        return set()
    return {p // block // blocks for p in read_by(kind, window, boundary)}


@exhaustive
@given(kinds, st.integers(1, 9), st.integers(1, 4), st.integers(1, 3), st.integers(0, 40))
def test_needed_chunk_is_a_chunk_of_a_block_that_is_read(
    kind: int, window: int, block: int, blocks: int, boundary: int
) -> None:
    found = {c for c in range(50) if needed_chunk(kind, window, block, blocks, boundary, c)}
    assert found == chunks_read(kind, window, block, blocks, boundary)


@exhaustive
@given(
    kinds,
    st.integers(1, 9),
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(1, 12),
    st.integers(0, 60),
)
def test_keeps_chunk_is_a_chunk_that_some_aligned_boundary_needs(
    kind: int, window: int, block: int, blocks: int, alignment: int, tokens: int
) -> None:
    wanted: set[int] = set()
    for boundary in range(alignment, tokens + 1, alignment):
        wanted |= chunks_read(kind, window, block, blocks, boundary)
    found = {c for c in range(70) if keeps_chunk(kind, window, block, blocks, alignment, tokens, c)}
    assert found == wanted


def test_place_of_puts_every_block_into_its_own_place() -> None:
    for blocks in range(1, 8):
        places = [place_of(block, blocks) for block in range(10 * blocks)]
        assert places == list(product(range(10), range(blocks)))


def spans(window: int, block: int) -> list[int]:
    """Of each boundary with a whole window before it: how many blocks it needs."""
    boundaries = range(window, window + 3 * block)
    return [len({p // block for p in read_by(WINDOW, window, n)}) for n in boundaries]


def test_a_window_needs_one_block_more_than_it_fills_unless_it_is_aligned() -> None:
    up: Callable[[int, int], int] = lambda number, divisor: -(-number // divisor)  # noqa: E731
    for window, block in product(range(2, 20), range(1, 7)):
        assert min(spans(window, block)) == up(window - 1, block)
        assert max(spans(window, block)) == up(window - 2, block) + 1


def test_a_window_of_three_can_need_two_blocks_of_four() -> None:
    """Where a bound of ceil(window / block) blocks is too small."""
    at = [READY] * 40
    at[25] = ABSENT
    assert first_needed(WINDOW, 3, 105) == 103
    assert place_of(103, 4)[0] == 25
    assert not served(WINDOW, 3, 4, at.__getitem__, 0, 105, READY)
    at[25], at[26] = READY, ABSENT
    assert not served(WINDOW, 3, 4, at.__getitem__, 0, 105, READY)


def test_pieces_go_to_the_slots_of_their_chunks_and_every_slot_has_one() -> None:
    for blocks, first, pieces in product(range(1, 6), range(12), range(12)):
        chunks = sorted({(first + number) // blocks for number in range(pieces)})
        assert slots_filled(first, pieces, blocks) == len(chunks)
        places = [piece_place(first, number, blocks) for number in range(pieces)]
        assert places == [
            (chunks.index((first + number) // blocks), (first + number) % blocks)
            for number in range(pieces)
        ]
