"""Copies within host memory, carried out with as few passes over the bytes as numpy allows.

Numpy does not hold the interpreter while it copies, so each call is made to copy much. One pass is
enough where one of the two sides is in order, as the slots of a job mostly are: the other side is
then gathered or scattered. Only where neither is do small pages go through a buffer.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from kvproof.impl.transfer.pieces import Ids
from kvproof.impl.transfer.plan import CopyPlan, Grid

Bytes = npt.NDArray[np.int8]

LARGE = 32 << 10
"""Bytes from which on a stretch is worth a call of its own."""

BUFFER = 4 << 20
"""Bytes of the buffer for pages that are in order on neither side."""


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


@dataclass(frozen=True)
class _Side:
    """Pages of ``size`` bytes at ``offset + step * places`` from a tensor's address."""

    size: int
    offset: int
    step: int
    places: Ids

    @cached_property
    def segments(self) -> list[tuple[int, int]]:
        """Stretches in which each page follows the one before it, as (first, end)."""
        apart = np.diff(self.places) * self.step != self.size
        ends = [*(np.flatnonzero(apart) + 1).tolist(), len(self.places)]
        return list(zip([0, *ends[:-1]], ends, strict=True))

    @property
    def in_order(self) -> bool:
        """Are the stretches long enough to be copied one by one?"""
        return len(self.segments) * LARGE <= len(self.places) * self.size or (
            len(self.segments) == 1
        )

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
    sources, targets = _pages(grid, size)
    for key in (None, targets, sources):
        if key is not None:
            order = np.argsort(key)
            sources, targets = sources[order], targets[order]
        source, target = _side(sources, size), _side(targets, size)
        if source.step == size and target.in_order:
            return _gather(grid, source, target)
        if source.in_order:
            return _scatter(grid, source, target)
    return _through_buffer(grid, source, target)


def _pages(grid: Grid, size: int) -> tuple[Ids, Ids]:
    """The offsets of single pages."""
    sources, targets = grid.source_runs, grid.target_runs
    if grid.largest > size:
        counts = grid.sizes // size
        within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        sources = np.repeat(sources, counts) + within * size
        targets = np.repeat(targets, counts) + within * size
    return sources, targets


def _together(address: int, side: _Side, first: int, last: int) -> Bytes:
    """The pages of one segment, which follow each other."""
    start = address + side.offset + int(side.places[first]) * side.step
    room = (ctypes.c_int8 * ((last - first) * side.size)).from_address(start)
    return np.ndarray((last - first, side.size), np.int8, memoryview(room))


def _gather(grid: Grid, source: _Side, target: _Side) -> None:
    for from_address, to_address in zip(grid.sources.tolist(), grid.targets.tolist(), strict=True):
        rows = source.rows(from_address)
        for first, last in target.segments:
            out = _together(to_address, target, first, last)
            # Indices are in range; only with "clip" does numpy write without a buffer of its own.
            np.take(rows, source.places[first:last], axis=0, out=out, mode="clip")


def _scatter(grid: Grid, source: _Side, target: _Side) -> None:
    for from_address, to_address in zip(grid.sources.tolist(), grid.targets.tolist(), strict=True):
        rows = target.rows(to_address)
        for first, last in source.segments:
            rows[target.places[first:last]] = _together(from_address, source, first, last)


def _through_buffer(grid: Grid, source: _Side, target: _Side) -> None:
    step = max(1, BUFFER // source.size)
    for from_address, to_address in zip(grid.sources.tolist(), grid.targets.tolist(), strict=True):
        read, written = source.rows(from_address), target.rows(to_address)
        for first in range(0, len(source.places), step):
            places = slice(first, first + step)
            written[target.places[places]] = read[source.places[places]]
