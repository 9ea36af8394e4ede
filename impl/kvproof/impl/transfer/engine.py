"""The engine of transfers: jobs in, results out, in an order that keeps every byte right.

Stores have a stream and loads have one, so the two directions overlap. A job starts after

- the work that the model's stream had been given when the job was submitted,
- the earlier jobs of its direction (they share its stream), and
- those earlier jobs of the other direction that share a block or a slot with it.

So jobs may be submitted in any order that makes sense when they are carried out one after the
other. What remains with the caller: before the model changes a block that a store reads, or touches
one that a load fills, ``wait`` for the job or be told of its end. (``Edge`` lists the reasons.)

Failures are results. A call that fails costs the job for which it was made, never another one; a
job is told to have failed only when nothing of it is under way any more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Generic

from kvproof.impl.transfer.jobs import Direction, Ended, Job, quietly, said
from kvproof.impl.transfer.layout import Layout
from kvproof.impl.transfer.order import LastTouch
from kvproof.impl.transfer.pieces import Pieces
from kvproof.impl.transfer.plan import plan_load, plan_store
from kvproof.impl.transfer.pool import EventPool
from kvproof.impl.transfer.runtime import (
    CopyFailed,
    Edge,
    EventT,
    Reads,
    Runtime,
    StreamT,
)

__all__ = ["Ended", "TransferEngine"]


class TransferEngine(Generic[StreamT, EventT]):
    """Carries out jobs on a runtime. Not for several threads at once.

    Attributes:
        layout: where the bytes are.
        unpinned: why the tier's memory could not be pinned; None when it is. Copies are right
            either way, only slower.
    """

    def __init__(self, runtime: Runtime[StreamT, EventT], layout: Layout, pin: bool = True) -> None:
        """Take two streams and pin the tier.

        Raises:
            TransferError: there is no stream or event to be had; nothing is left behind then.
        """
        self.layout = layout
        self._runtime = runtime
        self._events = EventPool(runtime)
        self._computed = self._events.take()
        streams: list[StreamT] = []
        try:
            streams.append(runtime.stream("kv-store"))
            streams.append(runtime.stream("kv-load"))
        except Exception:
            for stream in streams:
                quietly(runtime.destroy_stream, stream)
            self._events.give(self._computed)
            self._events.close()
            raise
        self._stores: Direction[StreamT, EventT] = Direction(
            streams[0],
            plan_store,
            LastTouch(layout.blocks, layout.slots),
            Edge.STORE_AFTER_COMPUTE,
            Edge.STORE_AFTER_LOAD_OF_SLOT,
            Edge.STORE_AFTER_LOAD_OF_BLOCK,
            {},
        )
        self._loads: Direction[StreamT, EventT] = Direction(
            streams[1],
            plan_load,
            LastTouch(layout.blocks, layout.slots),
            Edge.LOAD_AFTER_COMPUTE,
            Edge.LOAD_AFTER_STORE_OF_SLOT,
            Edge.LOAD_AFTER_STORE_OF_BLOCK,
            {},
        )
        self._places: dict[int, tuple[Direction[StreamT, EventT], int]] = {}
        self._submitted = 0
        self._closed = False
        self._pinned: list[int] = []
        self.unpinned: str | None = self._pin() if pin else "not asked for"

    # --- jobs in ---

    def submit_store(self, job: int, moved: Iterable[Pieces]) -> None:
        """Copy from the KV caches to the tier. Never raises for what happens to the job.

        Raises:
            RuntimeError: after ``shutdown``, or a job of this number has not been told yet.
        """
        self._submit(job, moved, self._stores, self._loads)

    def submit_load(self, job: int, moved: Iterable[Pieces]) -> None:
        """Copy from the tier to the KV caches. Never raises for what happens to the job.

        Raises:
            RuntimeError: after ``shutdown``, or a job of this number has not been told yet.
        """
        self._submit(job, moved, self._loads, self._stores)

    def _submit(
        self,
        number: int,
        moved: Iterable[Pieces],
        own: Direction[StreamT, EventT],
        other: Direction[StreamT, EventT],
    ) -> None:
        if self._closed:
            raise RuntimeError("the engine of transfers has been shut down")
        if number in self._places:
            raise RuntimeError(f"transfer job {number} is submitted twice")
        self._submitted += 1
        job: Job[EventT] = Job(number)
        own.jobs[self._submitted] = job
        self._places[number] = own, self._submitted
        try:
            pieces = list(moved)
            plan = own.plan(self.layout, pieces)
            job.size = plan.size
            job.start = self._events.take()
            job.end = self._events.take()
            self._runtime.record(self._computed, self._runtime.compute())
            self._runtime.order(own.stream, self._computed, own.after_compute)
            reads = self._after(own, other, pieces)
            self._runtime.record(job.start, own.stream)
        except Exception as caught:
            job.error, job.ended = said(caught), True
            return
        own.touched.note(self._submitted, pieces)
        try:
            job.held = self._runtime.copy(own.stream, plan, reads)
        except Exception as caught:
            job.error = said(caught)
        try:
            self._runtime.record(job.end, own.stream)
        except Exception as caught:
            job.error = job.error or said(caught)
            self._drain(own, job)

    def _after(
        self,
        own: Direction[StreamT, EventT],
        other: Direction[StreamT, EventT],
        pieces: list[Pieces],
    ) -> Reads:
        """Let the stream wait for the other direction's jobs that share a slot or a block.

        Its latest one is enough, for they end in order. A load of a slot that is still being stored
        must not read ahead.
        """
        found = {
            own.after_slot: other.touched.of_slots(pieces),
            own.after_block: other.touched.of_blocks(pieces),
        }
        reads = Reads.IN_STREAM_ORDER if own is self._stores else Reads.AT_ANY_TIME
        for why, place in found.items():
            job = other.jobs.get(place)
            if job is None or job.ended or job.end is None:
                continue
            self._runtime.order(own.stream, job.end, why)
            if why is own.after_slot:
                reads = Reads.IN_STREAM_ORDER
        return reads

    # --- results out ---

    def wait(self, jobs: Collection[int]) -> None:
        """Return when these jobs have ended; one that is unknown, or told already, has."""
        for number in jobs:
            if number in self._places:
                own, place = self._places[number]
                self._settle(own, own.jobs[place])

    def ended(self) -> list[Ended]:
        """The jobs that have ended since the last call: stores, then loads, each in order."""
        found: list[Ended] = []
        for own in (self._stores, self._loads):
            while own.jobs:
                place = next(iter(own.jobs))
                job = own.jobs[place]
                if not job.ended and not self._has_ended(own, job):
                    break
                del own.jobs[place], self._places[job.number]
                found.append(self._told(job))
        return found

    def shutdown(self) -> None:
        """Let what is under way end, forget it, and give everything back. Twice is as good."""
        if self._closed:
            return
        self._closed = True
        for own in (self._stores, self._loads):
            for job in own.jobs.values():
                self._settle(own, job)
                self._told(job)
            own.jobs.clear()
            quietly(self._runtime.drain, own.stream)
            quietly(self._runtime.destroy_stream, own.stream)
        self._places.clear()
        self._events.give(self._computed)
        self._events.close()
        for address in self._pinned:
            quietly(self._runtime.unpin, address)
        self._pinned.clear()

    def _has_ended(self, own: Direction[StreamT, EventT], job: Job[EventT]) -> bool:
        try:
            # A job that never got so far as to have an event is over since it was submitted.
            job.ended = job.end is None or self._runtime.done(job.end)
        except CopyFailed as caught:
            job.error, job.ended = job.error or said(caught), True
        except Exception as caught:
            job.error = job.error or said(caught)
            self._drain(own, job)
        return job.ended

    def _settle(self, own: Direction[StreamT, EventT], job: Job[EventT]) -> None:
        """Wait for one job. Where that cannot be done by its event, for all of its stream."""
        if job.ended:
            return
        try:
            if job.end is not None:
                self._runtime.wait(job.end)
            job.ended = True
        except CopyFailed as caught:
            job.error, job.ended = job.error or said(caught), True
        except Exception as caught:
            job.error = job.error or said(caught)
            self._drain(own, job)

    def _drain(self, own: Direction[StreamT, EventT], job: Job[EventT]) -> None:
        """The job has failed; a stream that cannot even be drained is lost, and moves no byte."""
        quietly(self._runtime.drain, own.stream)
        job.ended = True

    def _told(self, job: Job[EventT]) -> Ended:
        seconds = None
        if job.error is None and job.start is not None and job.end is not None:
            seconds = quietly(self._runtime.seconds, job.start, job.end)
        for event in (job.start, job.end):
            if event is not None:
                self._events.give(event)
        if job.held is not None:
            self._runtime.reuse(job.held)
        return Ended(job.number, job.size if job.error is None else 0, seconds, job.error)

    def _pin(self) -> str | None:
        for address, size in self.layout.host_spans():
            try:
                self._runtime.pin(address, size)
            except Exception as caught:
                return said(caught)
            self._pinned.append(address)
        return None
