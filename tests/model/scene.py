"""A small cast for the reference: one request, a few leases and residencies, one worker or two."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

from kvproof.model.contract import (
    Block,
    Content,
    Contract,
    Job,
    Key,
    Lane,
    Lease,
    Piece,
    Place,
    Position,
    Request,
    Residency,
    Slot,
    Worker,
)

R, OTHER = Request(0), Request(1)
C = Content(7)
W = Worker(0)


class Scene:
    """A reference with attributes set for: lease *n* of block ``n % 10`` at position ``n % 10``;
    residency *n* of key *n* in slot ``n % 10``; place *n* is the only place of residency *n*;
    job *n* is request 0's, in lane 0 below 100 and lane 1 from there.
    """

    played: ClassVar[Counter[str]] = Counter()

    def __init__(self, workers: int = 1) -> None:
        self.reference = Contract([Worker(w) for w in range(workers)])
        r = self.reference
        for n in range(40):
            r.lease_block[Lease(n)] = Block(n % 10)
            r.lease_position[Lease(n)] = Position(n % 10)
            r.lease_seq[Lease(n)] = n
            r.residency_slot[Residency(n)] = Slot(n % 10)
            r.residency_key[Residency(n)] = Key(n % 10)
            r.residency_seq[Residency(n)] = n
            r.slot_exists[Slot(n % 10)] = True
            r.place_residency[Place(n)] = Residency(n)
            r.place_position[Place(n)] = Position(n % 10)
            r.place_content[Place(n)] = C
        for n in (*range(10), *range(100, 110)):
            r.job_request[Job(n)] = R
            r.job_lane[Job(n)] = Lane(n // 100)

    def __getattr__(self, action: str) -> Any:
        """Play an action of the reference by its name."""
        call = getattr(self.reference, action)

        def play(*params: int) -> None:
            call(*params)
            Scene.played[action] += 1

        return play

    def piece(self, number: int, job: int, lease: int, place: int) -> Piece:
        """Declare a piece."""
        p = Piece(number)
        self.reference.piece_job[p] = Job(job)
        self.reference.piece_lease[p] = Lease(lease)
        self.reference.piece_place[p] = Place(place)
        return p

    # --- chapters ---

    def step(self) -> None:
        """Close the window and launch it on every worker."""
        self.close_window()
        for w in self.reference.workers:
            self.launch(w)

    def computed(self, lease: int = 1) -> None:
        """Request 0 arrives and computes one lease."""
        self.arrive(R)
        self.lease(R, Lease(lease))
        self.step()
        for w in self.reference.workers:
            self.compute(w, Lease(lease), C)

    def issued_store(self, job: int = 1, lease: int = 1, residency: int = 1) -> Piece:
        """A store of one computed lease is issued."""
        p = self.piece(job, job, lease, residency)
        self.admit(Residency(residency))
        self.issue_store(Job(job))
        self.make(Job(job), Residency(residency))
        self.plan_store(p)
        return p

    def carried_out(self, p: Piece) -> None:
        """A job of one piece is submitted and ends well on every worker, which reports."""
        job = self.reference.piece_job[p]
        kind = "start_store" if job in self.reference.store else "start_load"
        for w in self.reference.workers:
            getattr(self, kind)(w, p)
            self.submit(w, job)
            self.land(w, p)
            self.end(w, job)
            self.report(w, job)

    def stored(self) -> None:
        """Lease 1 is computed and stored as residency 1."""
        self.computed()
        p = self.issued_store()
        self.step()
        self.carried_out(p)
        self.publish(Job(1), Residency(1))

    def issued_load(self, job: int = 101, lease: int = 11, residency: int = 1) -> Piece:
        """Request 0, after giving its lease up, loads residency 1 into another lease."""
        self.free(R, Lease(1))
        self.ask(R)
        self.look(R)
        self.hit(R, Residency(residency))
        self.answer(R, 0, 4, 8, 8)
        self.lease(R, Lease(lease))
        self.open_load(Job(job))
        self.pin(Job(job), Residency(residency))
        self.issue_load(Job(job))
        p = self.piece(job, job, lease, residency)
        self.plan_load(p)
        self.step()
        return p
