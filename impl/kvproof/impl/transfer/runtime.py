"""What the engine of transfers asks of a device: streams, events, copies. Three runtimes answer.

``host`` copies on threads, ``cuda`` on a GPU, and the simulated device of the conformance house
checks that whatever touches the same bytes is ordered. The engine cannot tell which one it has.

A stream carries out what it is given in order. An event stands for a place in a stream: where it
was recorded last. The calling thread is ordered after an event once ``done`` has been true of it or
``wait`` has returned.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Protocol, TypeVar

from kvproof.impl.transfer.plan import CopyPlan

StreamT = TypeVar("StreamT")
EventT = TypeVar("EventT")


class TransferError(RuntimeError):
    """The device refused or failed; the message is one line."""


class CopyFailed(TransferError):
    """The stream has come past the event, but copies before it have failed."""


class Edge(Enum):
    """Why one thing waits for another. Without any one of these, some history loses bytes."""

    STORE_AFTER_COMPUTE = "a store reads its blocks after the model has written them"
    LOAD_AFTER_COMPUTE = "a load writes its blocks after the model is done with them"
    STORE_AFTER_STORE = "a slot that is stored again is written by the later store last"
    LOAD_AFTER_LOAD = "a block that is loaded again is written by the later load last"
    STORE_AFTER_LOAD_OF_SLOT = "a store overwrites a slot after earlier loads have read it"
    STORE_AFTER_LOAD_OF_BLOCK = "a store reads a block after earlier loads have filled it"
    LOAD_AFTER_STORE_OF_SLOT = "a load reads a slot after earlier stores have filled it"
    LOAD_AFTER_STORE_OF_BLOCK = "a load overwrites a block after earlier stores have read it"


class Reads(Enum):
    """When a copy may read its source."""

    IN_STREAM_ORDER = "after all that comes before it in its stream"
    AT_ANY_TIME = "as soon as it is submitted: nobody is going to write there"


class Runtime(Protocol[StreamT, EventT]):
    """A device. Every method may raise ``TransferError``, and then has changed nothing unless said.

    Addresses are those of the calling process; sizes are bytes.
    """

    def stream(self, name: str) -> StreamT:
        """A new stream; the name is for people."""
        ...

    def compute(self) -> StreamT:
        """The stream to which the model's work goes at this moment."""
        ...

    def event(self) -> EventT:
        """A new event, which can tell times."""
        ...

    def record(self, event: EventT, stream: StreamT) -> None:
        """Let the event stand for this place in the stream, and for no earlier one any more."""
        ...

    def order(self, stream: StreamT, event: EventT, why: Edge) -> None:
        """What the stream is given from now on waits for the event as it is recorded now."""
        ...

    def copy(self, stream: StreamT, plan: CopyPlan, reads: Reads) -> Any:
        """Copy; returns what ``reuse`` gets back once an event after the copy is done.

        When it raises, some of the copies may be under way.
        """
        ...

    def reuse(self, held: Any) -> None:
        """What ``copy`` returned is no longer needed. Never raises."""
        ...

    def done(self, event: EventT) -> bool:
        """Has the stream come past the event? Raises ``CopyFailed`` when it has, and in vain."""
        ...

    def wait(self, event: EventT) -> None:
        """Return when the stream has come past it. Raises ``CopyFailed`` when that was in vain."""
        ...

    def drain(self, stream: StreamT) -> None:
        """Return when the stream has done all that it was given."""
        ...

    def seconds(self, start: EventT, end: EventT) -> float:
        """Seconds between two events that are done."""
        ...

    def pin(self, address: int, size: int) -> None:
        """Keep this host memory in place, so that a device reaches it directly."""
        ...

    def unpin(self, address: int) -> None:
        """Undo ``pin`` of the memory that begins here."""
        ...

    def destroy_event(self, event: EventT) -> None:
        """Give an event back."""
        ...

    def destroy_stream(self, stream: StreamT) -> None:
        """Give a stream back, after it has been drained."""
        ...
