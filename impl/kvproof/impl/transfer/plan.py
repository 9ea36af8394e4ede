"""What one job copies: addresses and sizes, with copies that follow each other made into one.

A plan is kept as it is thought of: every *run* of pieces, in every tensor of a family. Addresses
of single copies are sums of a tensor's base and a run's offset, and are written out, a cache's
worth at a time, only for those who need them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kvproof.impl.transfer.layout import Family, Layout
from kvproof.impl.transfer.pieces import Ids, Pieces

BATCH = 16384
"""Copies of a batch: 384 KiB of addresses and sizes, which stay in a core's own cache."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Every run in every tensor: from ``sources[t] + source_runs[r]`` to the same of the target.

    Attributes:
        sources: address of the source of each tensor.
        targets: address of the target of each tensor.
        source_runs: offset of each run at the source.
        target_runs: offset of each run at the target.
        sizes: bytes of each run; one number for all of them where that is so (of stride 0).
        largest: bytes of the largest run.
    """

    sources: Ids
    targets: Ids
    source_runs: Ids
    target_runs: Ids
    sizes: Ids
    largest: int

    @property
    def count(self) -> int:
        """How many copies these are."""
        return len(self.sources) * len(self.sizes)


@dataclass(frozen=True, slots=True)
class Batch:
    """Copies: ``sizes[i]`` bytes from address ``sources[i]`` to ``targets[i]``; all int64."""

    sources: Ids
    targets: Ids
    sizes: Ids


class Scratch:
    """Room for the addresses of one batch after the other."""

    def __init__(self, limit: int = BATCH) -> None:
        """``limit``: copies of a batch, at least 1."""
        self.limit = limit
        self.sources, self.targets, self.sizes = np.empty((3, limit), np.int64)
        self._all: int | None = None

    def fill(self, sizes: Ids, rows: int) -> None:
        """The sizes of a batch: so many rows of these. They mostly are what they were."""
        if sizes.strides == (0,):
            size = int(sizes[0])
            if size != self._all:
                self.sizes[:] = self._all = size
        else:
            self._all = None
            self.sizes[: rows * len(sizes)].reshape(rows, -1)[:] = sizes


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """All that one job copies.

    Attributes:
        grids: the copies.
        size: the bytes.
    """

    grids: tuple[Grid, ...]
    size: int

    @property
    def count(self) -> int:
        """How many copies these are."""
        return sum(grid.count for grid in self.grids)

    @property
    def largest(self) -> int:
        """Bytes of the largest copy; 0 for an empty plan."""
        return max((grid.largest for grid in self.grids), default=0)

    def batches(self, scratch: Scratch) -> Iterator[Batch]:
        """The copies, some at a time: to be read, and before the next ones are asked for."""
        for grid in self.grids:
            yield from _batches(grid, scratch)

    def arrays(self) -> Batch:
        """The copies, all at once."""
        if not self.grids:
            return Batch(*np.empty((3, 0), np.int64))
        return Batch(
            np.concatenate([np.add.outer(g.sources, g.source_runs).ravel() for g in self.grids]),
            np.concatenate([np.add.outer(g.targets, g.target_runs).ravel() for g in self.grids]),
            np.concatenate([np.tile(g.sizes, len(g.sources)) for g in self.grids]),
        )


def _batches(grid: Grid, scratch: Scratch) -> Iterator[Batch]:
    """Several tensors a batch where their runs fit, several batches a tensor where they do not.

    The addresses of the next tensors are those of the last ones, moved: one array to go through
    instead of two.
    """
    count, runs = len(grid.sources), len(grid.sizes)
    step = min(runs, scratch.limit)
    rows = min(scratch.limit // step, count)
    source_steps = (grid.sources[rows:] - grid.sources[:-rows])[:, None]
    target_steps = (grid.targets[rows:] - grid.targets[:-rows])[:, None]
    for first in range(0, runs, step):
        width = min(step, runs - first)
        flat = [side[: rows * width] for side in (scratch.sources, scratch.targets, scratch.sizes)]
        sources, targets, _ = (side.reshape(rows, width) for side in flat)
        scratch.fill(grid.sizes[first : first + width], rows)
        np.add(grid.sources[:rows, None], grid.source_runs[first : first + width], out=sources)
        np.add(grid.targets[:rows, None], grid.target_runs[first : first + width], out=targets)
        whole = Batch(*flat)
        yield whole
        for row in range(0, count - rows, rows):
            last = count - rows - row
            if last < rows:
                sources, targets = sources[:last], targets[:last]
                whole = Batch(*(side[: last * width] for side in flat))
            np.add(sources, source_steps[row : row + rows], out=sources)
            np.add(targets, target_steps[row : row + rows], out=targets)
            yield whole


def plan_store(layout: Layout, moved: Sequence[Pieces]) -> CopyPlan:
    """From the device to the tier.

    Raises:
        IndexError: a group, a block or a slot that does not exist.
    """
    return _plan(layout, moved, store=True)


def plan_load(layout: Layout, moved: Sequence[Pieces]) -> CopyPlan:
    """From the tier to the device.

    Raises:
        IndexError: a group, a block or a slot that does not exist.
    """
    return _plan(layout, moved, store=False)


def _plan(layout: Layout, moved: Sequence[Pieces], store: bool) -> CopyPlan:
    grids, size = [], 0
    for one in moved:
        if not 0 <= one.group < len(layout.families):
            raise IndexError(f"group {one.group} of {len(layout.families)}")
        if not len(one.blocks):
            continue
        _within(one.blocks, layout.blocks, "block")
        _within(one.slots, layout.slots, "slot")
        layered = layout.blocks_per_chunk > 1
        if layered or one.offsets.strides != (0,):
            _within(one.offsets, layout.blocks_per_chunk, "piece")
        grids += [_grid(family, one, layered, store) for family in layout.families[one.group]]
        size += len(one.blocks) * layout.bytes_per_block[one.group]
    return CopyPlan(tuple(grids), size)


def _within(ids: Ids, count: int, what: str) -> None:
    # A negative number is a very large one without its sign: one pass finds both.
    if int(ids.view(np.uint64).max()) >= count:
        raise IndexError(f"{what}s {int(ids.min())} to {int(ids.max())} of {count}")


def _grid(family: Family, one: Pieces, layered: bool, store: bool) -> Grid:
    """``layered``: chunks have more than one block."""
    device = one.blocks * family.block_stride
    host = one.slots * family.slot_stride
    if layered:
        host += one.offsets * family.piece_stride
    size, largest = family.size, family.size
    sizes: Ids = np.broadcast_to(np.int64(size), len(device))
    # Pages with something between them never touch: block_stride == size is what it takes.
    follows = device[1:] - device[:-1] == size if family.block_stride == size else None
    if follows is not None and follows.any():
        follows &= host[1:] - host[:-1] == size
        starts = np.concatenate(([0], np.flatnonzero(~follows) + 1))
        device, host = device[starts], host[starts]
        sizes = np.diff(starts, append=len(follows) + 1) * size
        largest = int(sizes.max())
    if store:
        return Grid(family.device, family.host, device, host, sizes, largest)
    return Grid(family.host, family.device, host, device, sizes, largest)
