"""The simulated device, one call of which fails."""

from __future__ import annotations

from kvproof.conformance.device.device import SimulatedDevice, SimulatedEvent
from kvproof.conformance.device.policy import Policy
from kvproof.conformance.device.queues import SimulatedStream
from kvproof.impl.transfer.plan import CopyPlan
from kvproof.impl.transfer.runtime import Edge, Reads, TransferError


class FailingDevice(SimulatedDevice):
    """Call number ``at`` (from 0) of the runtime raises; ``calls`` names all that were made.

    With ``halfway`` a copy that fails has been given to the stream nevertheless.
    """

    def __init__(self, policy: Policy, at: int | None = None, halfway: bool = False) -> None:
        super().__init__(policy)
        self.calls: list[str] = []
        self._at, self._halfway = at, halfway

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if self._at == len(self.calls) - 1:
            raise TransferError(f"call {self._at} failed: {name}")

    def stream(self, name: str) -> SimulatedStream:
        """A new stream, or not."""
        self._call("stream")
        return super().stream(name)

    def compute(self) -> SimulatedStream:
        """The model's stream, or not."""
        self._call("compute")
        return super().compute()

    def event(self) -> SimulatedEvent:
        """A new event, or not."""
        self._call("event")
        return super().event()

    def record(self, event: SimulatedEvent, stream: SimulatedStream) -> None:
        """Record, or not."""
        self._call("record")
        super().record(event, stream)

    def order(self, stream: SimulatedStream, event: SimulatedEvent, why: Edge) -> None:
        """Order, or not."""
        self._call("order")
        super().order(stream, event, why)

    def copy(self, stream: SimulatedStream, plan: CopyPlan, reads: Reads) -> int:
        """Copy, or not, or both."""
        if self._halfway and self._at == len(self.calls):
            super().copy(stream, plan, reads)
            self.live["descriptors"] -= 1  # lost with the failure, and never used again
        self._call("copy")
        return super().copy(stream, plan, reads)

    def done(self, event: SimulatedEvent) -> bool:
        """Tell, or not."""
        self._call("done")
        return super().done(event)

    def wait(self, event: SimulatedEvent) -> None:
        """Wait, or not."""
        self._call("wait")
        super().wait(event)

    def drain(self, stream: SimulatedStream) -> None:
        """Drain, or not."""
        self._call("drain")
        super().drain(stream)

    def seconds(self, start: SimulatedEvent, end: SimulatedEvent) -> float:
        """Measure, or not."""
        self._call("seconds")
        return super().seconds(start, end)

    def pin(self, address: int, size: int) -> None:
        """Pin, or not."""
        self._call("pin")
        super().pin(address, size)

    def unpin(self, address: int) -> None:
        """Unpin, or not."""
        self._call("unpin")
        super().unpin(address)

    def destroy_event(self, event: SimulatedEvent) -> None:
        """Take back, or not."""
        self._call("destroy_event")
        super().destroy_event(event)

    def destroy_stream(self, stream: SimulatedStream) -> None:
        """Take back, or not."""
        self._call("destroy_stream")
        super().destroy_stream(stream)
