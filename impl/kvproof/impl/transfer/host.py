"""The runtime of KV caches that lie in host memory: a stream is a thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

from kvproof.impl.transfer import runs
from kvproof.impl.transfer.engine import Ended, TransferEngine
from kvproof.impl.transfer.memory import HostMemory
from kvproof.impl.transfer.plan import CopyPlan
from kvproof.impl.transfer.runtime import CopyFailed, Edge, Reads, TransferError

__all__ = ["Ended", "HostCopier", "HostEvent", "HostRuntime", "HostStream"]


class _Place:
    """A place in a stream: when it was passed, and what had failed before it."""

    def __init__(self) -> None:
        self.passed = threading.Event()
        self.time = 0.0
        self.error: str | None = None

    def passes(self, error: str | None) -> None:
        self.time, self.error = time.perf_counter(), error
        self.passed.set()


class HostEvent:
    """An event: the place where it was recorded last."""

    def __init__(self) -> None:
        self.place = _Place()
        self.place.passes(None)


class HostStream:
    """A thread that carries out what it is given in order, and starts with the first of it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self.error: str | None = None

    def give(self, task: Callable[[], None]) -> None:
        """Carry this out after all that was given before."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        self._tasks.put(task)

    def end(self) -> None:
        """Return when all is done and the thread is gone."""
        if self._thread is not None:
            self._tasks.put(None)
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()

    def taken_error(self) -> str | None:
        """What has failed since this was asked last."""
        error, self.error = self.error, None
        return error


class HostRuntime:
    """Copies on threads, without holding the interpreter.

    The model's stream is the calling thread: what it did before it submits a job is done.
    """

    def stream(self, name: str) -> HostStream:
        """A new thread, once there is something to do."""
        return HostStream(name)

    def compute(self) -> HostStream | None:
        """None stands for the calling thread."""
        return None

    def event(self) -> HostEvent:
        """A new event, which counts as passed."""
        return HostEvent()

    def record(self, event: HostEvent, stream: HostStream | None) -> None:
        """Let the event stand for this place in the stream."""
        place = _Place()
        if stream is None:
            place.passes(None)
        else:
            stream.give(lambda: place.passes(stream.taken_error()))
        event.place = place

    def order(self, stream: HostStream | None, event: HostEvent, why: Edge) -> None:
        """Let the stream wait for the event as it is now."""
        if stream is None:
            raise TransferError("the calling thread is no stream that could wait for an event")
        passed = event.place.passed
        if not passed.is_set():
            stream.give(lambda: _ignore(passed.wait()))

    def copy(self, stream: HostStream | None, plan: CopyPlan, reads: Reads) -> None:
        """Copy on the stream's thread; what fails there is told by the next event."""
        if stream is None:
            raise TransferError("the calling thread is no stream that could copy")
        stream.give(lambda: self._copy(stream, plan))

    def _copy(self, stream: HostStream, plan: CopyPlan) -> None:
        try:
            self.carry_out(plan)
        except Exception as caught:
            stream.error = f"{type(caught).__name__}: {caught}"

    def carry_out(self, plan: CopyPlan) -> None:
        """Copy, here and now."""
        runs.copy(plan)

    def reuse(self, held: object) -> None:
        """Copies hold nothing."""

    def done(self, event: HostEvent) -> bool:
        """Has the event been passed?"""
        return event.place.passed.is_set() and _checked(event)

    def wait(self, event: HostEvent) -> None:
        """Return when it has."""
        event.place.passed.wait()
        _checked(event)

    def drain(self, stream: HostStream | None) -> None:
        """Return when the stream has done all that it was given."""
        event = HostEvent()
        self.record(event, stream)
        event.place.passed.wait()

    def seconds(self, start: HostEvent, end: HostEvent) -> float:
        """Seconds between two events."""
        return end.place.time - start.place.time

    def pin(self, address: int, size: int) -> None:
        """Nothing has to be pinned."""

    def unpin(self, address: int) -> None:
        """Nothing was pinned."""

    def destroy_event(self, event: HostEvent) -> None:
        """Nothing to give back."""

    def destroy_stream(self, stream: HostStream | None) -> None:
        """End the thread."""
        if stream is not None:
            stream.end()


def _ignore(value: object) -> None:
    """A task returns nothing."""


def _checked(event: HostEvent) -> bool:
    if event.place.error is not None:
        raise CopyFailed(event.place.error)
    return True


class HostCopier(TransferEngine[HostStream | None, HostEvent]):
    """The engine of transfers over a tier and KV caches that are both in host memory.

    What the calling thread wrote before it submits a job, the job sees.
    """

    def __init__(self, memory: HostMemory, runtime: HostRuntime | None = None) -> None:
        """``memory`` has the bytes on both sides, and lives as long as this does."""
        self.memory = memory
        super().__init__(runtime or HostRuntime(), memory.layout)
