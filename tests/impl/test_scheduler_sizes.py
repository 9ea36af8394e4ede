"""Sizes, the fence and jobs: what the scheduler counts with."""

from __future__ import annotations

import pytest

from kvproof.impl.scheduler.fence import Fence
from kvproof.impl.scheduler.geometry import Group, Kind, geometry
from kvproof.impl.scheduler.jobs import JobTable

from .small_world import chunked, full, recurrent, sizes, window


def test_boundaries_of_all_groups_meet_at_the_least_common_multiple_of_their_chunks() -> None:
    made = sizes(full(4), window(6, 10), recurrent(8), blocks_per_chunk=2, tokens_per_hash=2)
    assert made.alignment == 48
    assert [group.tokens_per_chunk for group in made.groups] == [8, 12, 16]
    assert [group.hashes_per_chunk for group in made.groups] == [4, 6, 8]
    assert [group.place for group in made.prefix] == [0]
    assert [group.place for group in made.suffix] == [1, 2]


def test_a_group_may_have_another_number_than_its_place() -> None:
    made = geometry([(3, Kind.FULL, 16, 0, False)], 1, 16)
    assert (made.groups[0].index, made.groups[0].place) == (3, 0)
    assert made.groups[0].suffix == b"\0\0\0\3"


@pytest.mark.parametrize(
    ("groups", "blocks_per_chunk", "tokens_per_hash", "told"),
    [
        ([], 1, 1, "there is no KV-cache group to offload"),
        ([(0, *full(4))], 0, 1, "blocks_per_chunk and tokens_per_hash must be at least 1"),
        ([(0, *full(4))], 1, 0, "blocks_per_chunk and tokens_per_hash must be at least 1"),
        (
            [(2, *full(6))],
            1,
            4,
            "group 2: a chunk of 6 tokens is not a multiple of 4, the tokens of a block hash",
        ),
        ([(1, *window(4, 0))], 1, 4, "group 1: a window group needs a window"),
        ([(1, *chunked(4, 0))], 1, 4, "group 1: a chunked group needs a window"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(
    groups: list[tuple[int, Kind, int, int, bool]],
    blocks_per_chunk: int,
    tokens_per_hash: int,
    told: str,
) -> None:
    with pytest.raises(ValueError) as refused:
        geometry(groups, blocks_per_chunk, tokens_per_hash)
    assert str(refused.value) == told


@pytest.mark.parametrize(
    ("kind", "window", "needed"),
    [
        (Kind.FULL, 0, [0, 0, 0, 0]),
        (Kind.WINDOW, 4, [0, 1, 2, 6]),
        (Kind.CHUNKED, 4, [0, 4, 4, 8]),
        (Kind.RECURRENT, 0, [2, 3, 4, 8]),
    ],
)
def test_the_first_position_that_a_forward_reads(
    kind: Kind, window: int, needed: list[int]
) -> None:
    group = Group(0, 0, kind, 1, window)
    assert [group.first_needed(boundary) for boundary in (3, 4, 5, 9)] == needed


def test_a_fence_names_the_stores_that_read_a_block() -> None:
    fence = Fence()
    fence.add([1, 2], 7)
    fence.add([2, 3], 8)
    assert fence.jobs([2]) == {7, 8}
    assert fence.jobs([1, 3]) == {7, 8}
    assert fence.jobs([4]) == set()
    fence.remove([1, 2], 7)
    fence.remove([1, 9], 7)
    assert (fence.jobs([1, 2]), len(fence)) == ({8}, 2)
    fence.clear()
    assert (fence.jobs([2, 3]), len(fence)) == (set(), 0)


def test_a_job_ends_with_the_report_of_the_last_worker() -> None:
    jobs = JobTable(workers=3)
    job = jobs.issue("r", "context", [b"k"], True, [5])
    assert (job.number, jobs.oldest()) == (0, 0)
    assert jobs.report(0, 1, False) is None
    assert jobs.report(0, 1, True) is None
    assert jobs.report(0, 1, False) is job
    assert job.failed
    assert jobs.live == {}
    assert jobs.oldest() == 1
    assert jobs.report(0, 1, False) is None
    assert jobs.report(99, 1, False) is None


def test_a_reset_kills_jobs_and_their_numbers_are_told_once() -> None:
    jobs = JobTable(workers=1)
    for _ in range(2):
        jobs.issue("r", None, [], False, ())
    jobs.kill_all()
    assert jobs.report(0, 1, False) is None
    assert jobs.take_dead() == {0, 1}
    assert jobs.take_dead() == set()
    assert jobs.issue("r", None, [], False, ()).number == 2
