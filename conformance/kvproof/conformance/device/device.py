"""The simulated device: a runtime for the engine of transfers, and the model's work beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kvproof.conformance.device.clocks import Clock
from kvproof.conformance.device.memory import Arena, Memory, union
from kvproof.conformance.device.policy import Policy
from kvproof.conformance.device.queues import Do, Place, Queues, SimulatedStream, Task
from kvproof.conformance.device.races import Access, Race, Races
from kvproof.impl.transfer.plan import CopyPlan
from kvproof.impl.transfer.runtime import Edge, Reads, TransferError

DESCRIPTORS = 8
"""Bytes that stand for the addresses and sizes of one copy, which the device reads as it starts."""

Sides = list[tuple[tuple[Arena, int], tuple[Arena, int]]]
"""For each copy its source and its target, as bytes and as a set of bytes."""

HOST = 0
"""The number of the calling thread among the streams."""


@dataclass(eq=False)
class SimulatedEvent:
    """An event: the place where it was recorded last."""

    place: Place | None = None


class SimulatedDevice:
    """Carries out what it is given when ``policy`` says, in an order that its streams allow.

    Attributes:
        memory: the zones that may be touched.
        live: streams, events, pins and descriptors that were not given back.
    """

    def __init__(self, policy: Policy) -> None:
        self.memory = Memory()
        self.live = {"streams": 0, "events": 0, "pins": 0, "descriptors": 0}
        self._races = Races(self.memory)
        self._queues = Queues(policy)
        self._host = Clock()
        self._host_given = 0
        self._descriptors = self.memory.add("descriptors", np.zeros(64 * DESCRIPTORS, np.uint8))
        self._free = list(range(64))
        self._described: list[Sides] = []
        self._copies: Counter[str] = Counter()
        self._compute = self._queues.stream("compute")

    @property
    def races(self) -> list[Race]:
        """What was found so far."""
        return self._races.found

    # --- the runtime ---

    def stream(self, name: str) -> SimulatedStream:
        """A new stream."""
        self.live["streams"] += 1
        return self._queues.stream(name)

    def compute(self) -> SimulatedStream:
        """The model's stream."""
        return self._compute

    def event(self) -> SimulatedEvent:
        """A new event."""
        self.live["events"] += 1
        return SimulatedEvent()

    def record(self, event: SimulatedEvent, stream: SimulatedStream) -> None:
        """Let the event stand for this place in the stream."""
        stream.clock.join(self._host)
        event.place = Place(stream.clock.copy())
        stream.items.append(event.place)
        self._queues.settle()

    def order(self, stream: SimulatedStream, event: SimulatedEvent, why: Edge) -> None:
        """Let the stream wait for the event as it is now."""
        place = _place(event)
        stream.clock.join(place.clock)
        stream.items.append((place,))
        self._queues.settle()

    def copy(self, stream: SimulatedStream, plan: CopyPlan, reads: Reads) -> int:
        """Read all sources, later write all targets; the device reads its descriptors, too."""
        sides = self._sides(plan)
        if not self._free:
            raise TransferError("the simulated device has no descriptors left")
        held = self._free.pop()
        self.live["descriptors"] += 1
        address = self._descriptors.address + held * DESCRIPTORS
        room, described = self.memory.view(address, DESCRIPTORS)
        what = self._named(stream)
        self._host_access(f"the host, for {what},", writes=described)
        self._described.append(sides)
        room[:] = np.array([len(self._described)], np.int64).view(np.uint8)
        self._carry(
            stream,
            what,
            sides,
            lambda: self._described[int(room.view("i8")[0]) - 1],
            reads,
            described,
        )
        return held

    def copies(self, stream: SimulatedStream, plan: CopyPlan, reads: Reads) -> None:
        """The same without descriptors: they were read when the copies were given."""
        sides = self._sides(plan)
        self._carry(stream, self._named(stream), sides, lambda: sides, reads)

    def _sides(self, plan: CopyPlan) -> Sides:
        batch = plan.arrays()
        columns = (batch.sources.tolist(), batch.targets.tolist(), batch.sizes.tolist())
        return [
            (self.memory.view(source, size), self.memory.view(target, size))
            for source, target, size in zip(*columns, strict=True)
        ]

    def _carry(
        self,
        stream: SimulatedStream,
        what: str,
        sides: Sides,
        look_up: Callable[[], Sides],
        reads: Reads,
        described: int = 0,
    ) -> None:
        """``look_up`` tells the copies when the device begins with them."""
        buffer: list[tuple[Arena, Arena]] = []

        def read() -> None:
            buffer.extend((source.copy(), target) for (source, _), (target, _) in look_up())

        def write() -> None:
            for content, target in buffer:
                target[:] = content

        self._give(
            stream,
            what,
            union(some for (_, some), _ in sides) | described,
            union(some for _, (_, some) in sides),
            Task(stream.number, stream.given + 1, read, write, reads is Reads.AT_ANY_TIME),
        )

    def _named(self, stream: SimulatedStream) -> str:
        """The next copy of a stream, in words."""
        self._copies[stream.name] += 1
        return f"{stream.name.removeprefix('kv-')} {self._copies[stream.name]}"

    def reuse(self, held: int) -> None:
        """The descriptors may be written again; the last that are given back are the next."""
        self._free.append(held)
        self.live["descriptors"] -= 1

    def done(self, event: SimulatedEvent) -> bool:
        """Has the event been passed?"""
        self._queues.choose()
        place = _place(event)
        if place.passed:
            self._host.join(place.clock)
        return place.passed

    def wait(self, event: SimulatedEvent) -> None:
        """Run until it has."""
        self._queues.choose()
        self._reach(_place(event))

    def drain(self, stream: SimulatedStream) -> None:
        """Run until the stream is empty."""
        place = Place(stream.clock.copy())
        stream.items.append(place)
        self._reach(place)

    def seconds(self, start: SimulatedEvent, end: SimulatedEvent) -> float:
        """One second for everything that the device did in between."""
        return float(_place(end).time - _place(start).time)

    def pin(self, address: int, size: int) -> None:
        """Pin memory that there is."""
        self.memory.view(address, size)
        self.live["pins"] += 1

    def unpin(self, address: int) -> None:
        """Undo it."""
        self.live["pins"] -= 1

    def destroy_event(self, event: SimulatedEvent) -> None:
        """Forget it."""
        self.live["events"] -= 1

    def destroy_stream(self, stream: SimulatedStream) -> None:
        """Forget it."""
        self.live["streams"] -= 1

    # --- the model and the host ---

    def launch(self, what: str, reads: int, writes: int, read: Do, write: Do) -> None:
        """Give the model's stream something to do."""
        task = Task(self._compute.number, self._compute.given + 1, read, write)
        self._give(self._compute, what, reads, writes, task)

    def host_does(self, what: str, reads: int, writes: int, do: Do) -> None:
        """The calling thread reads or writes, here and now."""
        self._queues.choose()
        self._host_access(what, reads, writes)
        do()

    def progress(self) -> bool:
        """Do one thing, if there is one to do."""
        return self._queues.progress()

    def rest(self) -> None:
        """Do all that is left, and let the calling thread know that it is done."""
        self._queues.finish()
        for stream in self._queues.streams:
            self._host.join(stream.clock)
        self._races.forget()

    # --- order ---

    def _host_access(self, what: str, reads: int = 0, writes: int = 0) -> None:
        self._host_given += 1
        before = self._host.copy()
        self._host.tick(HOST, self._host_given)
        self._races.add(Access(what, HOST, self._host_given, reads, writes, before, before))

    def _give(
        self, stream: SimulatedStream, what: str, reads: int, writes: int, task: Task
    ) -> None:
        stream.clock.join(self._host)
        before = stream.clock.copy()
        ahead = self._host.copy() if task.reads_ahead else before
        stream.given = task.number
        stream.clock.tick(stream.number, stream.given)
        self._races.add(Access(what, stream.number, stream.given, reads, writes, ahead, before))
        stream.items.append(task)
        self._queues.choose()

    def _reach(self, place: Place) -> None:
        self._queues.reach(place)
        self._host.join(place.clock)


def _place(event: SimulatedEvent) -> Place:
    if event.place is None:
        raise TransferError("the event was never recorded")
    return event.place
