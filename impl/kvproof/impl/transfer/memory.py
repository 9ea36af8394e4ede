"""The bytes of a tier in host memory, and where they and the KV caches lie."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from kvproof.impl.transfer.layout import Layout, Tensor
from kvproof.impl.transfer.pieces import Pieces
from kvproof.impl.transfer.plan import plan_load, plan_store
from kvproof.impl.transfer.runs import Bytes, copy

__all__ = ["Bytes", "HostMemory", "Part", "Region", "Tier", "zeros"]


@dataclass(frozen=True, slots=True)
class Part:
    """What a group's blocks have in one region: the first ``size`` bytes of a page."""

    region: int
    size: int


@dataclass(frozen=True, slots=True)
class Region:
    """Pages of a KV cache, on whatever device: block ``b`` begins at ``address + b * stride``.

    Attributes:
        page: bytes of a page, at most ``stride``.
    """

    address: int
    blocks: int
    page: int
    stride: int


class Tier:
    """A tier's slots in host memory, for KV caches anywhere.

    Attributes:
        parts: per group, where its blocks lie, each region once: layers of a group may share one.
            What a page has beyond a part's size is padding.
        chunks: per region, the tier's bytes, of shape (slots, blocks of a chunk, bytes of a page).
        layout: the addresses on both sides.
    """

    def __init__(
        self,
        regions: Sequence[Region],
        parts: Sequence[Sequence[Part]],
        slots: int,
        blocks_per_chunk: int,
        chunks: Sequence[Bytes] | None = None,
    ) -> None:
        """Where ``chunks`` is not given, the system gives their memory as it is first written.

        Raises:
            ValueError: regions differ in their blocks, a part does not fit into its region or
                overlaps another, or ``chunks`` have other shapes.
        """
        blocks = {region.blocks for region in regions}
        if len(blocks) != 1:
            raise ValueError(f"regions of {sorted(blocks)} blocks, not of one number")
        for part in (part for group in parts for part in group):
            if not 0 < part.size <= regions[part.region].page:
                raise ValueError(
                    f"{part.size} bytes do not fit into a page of {regions[part.region].page}"
                )
        self.parts = tuple(_distinct(group) for group in parts)
        shapes = [(slots, blocks_per_chunk, region.page) for region in regions]
        if chunks is None:
            chunks = [zeros(shape) for shape in shapes]
        elif [chunk.shape for chunk in chunks] != shapes:
            raise ValueError(f"chunks of {[chunk.shape for chunk in chunks]}, not of {shapes}")
        self.chunks = tuple(chunks)
        groups = [
            [self._tensor(part, regions[part.region]) for part in group] for group in self.parts
        ]
        self.layout = Layout(groups, blocks.pop(), slots, blocks_per_chunk)

    def _tensor(self, part: Part, region: Region) -> Tensor:
        chunks = self.chunks[part.region]
        slot_stride, piece_stride = chunks.strides[:2]
        return Tensor(
            region.address,
            chunks.ctypes.data,
            part.size,
            region.stride,
            slot_stride,
            piece_stride,
        )


class HostMemory(Tier):
    """A tier's slots, and KV caches in host memory that they are copied from and to.

    Attributes:
        regions: views of the KV caches, each of shape (blocks, bytes of a page); they may share
            memory, and pages need not follow each other.
    """

    def __init__(
        self,
        regions: Sequence[Bytes],
        parts: Sequence[Sequence[Part]],
        slots: int,
        blocks_per_chunk: int,
        chunks: Sequence[Bytes] | None = None,
    ) -> None:
        """See ``Tier``.

        Raises:
            ValueError: like ``Tier``, or a region is not two-dimensional or its bytes are strewn.
        """
        for region in regions:
            if region.ndim != 2:
                raise ValueError(f"a region has shape {region.shape}, not (blocks, bytes)")
            if region.itemsize != 1 or region.strides[1] != 1:
                raise ValueError("the bytes of a region's pages do not follow each other")
        self.regions = tuple(regions)
        places = [Region(r.ctypes.data, len(r), r.shape[1], r.strides[0]) for r in regions]
        super().__init__(places, parts, slots, blocks_per_chunk, chunks)

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


def _distinct(parts: Sequence[Part]) -> tuple[Part, ...]:
    """One part for each region, the largest."""
    sizes: dict[int, int] = {}
    for part in parts:
        sizes[part.region] = max(part.size, sizes.get(part.region, 0))
    return tuple(Part(region, size) for region, size in sizes.items())


def zeros(shape: tuple[int, ...]) -> Bytes:
    """Zeros that begin where a page of memory does: a device pins whole pages, each once."""
    size = int(np.prod(shape))
    room = mmap.mmap(-1, max(size, 1), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):  # Linux: a quarter faster to copy from and to
        room.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(room, np.int8, size).reshape(shape)
