"""The bytes of a tier in host memory, and copies between them and KV caches that numpy can see."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kvproof.impl.transfer.pieces import Ids, Pieces

Bytes = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Part:
    """What a group's blocks have in one region: the first ``size`` bytes of a page."""

    region: int
    size: int


class HostMemory:
    """A tier's slots, and the KV caches that they are copied from and to.

    Attributes:
        regions: views of the KV caches, each of shape (blocks, bytes of a page); they may share
            memory and need not be contiguous.
        parts: per group, where its blocks lie. What a page has beyond a part's size is padding.
        chunks: per region, the tier's bytes, of shape (slots, blocks of a chunk, bytes of a page).
    """

    def __init__(
        self,
        regions: Sequence[Bytes],
        parts: Sequence[Sequence[Part]],
        slots: int,
        blocks_per_chunk: int,
    ) -> None:
        """Allocate the slots; their memory is taken from the system as it is first written.

        Raises:
            ValueError: a region is not two-dimensional, or a part does not fit into its region.
        """
        for region in regions:
            if region.ndim != 2:
                raise ValueError(f"a region has shape {region.shape}, not (blocks, bytes)")
        for part in (part for group in parts for part in group):
            if not 0 < part.size <= regions[part.region].shape[1]:
                raise ValueError(
                    f"{part.size} bytes do not fit into a page of {regions[part.region].shape[1]}"
                )
        self.regions = tuple(regions)
        self.parts = tuple(tuple(group) for group in parts)
        self.chunks = tuple(
            np.zeros((slots, blocks_per_chunk, region.shape[1]), np.int8) for region in regions
        )

    def store(self, moved: Iterable[Pieces]) -> int:
        """Copy from the KV caches to the tier; the number of bytes.

        Raises:
            IndexError: a block or a slot that does not exist; nothing is copied then.
        """
        total = 0
        for one in self._checked(moved):
            for part in self.parts[one.group]:
                source = self.regions[part.region][one.blocks, : part.size]
                self.chunks[part.region][one.slots, one.offsets, : part.size] = source
                total += source.nbytes
        return total

    def load(self, moved: Iterable[Pieces]) -> int:
        """Copy from the tier to the KV caches; the number of bytes.

        Raises:
            IndexError: a block or a slot that does not exist; nothing is copied then.
        """
        total = 0
        for one in self._checked(moved):
            for part in self.parts[one.group]:
                source = self.chunks[part.region][one.slots, one.offsets, : part.size]
                self.regions[part.region][one.blocks, : part.size] = source
                total += source.nbytes
        return total

    def _checked(self, moved: Iterable[Pieces]) -> list[Pieces]:
        """Refuse ids out of range before any byte moves: numpy would count from the end."""
        found = list(moved)
        for one in found:
            for part in self.parts[one.group]:
                _within(one.blocks, len(self.regions[part.region]), "block")
                _within(one.slots, len(self.chunks[part.region]), "slot")
        return found


def _within(ids: Ids, count: int, what: str) -> None:
    if ids.size and (ids.min() < 0 or ids.max() >= count):
        raise IndexError(f"{what}s {ids.min()} to {ids.max()} of {count}")
