"""Bytes by name: the stretches of memory that a device knows, and sets of bytes as numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Arena = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Zone:
    """A stretch of memory, and the number of its first byte among those of all zones."""

    name: str
    bytes: Arena
    first: int

    @property
    def address(self) -> int:
        """Where it begins."""
        return int(self.bytes.ctypes.data)


class Memory:
    """The zones of a device. A set of bytes is an integer with a bit for each."""

    def __init__(self) -> None:
        self.zones: list[Zone] = []
        self._end = 0

    def add(self, name: str, arena: Arena) -> Zone:
        """Know one more zone."""
        zone = Zone(name, arena, self._end)
        self.zones.append(zone)
        self._end += len(arena)
        return zone

    def view(self, address: int, size: int) -> tuple[Arena, int]:
        """The bytes at an address, and the same bytes as a set.

        Raises:
            ValueError: they lie in no zone.
        """
        for zone in self.zones:
            start = address - zone.address
            if 0 <= start <= len(zone.bytes) - size:
                return zone.bytes[start : start + size], span(zone.first + start, size)
        raise ValueError(f"{size} bytes at {address} lie in no zone")

    def say(self, some: int) -> str:
        """The first stretch of a set, in words."""
        first = (some & -some).bit_length() - 1
        some >>= first
        size = (~some & (some + 1)).bit_length() - 1
        for zone in self.zones:
            if zone.first <= first < zone.first + len(zone.bytes):
                return f"{size} bytes of {zone.name} from {first - zone.first}"
        raise ValueError(f"byte {first} lies in no zone")


def span(first: int, size: int) -> int:
    """The set of ``size`` bytes from ``first`` on."""
    return ((1 << size) - 1) << first


def union(sets: Iterable[int]) -> int:
    """All bytes of some sets."""
    found = 0
    for one in sets:
        found |= one
    return found
