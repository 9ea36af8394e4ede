"""Plays a history on the simulated device, and says what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kvproof.conformance.device.device import SimulatedDevice
from kvproof.conformance.device.histories import (
    Flush,
    Geometry,
    History,
    HostRead,
    Load,
    Move,
    Read,
    Store,
    Told,
    Write,
)
from kvproof.conformance.device.memory import Arena, union
from kvproof.conformance.device.races import Race
from kvproof.impl.transfer.engine import Ended, TransferEngine
from kvproof.impl.transfer.pieces import Pieces
from kvproof.impl.transfer.runtime import Runtime

Wrap = Callable[[SimulatedDevice], Runtime[Any, Any]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a history.

    Attributes:
        races: accesses that nothing orders.
        wrong: what differs from doing one thing after the other: "cache", "tier", "read of …".
        told: the ends of jobs, each once.
        live: what was not given back after the shutdown.
    """

    races: list[Race]
    wrong: list[str]
    told: list[Ended]
    live: dict[str, int]


def play(
    history: History,
    geometry: Geometry,
    device: SimulatedDevice,
    wrap: Wrap = lambda device: device,
) -> Outcome:
    """Play it. ``wrap`` may put something between the engine and the device."""
    player = _Player(geometry, device, wrap(device))
    for move in history:
        player.play(move)
    return player.end()


class _Player:
    def __init__(
        self,
        geometry: Geometry,
        device: SimulatedDevice,
        runtime: Runtime[Any, Any],
    ) -> None:
        self._device, self._geometry = device, geometry
        rng = np.random.default_rng(0)
        self._cache = rng.integers(0, 256, geometry.cache_bytes, np.uint8)
        self._tier = rng.integers(0, 256, geometry.tier_bytes, np.uint8)
        device.memory.add("the KV cache", self._cache)
        device.memory.add("the tier", self._tier)
        self._wanted = self._cache.copy(), self._tier.copy()
        self._engine = TransferEngine(
            runtime, geometry.layout(self._cache.ctypes.data, self._tier.ctypes.data)
        )
        self._told: dict[int, Ended] = {}
        self._wrong: list[str] = []
        self._writes = 0

    def play(self, move: Move) -> None:
        """One move, and what it should do."""
        match move:
            case Write(blocks):
                self._write(blocks)
            case Read(blocks):
                self._read(blocks)
            case Store(job, moved):
                self._engine.submit_store(job, moved)
                self._copy(moved, store=True)
            case Load(job, moved):
                self._engine.submit_load(job, moved)
                self._copy(moved, store=False)
            case Flush(jobs):
                self._engine.wait(jobs)
            case Told(jobs):
                self._poll_until(jobs)
            case HostRead(slots):
                self._host_read(slots)

    def end(self) -> Outcome:
        """Wait for all jobs, shut down, compare."""
        while self._device.progress():
            self._poll()
        self._poll()
        self._engine.shutdown()
        for name, found, wanted in (
            ("cache", self._cache, self._wanted[0]),
            ("tier", self._tier, self._wanted[1]),
        ):
            if found.tobytes() != wanted.tobytes():
                self._wrong.append(name)
        told = list(self._told.values())
        return Outcome(self._device.races, self._wrong, told, dict(self._device.live))

    def _poll_until(self, jobs: tuple[int, ...]) -> None:
        """Poll until all are told, or the device has nothing left to do."""
        self._poll()
        moved = True
        while moved and any(job not in self._told for job in jobs):
            moved = self._device.progress()
            self._poll()

    def _poll(self) -> None:
        for end in self._engine.ended():
            if end.job in self._told:
                raise AssertionError(f"job {end.job} is told twice")
            self._told[end.job] = end

    def _write(self, blocks: tuple[int, ...]) -> None:
        self._writes += 1
        pages = self._pages(self._cache, blocks)
        value = (37 * self._writes) % 256

        def write() -> None:
            for page in pages:
                page[:] = value

        for page in self._pages(self._wanted[0], blocks):
            page[:] = value
        self._device.launch(
            f"the model's write of {_list(blocks)}", 0, self._set(pages), _nothing, write
        )

    def _read(self, blocks: tuple[int, ...]) -> None:
        pages = self._pages(self._cache, blocks)
        wanted = [page.copy() for page in self._pages(self._wanted[0], blocks)]
        what = f"the model's read of {_list(blocks)}"
        self._device.launch(
            what, self._set(pages), 0, lambda: self._compare(what, pages, wanted), _nothing
        )

    def _host_read(self, slots: tuple[int, ...]) -> None:
        places = self._places(self._tier, slots)
        wanted = [place.copy() for place in self._places(self._wanted[1], slots)]
        what = f"the host's read of {_list(slots, 'slot')}"
        self._device.host_does(
            what, self._set(places), 0, lambda: self._compare(what, places, wanted)
        )

    def _compare(self, what: str, found: list[Arena], wanted: list[Arena]) -> None:
        if any(one.tobytes() != other.tobytes() for one, other in zip(found, wanted, strict=True)):
            self._wrong.append(what)

    def _copy(self, moved: tuple[Pieces, ...], store: bool) -> None:
        """Piece by piece, tensor by tensor, at once."""
        cache, tier = self._wanted
        for one in moved:
            for block, slot, piece in zip(one.blocks, one.slots, one.offsets, strict=True):
                for t in self._geometry.tensors[one.group]:
                    start = t.device + block * t.block_stride
                    page = cache[start : start + t.size]
                    start = t.host + slot * t.slot_stride + piece * t.piece_stride
                    place = tier[start : start + t.size]
                    if store:
                        place[:] = page
                    else:
                        page[:] = place

    def _pages(self, cache: Arena, blocks: tuple[int, ...]) -> list[Arena]:
        starts = [
            (t.device + block * t.block_stride, t.size)
            for group in self._geometry.tensors
            for t in group
            for block in blocks
        ]
        return [cache[start : start + size] for start, size in starts]

    def _places(self, tier: Arena, slots: tuple[int, ...]) -> list[Arena]:
        starts = [
            (t.host + slot * t.slot_stride + piece * t.piece_stride, t.size)
            for group in self._geometry.tensors
            for t in group
            for slot in slots
            for piece in range(self._geometry.blocks_per_chunk)
        ]
        return [tier[start : start + size] for start, size in starts]

    def _set(self, some: list[Arena]) -> int:
        return union(self._device.memory.view(one.ctypes.data, len(one))[1] for one in some)


def _nothing() -> None:
    """A write that reads nothing, a read that writes nothing."""


def _list(numbers: tuple[int, ...], what: str = "block") -> str:
    return f"{what}{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"
