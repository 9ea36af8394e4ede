"""From events to moves: the tier, transfer jobs and the workers."""

from __future__ import annotations

from collections.abc import Iterator

from kvproof.conformance.monitor.lookup_readers import LookupReaders, Move
from kvproof.conformance.monitor.world import World
from kvproof.conformance.trace import events as ev
from kvproof.model.contract import Job, Piece, Request, Residency

__all__ = ["Contradiction", "JobReaders", "Move"]


class Contradiction(Exception):
    """The trace contradicts itself: the recorder is at fault, not the recorded."""


class JobReaders(LookupReaders):
    """What the trace has said of jobs so far, and the readers of events about them."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.jobs: dict[int, Job] = {}
        self.pieces: dict[Job, list[Piece]] = {}
        self.keys: dict[Job, list[str]] = {}
        self.prepared: dict[Request, list[Job]] = {}
        self.accepted: dict[Request, list[list[Residency]]] = {}
        self.loading: dict[Request, Job] = {}
        self.unfinished_loads: list[Job] = []
        self.filled: dict[Request, int] = {}
        self.flushed: list[Job] = []

    # --- the tier ---

    def _prepare_store(self, event: ev.PrepareStore) -> Iterator[Move]:
        r = self.world.request(event.req)
        yield from self._tier_call(r)
        yield from self._offers(r, event)
        for key in event.evicted:
            yield "evict", (self.world.residency(key),)
        batch: list[Residency] = []
        for key, slot in event.accepted:
            x = self.world.new_residency(key, slot)
            batch.append(x)
            yield "admit", (x,)
        if batch:
            self.accepted.setdefault(r, []).append(batch)

    def _prepare_load(self, event: ev.PrepareLoad) -> Iterator[Move]:
        r = self.world.request(event.req)
        yield from self._tier_call(r)
        job = self.world.new_job(f"for {event.req} #{len(self.keys)}", r, "load")
        self.keys[job] = event.keys
        self.prepared.setdefault(r, []).append(job)
        self.unfinished_loads.append(job)
        yield "open_load", (job,)
        for key in event.keys:
            yield "pin", (job, self.world.residency(key))

    def _complete_store(self, event: ev.CompleteStore) -> Iterator[Move]:
        for key in event.keys:
            x = self.world.residency(key)
            job = self.world.reference.maker.get(x, Job(-1))
            yield ("publish" if event.ok else "drop"), (job, x)
            if event.ok:
                self.promotions.stored(x)

    def _promote(self, event: ev.Promote) -> Iterator[Move]:
        for key in event.evicted:
            yield "evict", (self.world.residency(key),)
        for key, slot in event.accepted:
            x = self.world.new_residency(key, slot)
            yield "admit", (x,)
            self.promotions.begin(self.world.request(event.req), x)

    def _promoted(self, event: ev.Promoted) -> Iterator[Move]:
        self.reported += 1
        for key in event.keys:
            self.promotions.end(self.world.residency(key), event.ok)
        return iter(())

    def _complete_load(self, event: ev.CompleteLoad) -> Iterator[Move]:
        job = self._completed_load(event.keys)
        for key in event.keys:
            yield "unpin", (job, self.world.residency(key))

    def _completed_load(self, keys: list[str]) -> Job:
        """The load of these keys that all workers have reported; failing that, any of them."""
        unreported = self.world.reference.unreported
        same = [j for j in self.unfinished_loads if sorted(self.keys[j]) == sorted(keys)]
        ended = [j for j in same if unreported.none(j, None)]
        job = next(iter(ended or same), Job(-1))
        if job in self.unfinished_loads:
            self.unfinished_loads.remove(job)
        return job

    # --- jobs ---

    def _issue(self, event: ev.Issue) -> Iterator[Move]:
        r = self.world.request(event.req)
        if event.kind == "load":
            prepared = self.prepared.get(r)
            if not prepared:
                raise Contradiction(f"load {event.job} of {event.req} was never prepared")
            job = prepared.pop(0)
            self.loading[r] = job
        else:
            job = self.world.new_job(event.job, r, "store")
        self.jobs[event.job] = job
        self.pieces[job] = []
        yield f"issue_{event.kind}", (job,)
        if event.kind == "store":
            for x in self._taken(r, event.pieces):
                yield "make", (job, x)
        states = self._states(r, event)
        for piece in event.pieces:
            p = self._plan(r, job, piece)
            if piece in states:
                yield "load_state", (p, self.world.marks[r][self.boundary[r]])
            yield f"plan_{event.kind}", (p,)

    def _states(self, r: Request, event: ev.Issue) -> list[ev.Piece]:
        """The pieces of a load that bring a recurrent state: the last one of each such group."""
        if event.kind != "load" or r not in self.boundary:
            return []
        last = {piece.group: piece for piece in event.pieces}
        groups = self.world.header.groups
        return [piece for g, piece in last.items() if groups[g].kind == "recurrent"]

    def _taken(self, r: Request, pieces: list[ev.Piece]) -> list[Residency]:
        """The residencies that a store fills: what the tier accepted in the call that it is for."""
        slots = {self.world.slot(p.slot) for p in pieces}
        batches = self.accepted.get(r, [])
        for batch in batches:
            if slots & {self.world.reference.residency_slot[x] for x in batch}:
                batches.remove(batch)
                return batch
        return []

    def _plan(self, r: Request, job: Job, piece: ev.Piece) -> Piece:
        slot = self.world.slot(piece.slot)
        x = self.world.in_slot.get(slot)
        if x is None:
            raise Contradiction(f"slot {piece.slot} was never handed out")
        place = self.world.place(x, piece.offset)
        position = self.world.reference.place_position[place]
        lease = self.world.meant(r, piece.block, position)
        p = self.world.new_piece(job, lease, place)
        self.pieces[job].append(p)
        return p

    def _flush(self, event: ev.Flush) -> Iterator[Move]:
        # A flush of a job that nobody knows changes nothing (P2).
        for number in event.jobs:
            if number in self.jobs:
                yield "flush", (self.jobs[number],)
                self.flushed.append(self.jobs[number])

    def _judge_flushes(self, delays: bool) -> Iterator[Move]:
        """The window closes: a wait that delays nobody's forward is none."""
        flushed, self.flushed = self.flushed, []
        for job in flushed if delays else ():
            yield "judge_flush", (job,)

    def _received(self, event: ev.Received) -> Iterator[Move]:
        r = self.world.request(event.req)
        job = self.loading.pop(r, None)
        filled = self.filled.pop(r, None)
        if filled is not None and r in self.world.reference.alive:
            # What another connector wrote counts as computed once the engine is told.
            yield "schedule_to", (r, filled)
        if job is None:
            return
        for p in self.pieces.get(job, []):
            yield ("settle" if event.ok else "release"), (p,)
        if event.ok and r in self.world.reference.alive:
            yield "schedule_to", (r, self.boundary.get(r, 0))

    # --- workers ---

    def _job(self, number: int) -> Job:
        if number not in self.jobs:
            raise Contradiction(f"job {number} was never issued")
        return self.jobs[number]

    def _submit(self, event: ev.Submit) -> Iterator[Move]:
        job = self._job(event.job)
        kind = "start_store" if job in self.world.reference.store else "start_load"
        for p in self.pieces[job]:
            yield kind, (event.rank, p)
        yield "submit", (event.rank, job)

    def _done(self, event: ev.Done) -> Iterator[Move]:
        job = self._job(event.job)
        if not event.ok:
            yield "fail", (event.rank, job)
            return
        for p in self.pieces[job]:
            yield "land", (event.rank, p)
        yield "end", (event.rank, job)

    def _wait(self, event: ev.Wait) -> Iterator[Move]:
        for number in event.jobs:
            if number in self.jobs:
                yield "waited", (event.rank, self.jobs[number])

    def _report(self, event: ev.Report) -> Iterator[Move]:
        job = self._job(event.job)
        if not event.ok:
            self.world.failed_in[job] = self.world.reference.now
        self.reported += 1
        yield "report", (event.rank, job)
