"""What workers and their copiers do with jobs.

A copy may read and write at any moment from its submission until it is known to have ended. That a
copy happened to end early excuses nobody: for the scheduler it has ended when a worker waited for
it because it was told to, or when the worker's report arrived.
"""

from __future__ import annotations

from kvproof.spec.contract.sorts import Job, Piece, Worker
from kvproof.spec.contract.views import Views
from kvproof.spec.lang import (
    ANY,
    EACH,
    Bool,
    Expr,
    action,
    assume,
    both,
    conclude,
    either,
    every,
    implies,
    negate,
    oblige,
)


class WorkerMoves(Views):
    """Submit, end, wait, report: per worker."""

    def slot_is_free_of_others(self, w: Expr[Worker], p: Expr[Piece]) -> Bool:
        """Copies of earlier residencies of the slot have ended, or precede this one in its lane."""
        j = self.piece_job[p]
        x = self.place_residency[self.piece_place[p]]
        return every(
            self.using.match(self.residency_slot[x], w, EACH, EACH),
            lambda i, other: either(
                other == x,
                self.residency_seq[x] < self.residency_seq[other],
                both(
                    self.store[i],
                    self.store[j],
                    self.submitted[i, w],
                    self.job_lane[i] == self.job_lane[j],
                ),
            ),
        )

    def may_start(self, w: Expr[Worker], p: Expr[Piece]) -> None:
        """The guards that loads and stores share when the copier gets hold of a piece."""
        j = self.piece_job[p]
        assume(self.pieces[j, p])
        oblige("P2", both(self.pending[j, w], negate(self.submitted[j, w])))
        assume(both(self.job_step[j] <= self.at[w], negate(self.started[p, w])))
        oblige("S7", self.slot_is_free_of_others(w, p))

    @action(by="worker")
    def start_store(self, w: Expr[Worker], p: Expr[Piece]) -> None:
        """One piece of a store may be read from now on.

        What a store of before a reset reads is nobody's business: its residency is gone.
        """
        j = self.piece_job[p]
        l = self.piece_lease[p]
        y = self.piece_place[p]
        x = self.place_residency[y]
        assume(self.store[j])
        self.may_start(w, p)
        oblige(
            "S2",
            implies(
                self.job_epoch[j] == self.epoch.value,
                both(
                    self.written[l, w, self.place_content[y]],
                    self.owns(w, l),
                ),
            ),
        )
        self.started.add(p, w)
        self.slot_owner[self.residency_slot[x], w] = x

    @action(by="worker")
    def start_load(self, w: Expr[Worker], p: Expr[Piece]) -> None:
        """One piece of a load may be read, and its lease be written, from now on."""
        j = self.piece_job[p]
        l = self.piece_lease[p]
        y = self.piece_place[p]
        b = self.lease_block[l]
        x = self.place_residency[y]
        assume(self.load[j])
        self.may_start(w, p)
        conclude(
            "S10",
            both(
                self.placed[y, w],
                self.slot_is(w, x),
            ),
        )
        conclude("S11", self.incoming[l, j])
        oblige("S3", self.no_earlier_lease_is_read(w, l))
        self.started.add(p, w)
        self.owner[b, w] = l

    @action(by="worker")
    def submit(self, w: Expr[Worker], j: Expr[Job]) -> None:
        """All pieces of a job have started: the copier has the job."""
        assume(both(self.pending[j, w], negate(self.submitted[j, w])))
        assume(every(self.pieces.match(j, EACH), lambda p: self.started[p, w]))
        self.submissions.set(self.submissions.value + 1)
        self.submit_seq[j, w] = self.submissions.value
        self.submitted.add(j, w)
        self.in_flight.add(w, self.job_lane[j], j)

    @action(by="worker")
    def land(self, w: Expr[Worker], p: Expr[Piece]) -> None:
        """One piece of a copy has ended well."""
        j = self.piece_job[p]
        l = self.piece_lease[p]
        y = self.piece_place[p]
        x = self.place_residency[y]
        assume(both(self.pieces[j, p], self.pending[j, w], self.submitted[j, w]))
        assume(self.started[p, w])
        conclude(
            "S10",
            implies(
                self.load[j],
                both(
                    self.placed[y, w],
                    self.slot_is(w, x),
                    self.owns(w, l),
                ),
            ),
        )
        conclude(
            "S3",
            implies(
                both(self.store[j], self.job_epoch[j] == self.epoch.value),
                both(
                    self.written[l, w, self.place_content[y]],
                    self.owns(w, l),
                ),
            ),
        )
        self.landed.add(p, w)
        self.written.add(l, w, self.place_content[y], when=self.load[j])
        self.placed.add(y, w, when=both(self.store[j], self.job_epoch[j] == self.epoch.value))

    @action(by="worker")
    def end(self, w: Expr[Worker], j: Expr[Job]) -> None:
        """A copy has ended well, after all that its lane runs before it."""
        self.may_end(w, j)
        assume(every(self.pieces.match(j, EACH), lambda p: self.landed[p, w]))
        self.forget_copy(w, j)

    @action(by="worker")
    def fail(self, w: Expr[Worker], j: Expr[Job]) -> None:
        """A copy has ended badly; what it wrote is worth nothing."""
        self.may_end(w, j)
        self.failed.add(j, w)
        self.forget_copy(w, j)

    def may_end(self, w: Expr[Worker], j: Expr[Job]) -> None:
        """The copier keeps the order of each lane."""
        assume(both(self.pending[j, w], self.submitted[j, w]))
        assume(
            every(
                self.in_flight.match(w, self.job_lane[j], EACH),
                lambda i: self.submit_seq[j, w] <= self.submit_seq[i, w],
            )
        )

    def forget_copy(self, w: Expr[Worker], j: Expr[Job]) -> None:
        """The copy no longer touches its slots."""
        self.pending.discard(j, w)
        self.using.discard(ANY, w, j, ANY)
        self.in_flight.discard(w, self.job_lane[j], j)

    @action(by="worker")
    def waited(self, w: Expr[Worker], j: Expr[Job]) -> None:
        """A worker waited for a job; it counts when a flush of a step so far named the job."""
        self.reading.discard(
            ANY,
            w,
            j,
            ANY,
            when=both(
                self.flush_at.has(j),
                self.flush_at[j] <= self.at[w],
                negate(self.pending[j, w]),
            ),
        )

    @action(by="worker")
    def report(self, w: Expr[Worker], j: Expr[Job]) -> None:
        """A worker's word that its copy ended reaches the scheduler."""
        oblige("P4", self.unreported[j, w])
        oblige("P4", negate(self.pending[j, w]))
        self.unreported.discard(j, w)
        self.reading.discard(ANY, w, j, ANY)
