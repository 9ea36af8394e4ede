"""Copies within host memory, carried out with as few passes over the bytes as numpy allows.

Numpy does not hold the interpreter while it copies, so each call is made to copy much. One pass is
enough where one of the two sides is in order, as the slots of a job mostly are: the other side is
then gathered or scattered. Only where neither is do small pages go through a buffer.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kvproof.impl.transfer.pieces import Ids
from kvproof.impl.transfer.plan import CopyPlan, Grid

Bytes = npt.NDArray[np.int8]

LARGE = 64 << 10
"""Bytes from which on a run is worth a call of its own."""

BUFFER = 4 << 20
"""Bytes of the buffer for pages that are in order on neither side."""

WORTH_SEGMENTS = 8
"""Pages of a segment from which on segments are copied one by one."""


def copy(plan: CopyPlan) -> None:
    """Carry out all copies; their addresses are this process's."""
    for grid in plan.grids:
        if int(grid.sizes.sum()) >= LARGE * len(grid.sizes):
            _copy_runs(grid)
        else:
            _copy_pages(grid)


def _copy_runs(grid: Grid) -> None:
    runs = list(
        zip(grid.source_runs.tolist(), grid.target_runs.tolist(), grid.sizes.tolist(), strict=True)
    )
    for source, target in zip(grid.sources.tolist(), grid.targets.tolist(), strict=True):
        for from_offset, to_offset, size in runs:
            ctypes.memmove(target + to_offset, source + from_offset, size)


@dataclass(frozen=True, slots=True)
class _Side:
    """Pages of ``size`` bytes at ``offset + step * places`` from a tensor's address."""

    size: int
    offset: int
    step: int
    places: Ids

    @property
    def breaks(self) -> Ids:
        """Where a page does not follow the one before it."""
        apart = np.diff(self.places) * self.step != self.size
        return np.flatnonzero(apart) + 1

    def rows(self, address: int) -> Bytes:
        """All pages that there are from the first place to the last, as rows; they may overlap."""
        count = int(self.places.max()) + 1
        room = (ctypes.c_int8 * ((count - 1) * self.step + self.size)).from_address(
            address + self.offset
        )
        return np.ndarray((count, self.size), np.int8, memoryview(room), strides=(self.step, 1))


def _side(offsets: Ids, size: int) -> _Side:
    first = int(offsets.min())
    away = offsets - first
    step = int(np.gcd.reduce(away))
    if step % size == 0:
        step = size
    return _Side(size, first, step, away // step)


def _copy_pages(grid: Grid) -> None:
    size = int(np.gcd.reduce(grid.sizes))
    source_offsets, target_offsets = _pages(grid, size)
    source, target = _side(source_offsets, size), _side(target_offsets, size)
    pages = len(source.places)
    if source.step == size and len(target.breaks) * WORTH_SEGMENTS <= pages:
        _gather(grid, source, target)
    elif len(source.breaks) * WORTH_SEGMENTS <= pages:
        _scatter(grid, source, target)
    else:
        _through_buffer(grid, source, target)


def _pages(grid: Grid, size: int) -> tuple[Ids, Ids]:
    """The offsets of single pages, in the order of their targets."""
    sources, targets = grid.source_runs, grid.target_runs
    if grid.largest > size:
        counts = grid.sizes // size
        within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        sources = np.repeat(sources, counts) + within * size
        targets = np.repeat(targets, counts) + within * size
    if (targets[1:] < targets[:-1]).any():
        order = np.argsort(targets)
        sources, targets = sources[order], targets[order]
    return sources, targets


def _segments(side: _Side) -> list[tuple[int, int]]:
    ends = [*side.breaks.tolist(), len(side.places)]
    return list(zip([0, *ends[:-1]], ends, strict=True))


def _together(address: int, side: _Side, first: int, last: int) -> Bytes:
    """The pages of one segment, which follow each other."""
    start = address + side.offset + int(side.places[first]) * side.step
    room = (ctypes.c_int8 * ((last - first) * side.size)).from_address(start)
    return np.ndarray((last - first, side.size), np.int8, memoryview(room))


def _gather(grid: Grid, source: _Side, target: _Side) -> None:
    segments = _segments(target)
    for from_address, to_address in zip(grid.sources.tolist(), grid.targets.tolist(), strict=True):
        rows = source.rows(from_address)
        for first, last in segments:
            out = _together(to_address, target, first, last)
            # Indices are in range; only with "clip" does numpy write without a buffer of its own.
            np.take(rows, source.places[first:last], axis=0, out=out, mode="clip")


def _scatter(grid: Grid, source: _Side, target: _Side) -> None:
    segments = _segments(source)
    for from_address, to_address in zip(grid.sources.tolist(), grid.targets.tolist(), strict=True):
        rows = target.rows(to_address)
        for first, last in segments:
            rows[target.places[first:last]] = _together(from_address, source, first, last)


def _through_buffer(grid: Grid, source: _Side, target: _Side) -> None:
    step = max(1, BUFFER // source.size)
    for from_address, to_address in zip(grid.sources.tolist(), grid.targets.tolist(), strict=True):
        read, written = source.rows(from_address), target.rows(to_address)
        for first in range(0, len(source.places), step):
            places = slice(first, first + step)
            written[target.places[places]] = read[source.places[places]]
