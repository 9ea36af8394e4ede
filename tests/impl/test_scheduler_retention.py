"""What is kept of windows and states when the engine keeps only some boundaries of a prompt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvproof.impl.scheduler.geometry import Geometry, Group, Kind
from kvproof.impl.scheduler.plan import Transfer
from kvproof.impl.scheduler.retention import Retention
from kvproof.model import functions

from .small_world import SmallRequest, World, chunked, full, key, recurrent, sizes, window

_KINDS = {
    Kind.WINDOW: functions.WINDOW,
    Kind.CHUNKED: functions.CHUNKED,
    Kind.RECURRENT: functions.RECURRENT,
}


@st.composite
def geometries(draw: st.DrawFn) -> Geometry:
    size = st.sampled_from([1, 2, 4])
    groups = draw(
        st.lists(
            st.one_of(
                st.builds(full, size),
                st.builds(window, size, st.integers(1, 9)),
                st.builds(chunked, size, st.integers(1, 9)),
                st.builds(recurrent, size),
            ),
            min_size=1,
            max_size=3,
        )
    )
    return sizes(*groups, blocks_per_chunk=draw(st.integers(1, 2)))


def needed(group: Group, boundary: int, chunk: int) -> bool:
    """Whether a start at a boundary reads from a chunk, by the proved function."""
    return functions.needed_chunk(
        _KINDS[group.kind],
        group.window or 1,
        group.tokens_per_block,
        group.blocks_per_chunk,
        boundary,
        chunk,
    )


@given(geometries(), st.integers(0, 3), st.integers(1, 60), st.integers(0, 60), st.integers(0, 40))
def test_a_chunk_is_kept_when_a_likely_boundary_needs_it(
    geometry: Geometry, intervals: int, prompt: int, shared: int, chunk: int
) -> None:
    alignment = geometry.alignment
    retention = Retention.of(geometry, intervals * alignment)
    assert retention is not None
    request = SmallRequest("a", prompt, shared_prefix_boundary=shared)
    likely = {(prompt - 1) // alignment * alignment, shared // alignment * alignment}
    if intervals:
        likely |= set(range(0, 400, intervals * alignment))
    for group in geometry.groups:
        kept = group.kind is Kind.FULL or any(
            needed(group, boundary, chunk) for boundary in likely - {0}
        )
        assert retention.keeps(request, group, chunk) == kept


def test_the_engine_s_word_for_all_keeps_all() -> None:
    assert Retention.of(sizes(window(2, 3)), None) is None


@pytest.mark.parametrize(
    ("retention", "windowed"),
    [
        (None, {0: 11, 1: 12, 2: 13, 3: 14, 4: 15}),
        (0, {3: 14}),
        (4, {1: 12, 3: 14}),
    ],
)
def test_a_window_is_stored_where_the_prompt_may_be_taken_up(
    retention: int | None, windowed: dict[int, int]
) -> None:
    world = World(sizes(full(2), window(2, 3)), retention=retention)
    world.add(SmallRequest("a", 10))
    world.table("a", [1, 2, 3, 4, 5], [11, 12, 13, 14, 15])
    plan = world.step({"a": 10})
    keys = [key(0, last) for last in (1, 3, 5, 7, 9)]
    keys += [key(1, 2 * chunk + 1) for chunk in windowed]
    blocks = [1, 2, 3, 4, 5, *windowed.values()]
    firsts = [0, min(windowed)]
    assert plan.stores == {0: Transfer("a", blocks, [5, len(windowed)], firsts, tuple(keys))}


def test_where_others_branch_off_is_stored_too() -> None:
    world = World(sizes(full(2), window(2, 3)), retention=0)
    world.add(SmallRequest("a", 10, shared_prefix_boundary=5))
    world.table("a", [1, 2, 3, 4, 5], [11, 12, 13, 14, 15])
    plan = world.step({"a": 10})
    assert plan.stores[0].blocks == [1, 2, 3, 4, 5, 12, 14]


def test_a_state_inside_a_chunk_s_blocks_is_stored_when_a_step_ends_with_it() -> None:
    # The engine hands over states at the ends of blocks; that of the chunk is read off the table.
    world = World(sizes(recurrent(2), blocks_per_chunk=2), retention=0)
    world.add(SmallRequest("a", 9))
    world.table("a", [0, 5])
    assert world.step({"a": 4}).stores == {}
    world.table("a", [0, 5, 6, 7])
    assert world.step({"a": 4}, handed={"a": [(0, 6, 6)]}).stores == {
        0: Transfer("a", [7], [1], [3], (key(0, 7),))
    }


def test_a_state_is_not_read_off_the_table_while_drafts_are_computed() -> None:
    world = World(sizes(recurrent(2), blocks_per_chunk=2), retention=0, speculating=True)
    world.add(SmallRequest("a", 5))
    world.table("a", [0, 5])
    assert world.step({"a": 4}).stores == {}
    world.finish("a")
    assert world.step({}).stores == {}
