"""The bytes of a tier in host memory, and where they and the KV caches in host memory lie."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from kvproof.impl.transfer.layout import Layout, Tensor
from kvproof.impl.transfer.pieces import Pieces
from kvproof.impl.transfer.plan import plan_load, plan_store
from kvproof.impl.transfer.runs import Bytes, copy

__all__ = ["Bytes", "HostMemory", "Part"]


@dataclass(frozen=True, slots=True)
class Part:
    """What a group's blocks have in one region: the first ``size`` bytes of a page."""

    region: int
    size: int


class HostMemory:
    """A tier's slots, and the KV caches that they are copied from and to.

    Attributes:
        regions: views of the KV caches, each of shape (blocks, bytes of a page); they may share
            memory, and pages need not follow each other.
        parts: per group, where its blocks lie. What a page has beyond a part's size is padding.
        chunks: per region, the tier's bytes, of shape (slots, blocks of a chunk, bytes of a page).
        layout: the addresses of all that.
    """

    def __init__(
        self,
        regions: Sequence[Bytes],
        parts: Sequence[Sequence[Part]],
        slots: int,
        blocks_per_chunk: int,
        chunks: Sequence[Bytes] | None = None,
    ) -> None:
        """``chunks`` is allocated where it is not given, and taken from the system bit by bit.

        Raises:
            ValueError: a region is not two-dimensional or its bytes are strewn, regions differ in
                their blocks, a part does not fit into its region or overlaps another, or ``chunks``
                have other shapes.
        """
        for region in regions:
            if region.ndim != 2:
                raise ValueError(f"a region has shape {region.shape}, not (blocks, bytes)")
            if region.itemsize != 1 or region.strides[1] != 1:
                raise ValueError("the bytes of a region's pages do not follow each other")
        blocks = {len(region) for region in regions}
        if len(blocks) != 1:
            raise ValueError(f"regions of {sorted(blocks)} blocks, not of one number")
        for part in (part for group in parts for part in group):
            if not 0 < part.size <= regions[part.region].shape[1]:
                raise ValueError(
                    f"{part.size} bytes do not fit into a page of {regions[part.region].shape[1]}"
                )
        self.regions = tuple(regions)
        self.parts = tuple(tuple(group) for group in parts)
        shapes = [(slots, blocks_per_chunk, region.shape[1]) for region in regions]
        if chunks is None:
            chunks = [np.zeros(shape, np.int8) for shape in shapes]
        elif [chunk.shape for chunk in chunks] != shapes:
            raise ValueError(f"chunks are {[chunk.shape for chunk in chunks]}, not {shapes}")
        self.chunks = tuple(chunks)
        groups = [[self._tensor(part) for part in group] for group in parts]
        self.layout = Layout(groups, blocks.pop(), slots, blocks_per_chunk)

    def _tensor(self, part: Part) -> Tensor:
        region, chunks = self.regions[part.region], self.chunks[part.region]
        slot_stride, piece_stride = chunks.strides[:2]
        return Tensor(
            region.ctypes.data,
            chunks.ctypes.data,
            part.size,
            region.strides[0],
            slot_stride,
            piece_stride,
        )

    def store(self, moved: Iterable[Pieces]) -> int:
        """Copy from the KV caches to the tier, here and now; the number of bytes.

        Raises:
            IndexError: a block or a slot that does not exist; nothing is copied then.
        """
        plan = plan_store(self.layout, list(moved))
        copy(plan)
        return plan.size

    def load(self, moved: Iterable[Pieces]) -> int:
        """Copy from the tier to the KV caches, here and now; the number of bytes.

        Raises:
            IndexError: a block or a slot that does not exist; nothing is copied then.
        """
        plan = plan_load(self.layout, list(moved))
        copy(plan)
        return plan.size
