"""The simulated device with one edge taken away, at the boundary of the runtime: no other code."""

from __future__ import annotations

from enum import Enum

from kvproof.conformance.device.device import SimulatedDevice, SimulatedEvent
from kvproof.conformance.device.policy import Policy
from kvproof.conformance.device.queues import SimulatedStream
from kvproof.impl.transfer.plan import CopyPlan
from kvproof.impl.transfer.runtime import Edge, Reads


class Care(Enum):
    """What orders copies besides the edges between streams."""

    READ_IN_ORDER = "a load of a slot that is still being stored does not read ahead"
    FLUSH_OF_STORE = "the model changes a block after a flush of the stores that read it"
    FLUSH_OF_LOAD = "the model changes a block after a flush of the dead loads that fill it"
    TOLD_OF_LOAD = "the model reads a block after its load was told to have ended"
    TOLD_OF_STORE = "others read a slot after its store was told to have ended"
    DESCRIPTORS = "the descriptors of a copy are written again after it was told to have ended"


LANES = {Edge.STORE_AFTER_STORE: "kv-store", Edge.LOAD_AFTER_LOAD: "kv-load"}
FLUSHES = {Care.FLUSH_OF_STORE: "kv-store", Care.FLUSH_OF_LOAD: "kv-load"}
TOLD = {Care.TOLD_OF_STORE: "kv-store", Care.TOLD_OF_LOAD: "kv-load"}


class DeviceWithout(SimulatedDevice):
    """Lacks one edge. Without the order of one direction's jobs, each has a stream of its own."""

    def __init__(self, policy: Policy, missing: Edge | Care | None) -> None:
        super().__init__(policy)
        self._missing = missing
        self._lanes: dict[SimulatedStream, list[SimulatedStream]] = {}
        self._copied: set[SimulatedStream] = set()
        self._recorded_on: dict[SimulatedEvent, str] = {}

    def _is(self, missing: dict[Care, str], event: SimulatedEvent) -> bool:
        name = missing.get(self._missing) if isinstance(self._missing, Care) else None
        return name is not None and name == self._recorded_on.get(event)

    def _lane(self, stream: SimulatedStream) -> SimulatedStream:
        return self._lanes.get(stream, [stream])[-1]

    def record(self, event: SimulatedEvent, stream: SimulatedStream) -> None:
        """As ever; but what follows a copy's end may be on a new lane."""
        super().record(event, self._lane(stream))
        self._recorded_on[event] = stream.name
        if stream in self._copied:
            self._copied.discard(stream)
            if isinstance(self._missing, Edge) and LANES.get(self._missing) == stream.name:
                lanes = self._lanes.setdefault(stream, [stream])
                lanes.append(self._queues.stream(stream.name))

    def order(self, stream: SimulatedStream, event: SimulatedEvent, why: Edge) -> None:
        """Not if this is the edge."""
        if why is not self._missing:
            super().order(self._lane(stream), event, why)

    def copy(self, stream: SimulatedStream, plan: CopyPlan, reads: Reads) -> int:
        """Perhaps reading ahead, perhaps with descriptors that the next copy uses too."""
        self._copied.add(stream)
        if self._missing is Care.READ_IN_ORDER and stream.name == "kv-load":
            reads = Reads.AT_ANY_TIME
        held = super().copy(self._lane(stream), plan, reads)
        if self._missing is Care.DESCRIPTORS:
            super().reuse(held)
        return held

    def reuse(self, held: int) -> None:
        """Not twice."""
        if self._missing is not Care.DESCRIPTORS:
            super().reuse(held)

    def done(self, event: SimulatedEvent) -> bool:
        """Perhaps a lie."""
        return self._is(TOLD, event) or super().done(event)

    def wait(self, event: SimulatedEvent) -> None:
        """Perhaps not at all."""
        if not self._is(FLUSHES, event):
            super().wait(event)

    def drain(self, stream: SimulatedStream) -> None:
        """All lanes."""
        for lane in self._lanes.get(stream, [stream]):
            super().drain(lane)

    def seconds(self, start: SimulatedEvent, end: SimulatedEvent) -> float:
        """Of no interest where ends are lied about."""
        return 0.0
