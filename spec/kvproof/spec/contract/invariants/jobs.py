"""What is true of transfer jobs and of the leases at their GPU end."""

from __future__ import annotations

from kvproof.spec.contract.sorts import Block, Job, Lane, Lease, Piece, Worker
from kvproof.spec.contract.views import Views
from kvproof.spec.lang import Bool, both, either, forall, implies, invariant, negate


class JobInvariants(Views):
    """Each method is one invariant; its docstring is its sentence."""

    @invariant("S2")
    def jobs_are_loads_or_stores(self) -> Bool:
        """A job is one or the other, of an epoch that has begun, and has a step once issued."""
        return forall(
            Job,
            lambda j: both(
                negate(both(self.load[j], self.store[j])),
                implies(either(self.load[j], self.store[j]), self.job_epoch.has(j)),
                implies(
                    self.job_epoch.has(j),
                    both(
                        either(self.load[j], self.store[j]),
                        self.job_epoch[j] <= self.epoch.value,
                    ),
                ),
                implies(
                    self.job_step.has(j),
                    both(self.job_epoch.has(j), self.job_step[j] <= self.now.value),
                ),
                implies(self.store[j], self.job_step.has(j)),
            ),
        )

    @invariant("L1")
    def issued_jobs_are_numbered(self) -> Bool:
        """A job has a number once it is issued, none larger than the number of jobs."""
        return forall(
            Job,
            lambda j: both(
                implies(self.job_step.has(j), self.job_number.has(j)),
                implies(
                    self.job_number.has(j),
                    both(self.job_step.has(j), self.job_number[j] <= self.issued.value),
                ),
            ),
        )

    @invariant("P4")
    def only_issued_jobs_are_under_way(self) -> Bool:
        """Workers know a job only after it was issued; what has not ended was not reported."""
        return forall(
            Job,
            Worker,
            lambda j, w: both(
                implies(self.pending[j, w], both(self.job_step.has(j), self.unreported[j, w])),
                implies(self.unreported[j, w], self.job_step.has(j)),
                implies(self.submitted[j, w], self.job_step.has(j)),
                implies(self.failed[j, w], both(self.job_step.has(j), negate(self.pending[j, w]))),
                implies(
                    both(self.job_step.has(j), negate(self.pending[j, w])),
                    self.submitted[j, w],
                ),
                implies(self.submitted[j, w], self.submit_seq.has(j, w)),
            ),
        )

    @invariant("S7")
    def lanes_hold_submitted_copies(self) -> Bool:
        """What is in flight in a lane was submitted to it and has not ended."""
        return forall(
            Worker,
            Lane,
            Job,
            lambda w, n, j: implies(
                self.in_flight[w, n, j],
                both(self.job_lane[j] == n, self.submitted[j, w], self.pending[j, w]),
            ),
        )

    @invariant("S4")
    def pieces_belong_to_their_job(self) -> Bool:
        """A planned piece is of the job that it names; a piece moves only once it is planned."""
        return both(
            forall(
                Job,
                Piece,
                lambda j, p: implies(
                    self.pieces[j, p],
                    both(self.piece_job[p] == j, self.job_step.has(j)),
                ),
            ),
            forall(
                Piece,
                Worker,
                lambda p, w: both(
                    implies(self.started[p, w], self.pieces[self.piece_job[p], p]),
                    implies(self.landed[p, w], self.started[p, w]),
                    implies(
                        both(
                            self.pieces[self.piece_job[p], p],
                            self.submitted[self.piece_job[p], w],
                        ),
                        self.started[p, w],
                    ),
                    implies(
                        both(
                            self.pieces[self.piece_job[p], p],
                            negate(self.pending[self.piece_job[p], w]),
                            negate(self.failed[self.piece_job[p], w]),
                        ),
                        self.landed[p, w],
                    ),
                ),
            ),
        )

    @invariant("S1")
    def stores_read_leases(self) -> Bool:
        """What a store reads was handed out."""
        return both(
            forall(
                Piece,
                lambda p: implies(
                    both(self.store[self.piece_job[p]], self.pieces[self.piece_job[p], p]),
                    self.handed_at.has(self.piece_lease[p]),
                ),
            ),
            forall(
                Block,
                Worker,
                Job,
                Lease,
                lambda b, w, j, l: implies(
                    self.reading[b, w, j, l],
                    both(
                        self.store[j],
                        self.job_epoch.has(j),
                        self.job_epoch[j] == self.epoch.value,
                        self.lease_block[l] == b,
                        self.handed_at.has(l),
                    ),
                ),
            ),
        )

    @invariant("S3")
    def unfinished_stores_are_watched(self) -> Bool:
        """While a store of this epoch has not ended on a worker, its leases count as being read."""
        return forall(
            Piece,
            Worker,
            lambda p, w: implies(
                both(
                    self.store[self.piece_job[p]],
                    self.pieces[self.piece_job[p], p],
                    self.pending[self.piece_job[p], w],
                    self.job_epoch[self.piece_job[p]] == self.epoch.value,
                ),
                self.reading[
                    self.lease_block[self.piece_lease[p]],
                    w,
                    self.piece_job[p],
                    self.piece_lease[p],
                ],
            ),
        )

    @invariant("S3")
    def nothing_changes_under_a_reader(self) -> Bool:
        """From a store's start to its end its source holds the content that its key names."""
        return forall(
            Piece,
            Worker,
            lambda p, w: implies(
                both(
                    self.store[self.piece_job[p]],
                    self.started[p, w],
                    self.pending[self.piece_job[p], w],
                    self.job_epoch[self.piece_job[p]] == self.epoch.value,
                ),
                both(
                    self.written[self.piece_lease[p], w, self.place_content[self.piece_place[p]]],
                    self.owns(w, self.piece_lease[p]),
                ),
            ),
        )
