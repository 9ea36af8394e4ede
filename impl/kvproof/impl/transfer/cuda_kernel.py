"""Loads of small pages by a kernel on a few of the GPU's processors.

A copy engine takes as long to begin a copy as to move some tens of KiB. Processors of the GPU read
pinned host memory themselves, many pages at once; a few of them fill the bus, and the model keeps
the rest. The kernel takes a plan as it is kept, tensors and runs apart: what goes up to the GPU
beforehand grows with tensors plus runs, not with their product.

This module imports PyTorch and Triton. Import it only where there is a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from kvproof.impl.transfer.plan import CopyPlan, Grid

WORD = 8
"""Bytes that a thread copies at once: addresses and sizes must be multiples."""

PROGRAMS = 16
"""Programs of a launch, and so the most processors that are busy."""

SMALL = 16 << 10
"""Bytes from which on a run is left to the copy engines."""

FEW = 16
"""Copies up to which they are left to the copy engines, too."""


@triton.jit  # type: ignore[untyped-decorator]
def _copy_grid(  # type: ignore[no-untyped-def] # Triton reads the types of its own arguments
    sources,
    targets,
    source_runs,
    target_runs,
    sizes,
    tensors,
    runs,
    WORDS: tl.constexpr,
):
    lanes = tl.arange(0, WORDS)
    for copy in range(tl.program_id(0), tensors * runs, tl.num_programs(0)):
        tensor = copy // runs
        run = copy % runs
        source = tl.load(sources + tensor) + tl.load(source_runs + run)
        target = tl.load(targets + tensor) + tl.load(target_runs + run)
        words = tl.load(sizes + run) // 8
        read = source.to(tl.pointer_type(tl.int64))
        written = target.to(tl.pointer_type(tl.int64))
        for first in range(0, words, WORDS):
            places = first + lanes
            inside = places < words
            tl.store(written + places, tl.load(read + places, mask=inside), mask=inside)


@dataclass(frozen=True, slots=True)
class SmallPages:
    """Copies by kernel on one GPU."""

    device: int

    def takes(self, plan: CopyPlan) -> bool:
        """Is every copy small and made of whole words, and are there enough of them?"""
        return plan.largest < SMALL and plan.count > FEW and all(map(_in_words, plan.grids))

    def __call__(self, stream: int, plan: CopyPlan) -> Any:
        """Launch it; returns what must live until it has ended."""
        held: list[Any] = []
        with torch.cuda.stream(torch.cuda.ExternalStream(stream, device=self.device)):
            for grid in plan.grids:
                held.append(self._launch(grid))
        return held

    def _launch(self, grid: Grid) -> Any:
        arrays = (grid.sources, grid.targets, grid.source_runs, grid.target_runs, grid.sizes)
        staged = torch.from_numpy(np.concatenate(arrays)).pin_memory()
        there = staged.to(f"cuda:{self.device}", non_blocking=True)
        tensors, runs = len(grid.sources), len(grid.sizes)
        words = min(triton.next_power_of_2(max(grid.largest // WORD, 1)), 1024)
        _copy_grid[(min(PROGRAMS, tensors * runs),)](
            *torch.split(there, [tensors, tensors, runs, runs, runs]),
            tensors,
            runs,
            WORDS=words,
        )
        return staged, there


def _in_words(grid: Grid) -> bool:
    arrays = (grid.sources, grid.targets, grid.source_runs, grid.target_runs, grid.sizes)
    return not any(int(np.bitwise_or.reduce(array)) % WORD for array in arrays)
