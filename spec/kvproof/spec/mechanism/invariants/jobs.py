"""What the job table says, and what is true of jobs."""

from __future__ import annotations

from kvproof.spec.contract.sorts import Block, Job, Piece, Residency, Worker
from kvproof.spec.lang import EACH, Bool, both, either, forall, implies, invariant, negate, none
from kvproof.spec.mechanism.state import MechanismState


class TableInvariants(MechanismState):
    """Each method is one invariant; its docstring is its sentence."""

    @invariant("P5")
    def the_table_names_jobs_that_are_under_way(self) -> Bool:
        """M2: who is not reported is in the table, or dead and flushed; a planned load is, too."""
        return both(
            forall(Job, lambda j: implies(self.listed[j], self.job_epoch.has(j))),
            forall(
                Job,
                Worker,
                lambda j, w: implies(
                    self.unreported[j, w],
                    either(
                        self.listed[j],
                        both(self.job_epoch[j] < self.epoch.value, self.flush_at.has(j)),
                    ),
                ),
            ),
            forall(
                Job,
                lambda j: implies(
                    both(
                        self.load[j],
                        self.job_epoch[j] == self.epoch.value,
                        negate(self.job_step.has(j)),
                    ),
                    self.listed[j],
                ),
            ),
            forall(
                Job,
                lambda j: implies(
                    self.load[j],
                    either(self.tracked[self.job_request[j]], self.ended[self.job_request[j]]),
                ),
            ),
            forall(
                Block,
                Job,
                lambda b, j: implies(
                    self.fence[b, j],
                    both(self.listed[j], self.job_epoch[j] == self.epoch.value),
                ),
            ),
        )

    @invariant("P4")
    def who_is_left_has_not_reported(self) -> Bool:
        """Of a live job it is counted who has not reported it."""
        return forall(
            Job,
            Worker,
            lambda j, w: both(
                implies(
                    self.awaited[j, w],
                    both(
                        self.listed[j],
                        self.job_epoch[j] == self.epoch.value,
                        self.unreported[j, w],
                    ),
                ),
                implies(
                    both(self.unreported[j, w], self.job_epoch[j] == self.epoch.value),
                    self.awaited[j, w],
                ),
            ),
        )

    @invariant("P4")
    def a_job_is_over_when_nobody_is_left(self) -> Bool:
        """A live job is over, not handed out yet, or some worker has not reported it."""
        return forall(
            Job,
            lambda j: both(
                implies(
                    self.all_reported[j],
                    both(
                        self.listed[j],
                        self.job_epoch[j] == self.epoch.value,
                        self.job_step.has(j),
                        none(self.unreported.match(j, EACH)),
                    ),
                ),
                implies(
                    both(
                        self.listed[j],
                        self.job_epoch[j] == self.epoch.value,
                        self.job_step.has(j),
                    ),
                    either(self.all_reported[j], negate(none(self.awaited.match(j, EACH)))),
                ),
            ),
        )

    @invariant("P4")
    def what_has_ended_is_to_be_reported(self) -> Bool:
        """What a worker is about to report has ended there, and was not reported."""
        return forall(
            Job,
            Worker,
            lambda j, w: implies(
                self.to_report[j, w], both(self.unreported[j, w], negate(self.pending[j, w]))
            ),
        )

    @invariant("S6")
    def failures_are_told(self) -> Bool:
        """A copy that failed is still to be reported, or it was said that it failed."""
        return forall(
            Job,
            Worker,
            lambda j, w: both(
                implies(self.said_failed[j, w], self.failed[j, w]),
                implies(self.failed[j, w], either(self.unreported[j, w], self.said_failed[j, w])),
            ),
        )

    @invariant("P4")
    def what_is_to_complete_waits_in_the_tier(self) -> Bool:
        """M2: what a job has yet to complete is of this epoch, and the tier waits for just that."""
        return forall(
            Job,
            Residency,
            lambda j, x: both(
                implies(
                    self.to_complete[j, x],
                    both(
                        self.listed[j],
                        self.job_epoch[j] == self.epoch.value,
                        self.storing[x],
                        self.maker.has(x),
                        self.maker[x] == j,
                    ),
                ),
                implies(
                    self.to_unpin[j, x],
                    both(
                        self.listed[j],
                        self.job_epoch[j] == self.epoch.value,
                        self.pinned[x, j],
                    ),
                ),
                implies(self.pinned[x, j], self.to_unpin[j, x]),
            ),
        )

    @invariant("P12")
    def what_is_stored_has_a_store(self) -> Bool:
        """What the tier waits for is about to be given a store, or will be completed by its own."""
        return forall(
            Residency,
            lambda x: both(
                implies(
                    self.storing[x],
                    either(
                        self.granted[x],
                        both(self.maker.has(x), self.to_complete[self.maker[x], x]),
                    ),
                ),
                implies(
                    self.granted[x],
                    both(
                        self.storing[x],
                        negate(self.maker.has(x)),
                        self.decided_in.value == self.now.value,
                    ),
                ),
            ),
        )

    @invariant("L5")
    def a_failed_load_leaves_its_mark(self) -> Bool:
        """What a load reads it has pinned; that it failed is noted before the pin goes."""
        return both(
            forall(
                Piece,
                lambda p: implies(
                    both(self.load[self.piece_job[p]], self.pieces[self.piece_job[p], p]),
                    both(
                        self.admitted_in.has(self.place_residency[self.piece_place[p]]),
                        self.admitted_in[self.place_residency[self.piece_place[p]]]
                        == self.job_epoch[self.piece_job[p]],
                    ),
                ),
            ),
            forall(
                Piece,
                Worker,
                lambda p, w: implies(
                    both(
                        self.load[self.piece_job[p]],
                        self.pieces[self.piece_job[p], p],
                        either(
                            self.unreported[self.piece_job[p], w],
                            self.said_failed[self.piece_job[p], w],
                        ),
                    ),
                    either(
                        self.to_unpin[self.piece_job[p], self.place_residency[self.piece_place[p]]],
                        both(
                            negate(self.unreported[self.piece_job[p], w]),
                            self.refused[
                                self.job_request[self.piece_job[p]],
                                self.place_residency[self.piece_place[p]],
                            ],
                        ),
                        negate(self.resident[self.place_residency[self.piece_place[p]]]),
                        both(
                            negate(self.unreported[self.piece_job[p], w]),
                            self.ended[self.job_request[self.piece_job[p]]],
                        ),
                    ),
                ),
            ),
        )
