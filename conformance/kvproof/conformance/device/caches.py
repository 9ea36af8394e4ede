"""One worker's KV caches and its part of a tier, as bytes on a simulated device.

Beside the bytes there is a shadow, in which everything happens at once and in the order in which
the calling thread asked for it. Whatever orders copies and the model's work rightly leaves the two
alike, in whichever order the device did it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from kvproof.conformance.device.device import SimulatedDevice
from kvproof.conformance.device.memory import Arena, Zone, span, union
from kvproof.impl.transfer.layout import Layout, Tensor

_TENSORS = ("keys", "values")
_PADDING = 1
_GUARD = 3


class Stretch(NamedTuple):
    """Tokens [first, last) of a block of a group, counted from the block's start."""

    group: int
    block: int
    first: int
    last: int


class Placed(NamedTuple):
    """A block of a group, and its place in a slot."""

    group: int
    block: int
    slot: int
    offset: int


class SimulatedCaches:
    """A byte for each token and tensor; groups share the memory of their blocks, as in vLLM.

    Attributes:
        layout: for the engine of transfers.
        wrong: what was read, or lies somewhere at rest, and is not what it should be.
    """

    def __init__(
        self,
        device: SimulatedDevice,
        tokens_per_block: Sequence[int],
        blocks: int,
        slots: int,
        blocks_per_chunk: int,
    ) -> None:
        self._device = device
        self._sizes = tokens_per_block
        self._stride = max(tokens_per_block) + _PADDING
        self._slot_stride = self._stride * blocks_per_chunk + _GUARD
        self._caches = [self._zone(f"the KV cache of {n}", blocks, self._stride) for n in _TENSORS]
        self._tier = [self._zone(f"the tier of {n}", slots, self._slot_stride) for n in _TENSORS]
        self._shadows = {zone.name: zone.bytes.copy() for zone in (*self._caches, *self._tier)}
        self._stamp = 0
        self.wrong: list[str] = []
        groups = [
            [
                Tensor(
                    cache.address + _GUARD,
                    tier.address + _GUARD,
                    size,
                    self._stride,
                    self._slot_stride,
                    self._stride,
                )
                for cache, tier in zip(self._caches, self._tier, strict=True)
            ]
            for size in tokens_per_block
        ]
        self.layout = Layout(groups, blocks, slots, blocks_per_chunk)

    def _zone(self, name: str, count: int, stride: int) -> Zone:
        noise = np.random.default_rng(len(name)).integers(
            0, 256, count * stride + 2 * _GUARD, np.uint8
        )
        return self._device.memory.add(name, noise)

    # --- the model ---

    def compute(self, what: str, reads: Iterable[Stretch], writes: Iterable[Stretch]) -> None:
        """The model reads and writes; that what it reads is right shows when it does so."""
        self._stamp = self._stamp % 250 + 1
        stamp = self._stamp
        read, write = self._of_stretches(reads), self._of_stretches(writes)
        wanted = [self._shadows[zone.name][at].copy() for zone, at in read]
        for zone, at in write:
            self._shadows[zone.name][at] = stamp

        def look() -> None:
            found = (zone.bytes[at] for zone, at in read)
            if any(one.tobytes() != w.tobytes() for one, w in zip(found, wanted, strict=True)):
                self.wrong.append(f"{what} reads other bytes than were written for it")

        def change() -> None:
            for zone, at in write:
                zone.bytes[at] = stamp

        self._device.launch(what, _set(read), _set(write), look, change)

    def clear(self, what: str, blocks: Iterable[int]) -> None:
        """The model's stream clears blocks."""
        whole = range(len(self._sizes))
        group = max(whole, key=self._sizes.__getitem__)
        self.compute(what, (), [Stretch(group, b, 0, self._sizes[group]) for b in blocks])

    def copy_block(self, what: str, source: int, target: int) -> None:
        """The model's stream copies a block."""
        size = max(self._sizes)
        sides = [
            (zone, self._page(source, 0, size), self._page(target, 0, size))
            for zone in self._caches
        ]
        for zone, of, to in sides:
            shadow = self._shadows[zone.name]
            shadow[to] = shadow[of]
        buffer: list[Arena] = []

        def read() -> None:
            buffer.extend(zone.bytes[of].copy() for zone, of, _ in sides)

        def write() -> None:
            for (zone, _, to), content in zip(sides, buffer, strict=True):
                zone.bytes[to] = content

        self._device.launch(
            what,
            _set([(zone, of) for zone, of, _ in sides]),
            _set([(zone, to) for zone, _, to in sides]),
            read,
            write,
        )

    # --- copies ---

    def stored(self, moved: Iterable[Placed]) -> None:
        """A store was asked for."""
        for (cache, page), (tier, place) in self._of_pieces(moved):
            self._shadows[tier.name][place] = self._shadows[cache.name][page]

    def loaded(self, moved: Iterable[Placed]) -> None:
        """A load was asked for."""
        for (cache, page), (tier, place) in self._of_pieces(moved):
            self._shadows[cache.name][page] = self._shadows[tier.name][place]

    def spoiled(self, moved: Iterable[Placed], store: bool) -> None:
        """A copy has failed: whatever is at its target now, nobody may rely on."""
        for (cache, page), (tier, place) in self._of_pieces(moved):
            zone, at = (tier, place) if store else (cache, page)
            self._shadows[zone.name][at] = zone.bytes[at]

    # --- at rest ---

    def look(self) -> None:
        """Compare everything, the guards around it too; only for a device at rest."""
        for zone in (*self._caches, *self._tier):
            if zone.bytes.tobytes() != self._shadows[zone.name].tobytes():
                self.wrong.append(f"{zone.name} holds other bytes than were copied there")
                self._shadows[zone.name][:] = zone.bytes

    # --- places ---

    def _page(self, block: int, first: int, last: int) -> slice:
        start = _GUARD + block * self._stride
        return slice(start + first, start + last)

    def _of_stretches(self, some: Iterable[Stretch]) -> list[tuple[Zone, slice]]:
        return [
            (zone, self._page(block, first, last))
            for _, block, first, last in some
            for zone in self._caches
        ]

    def _of_pieces(
        self, moved: Iterable[Placed]
    ) -> Iterable[tuple[tuple[Zone, slice], tuple[Zone, slice]]]:
        for group, block, slot, offset in moved:
            size = self._sizes[group]
            start = _GUARD + slot * self._slot_stride + offset * self._stride
            for cache, tier in zip(self._caches, self._tier, strict=True):
                yield (cache, self._page(block, 0, size)), (tier, slice(start, start + size))


def _set(places: Sequence[tuple[Zone, slice]]) -> int:
    return union(span(zone.first + at.start, at.stop - at.start) for zone, at in places)
