"""What is worth storing and when it is complete, against every boundary and token tried in turn."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvproof.impl.scheduler.geometry import Geometry, Group, Kind
from kvproof.impl.scheduler.storing import (
    NEVER,
    Chunk,
    chunks_on_offer,
    due,
    grain,
    last_chunk,
    serves,
    serves_in_part,
)
from kvproof.model import functions

from .small_world import chunked, full, key, recurrent, sizes, window
from .test_scheduler_lookup import groups

_KINDS = {
    Kind.FULL: functions.FULL,
    Kind.WINDOW: functions.WINDOW,
    Kind.CHUNKED: functions.CHUNKED,
    Kind.RECURRENT: functions.RECURRENT,
}
_HASHES = [f"a{number}".encode() for number in range(24)]


@st.composite
def geometries(draw: st.DrawFn) -> Geometry:
    return sizes(*draw(groups()), blocks_per_chunk=draw(st.integers(1, 3)))


def _serves(group: Group, chunk: int, alignment: int) -> bool:
    """Some aligned boundary in a long range reads a block of the chunk; a drafter, one more."""
    size = group.tokens_per_chunk
    more = size if group.draft else 0
    start, end = chunk * size, (chunk + 1) * size
    for boundary in range(
        alignment, start + 2 * alignment + 2 * group.window + 2 * size, alignment
    ):
        if group.kind is Kind.RECURRENT:
            if boundary == end:
                return True
        elif max(start, group.first_needed(boundary)) < min(end, boundary + more):
            return True
    return False


@settings(max_examples=400)
@given(geometries(), st.integers(0, 40))
def test_a_chunk_serves_when_some_boundary_reads_it(geometry: Geometry, chunk: int) -> None:
    for group in geometry.groups:
        assert serves(group, chunk, geometry.alignment) == _serves(group, chunk, geometry.alignment)


@settings(max_examples=200)
@given(geometries(), st.integers(0, 20))
def test_what_serves_is_what_the_proved_mask_keeps(geometry: Geometry, chunk: int) -> None:
    for group in geometry.groups:
        kept = functions.keeps_chunk(
            _KINDS[group.kind],
            group.window,
            group.tokens_per_block,
            group.blocks_per_chunk,
            geometry.alignment,
            1 << 20,
            chunk,
        )
        # The mask counts a state at any end of a block; states lie at ends of chunks alone. It
        # leaves out the chunk beyond a boundary that a drafter's chunk counts together with.
        state = group.kind is Kind.RECURRENT and group.blocks_per_chunk > 1
        if not (state or group.draft):
            assert serves(group, chunk, geometry.alignment) == kept


@given(geometries())
def test_a_group_without_grain_has_no_chunk_to_leave_out(geometry: Geometry) -> None:
    for group in geometry.groups:
        every = all(serves(group, chunk, geometry.alignment) for chunk in range(400))
        assert grain(group, geometry.alignment) == (0 if every else geometry.alignment)


def test_a_chunk_is_complete_when_its_tokens_are_computed_and_its_hash_is_known() -> None:
    (group,) = sizes(full(4), tokens_per_hash=2).groups
    assert [last_chunk(group, tokens, 6) for tokens in (0, 3, 4, 11, 12, 99)] == [
        *(0, 0, 1, 2, 3, 3)
    ]


@pytest.mark.parametrize(
    ("cursors", "tokens", "most", "first"),
    [
        ([0, 0, 0], 0, NEVER, 4),
        ([2, 0, 0], 8, NEVER, 6),
        ([2, 1, 0], 8, NEVER, 12),
        ([2, 1, 0], 8, 11, NEVER),
        ([3, 1, 0], 12, 12, 12),
    ],
)
def test_when_the_next_chunk_is_complete(
    cursors: list[int], tokens: int, most: int, first: int
) -> None:
    geometry = sizes(full(4), window(6, 8), recurrent(2), tokens_per_hash=2)
    assert due(geometry, cursors, tokens, most) == first


def test_a_drafter_is_due_one_token_later() -> None:
    geometry = sizes(full(4, draft=True))
    assert due(geometry, [0], 4) == 5
    assert due(geometry, [0], 4, 4) == 5
    assert due(geometry, [1], 6) == 8
    assert due(geometry, [1], 6, 7) == NEVER


def _offered(
    group: Group, blocks: list[int], first: int = 0, alignment: int = 0, partial: int = 1
) -> list[Chunk]:
    return chunks_on_offer(group, _HASHES, blocks, first, alignment, partial)


def test_whole_chunks_are_offered_under_their_last_hashes() -> None:
    (group,) = sizes(full(2), blocks_per_chunk=2, tokens_per_hash=1).groups
    assert _offered(group, [7, 8, 9, 10, 11], first=1) == [
        Chunk(group, 1, key(0, 7), [7, 8], 0, 8),
        Chunk(group, 2, key(0, 11), [9, 10], 0, 12),
    ]


def test_a_chunk_whose_window_has_left_its_first_blocks_is_offered_without_them() -> None:
    (group,) = sizes(window(2, 3), blocks_per_chunk=3).groups
    blocks = [0, 0, 0, 0, 5, 6, 0, 7, 0, 8, 0, 9]
    assert _offered(group, blocks) == [Chunk(group, 1, key(0, 11), [5, 6], 1, 12)]
    assert _offered(group, blocks, partial=0) == []


def test_a_chunk_of_full_attention_has_all_its_blocks() -> None:
    (group,) = sizes(full(2), blocks_per_chunk=2).groups
    assert _offered(group, [0, 5, 6, 7]) == [Chunk(group, 1, key(0, 7), [6, 7], 0, 8)]


def test_a_state_is_the_last_block_of_its_chunk() -> None:
    (group,) = sizes(recurrent(2), blocks_per_chunk=2).groups
    assert _offered(group, [0, 3, 4, 0], partial=0) == [Chunk(group, 0, key(0, 3), [3], 1, 4)]


def test_what_no_boundary_reads_is_left_out() -> None:
    geometry = sizes(full(8), chunked(2, 4), tokens_per_hash=2)
    group = geometry.groups[1]
    assert geometry.alignment == 8
    assert [serves(group, chunk, 8) for chunk in range(8)] == [False] * 8
    geometry = sizes(full(8), window(2, 4), tokens_per_hash=2)
    group = geometry.groups[1]
    offered = _offered(group, [1, 2, 3, 4, 5, 6, 7, 8], alignment=8)
    assert [chunk.number for chunk in offered] == [2, 3, 6, 7]


@given(geometries(), st.data())
def test_part_of_a_chunk_is_offered_if_some_aligned_start_reads_no_more(
    geometry: Geometry, data: st.DataObject
) -> None:
    group = data.draw(st.sampled_from(geometry.groups))
    chunk = data.draw(st.integers(0, 12))
    missing = data.draw(st.integers(1, group.blocks_per_chunk))
    start, size = chunk * group.tokens_per_chunk, group.tokens_per_chunk
    there = start + missing * group.tokens_per_block
    boundaries = range(geometry.alignment, 60 * geometry.alignment, geometry.alignment)
    useful = any(
        start < boundary and there <= group.first_needed(boundary) < start + size
        for boundary in boundaries
    )
    if group.kind in (Kind.FULL, Kind.RECURRENT):
        useful = False
    assert serves_in_part(group, chunk, missing, geometry.alignment) == useful
