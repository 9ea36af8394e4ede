"""Why no block changes under a reader: the fence, the flush set, the two waits of a step."""

from __future__ import annotations

from kvproof.spec.contract.sorts import Block, Content, Job, Lease, Piece, Request, Worker
from kvproof.spec.lang import Bool, both, either, forall, implies, invariant, negate
from kvproof.spec.mechanism.state import MechanismState


class FlushInvariants(MechanismState):
    """Each method is one invariant; its docstring is its sentence."""

    # --- fence and flush ---

    @invariant("S3")
    def what_is_read_is_fenced(self) -> Bool:
        """M3: while a store of this epoch may read a block, the block is fenced."""
        return forall(
            Block,
            Worker,
            Job,
            Lease,
            lambda b, w, j, l: implies(
                self.reading[b, w, j, l],
                both(self.fence[b, j], self.job_step.has(j), self.unreported[j, w]),
            ),
        )

    @invariant("S3")
    def a_reader_of_a_lease_that_is_over_is_flushed(self) -> Bool:
        """M3: a store that reads what was handed out again is flushed no later than that."""
        return forall(
            Block,
            Worker,
            Job,
            Lease,
            lambda b, w, j, l: implies(
                both(
                    self.reading[b, w, j, l],
                    self.superseded_at.has(l),
                    either(
                        self.superseded_at[l] < self.now.value,
                        self.decided_in.value == self.now.value,
                    ),
                ),
                both(self.flush_at.has(j), self.flush_at[j] <= self.superseded_at[l]),
            ),
        )

    @invariant("S3")
    def what_was_waited_for_is_not_read(self) -> Bool:
        """M5: what may still be reading is in no flush set that the worker has worked off."""
        return forall(
            Block,
            Worker,
            Job,
            Lease,
            lambda b, w, j, l: implies(
                both(self.reading[b, w, j, l], self.flush_at.has(j)),
                self.waited_to[w] < self.flush_at[j],
            ),
        )

    @invariant("S3")
    def flushes_follow_issues(self) -> Bool:
        """M5: what is flushed was issued, not later than that, and not in the future."""
        return forall(
            Job,
            lambda j: implies(
                self.flush_at.has(j),
                both(
                    self.job_step.has(j),
                    self.job_step[j] <= self.flush_at[j],
                    self.flush_at[j] <= self.now.value,
                ),
            ),
        )

    @invariant("S3")
    def leases_are_given_up_before_they_are_over(self) -> Bool:
        """A block is handed out again only after its requests have let go of it."""
        return forall(
            Request,
            Lease,
            lambda r, l: implies(
                both(self.given_up_at.has(r, l), self.superseded_at.has(l)),
                self.given_up_at[r, l] <= self.superseded_at[l],
            ),
        )

    @invariant("S3")
    def the_past_is_past(self) -> Bool:
        """No lease is superseded, given up or planned for in a window that is to come."""
        return both(
            self.decided_in.value <= self.now.value,
            forall(
                Lease,
                lambda l: implies(
                    self.superseded_at.has(l), self.superseded_at[l] <= self.now.value
                ),
            ),
            forall(
                Request,
                Lease,
                lambda r, l: implies(
                    self.given_up_at.has(r, l), self.given_up_at[r, l] <= self.now.value
                ),
            ),
        )

    @invariant("S3")
    def hand_outs_of_a_decided_window_are_over(self) -> Bool:
        """A lease that was superseded in this window has a successor that was handed out in it."""
        return forall(
            Lease,
            lambda l: implies(
                self.superseded_at.has(l),
                both(
                    self.handed_at.has(l),
                    self.current.has(self.lease_block[l]),
                    self.handed_at.has(self.current[self.lease_block[l]]),
                    self.superseded_at[l] <= self.handed_at[self.current[self.lease_block[l]]],
                ),
            ),
        )

    # --- workers ---

    @invariant("S7")
    def workers_wait_step_by_step(self) -> Bool:
        """A worker has worked off the flush sets of all steps before the one that it executes."""
        return forall(
            Worker,
            lambda w: both(
                self.waited_to[w] <= self.at[w],
                self.at[w] <= self.waited_to[w] + 1,
                self.cleared_to[w] <= self.at[w],
            ),
        )

    @invariant("S3")
    def what_is_handed_out_is_known(self) -> Bool:
        """Blocks that were handed out in this window are in the list that the fence is held to."""
        return forall(
            Block,
            lambda b: implies(
                both(
                    self.current.has(b),
                    self.handed_at.has(self.current[b]),
                    self.handed_at[self.current[b]] == self.now.value,
                ),
                self.leased[b],
            ),
        )

    @invariant("L4")
    def no_step_waits_for_its_own_loads(self) -> Bool:
        """M5: loads start after the waits of their step, so it is a later one that flushes them."""
        return forall(
            Job,
            lambda j: implies(
                both(self.load[j], self.flush_at.has(j)), self.job_step[j] < self.flush_at[j]
            ),
        )

    @invariant("P2")
    def what_is_to_be_submitted_was_not(self) -> Bool:
        """What a worker still has, its copier has not; what it has no more is of a step so far."""
        return forall(
            Job,
            Worker,
            lambda j, w: both(
                implies(
                    self.to_submit[j, w],
                    both(self.job_step.has(j), self.pending[j, w], negate(self.submitted[j, w])),
                ),
                implies(
                    self.job_step.has(j),
                    either(self.to_submit[j, w], self.job_step[j] <= self.at[w]),
                ),
            ),
        )

    # --- what is read is there ---

    @invariant("S2")
    def what_is_due_is_there(self) -> Bool:
        """What the engine has counted as computed by an earlier step is in its block."""
        return both(
            forall(
                Lease,
                Content,
                int,
                lambda l, c, n: implies(
                    self.due[l, c, n],
                    both(
                        n <= self.now.value,
                        forall(
                            Worker,
                            lambda w: implies(n < self.at[w], self.settled[l, w, c]),
                        ),
                    ),
                ),
            ),
            forall(
                Lease,
                Content,
                lambda l, c: implies(
                    self.due_in.has(l, c),
                    self.due[l, c, self.due_in[l, c]],
                ),
            ),
        )

    @invariant("S2")
    def blocks_change_after_the_waits(self) -> Bool:
        """Settled content stays until the waits of a later lease's step are over."""
        return forall(
            Lease,
            Worker,
            Content,
            lambda l, w, c: implies(
                self.settled[l, w, c],
                either(
                    both(self.superseded_at.has(l), self.superseded_at[l] <= self.waited_to[w]),
                    self.owns(w, l),
                ),
            ),
        )

    @invariant("S2")
    def stores_read_what_is_due(self) -> Bool:
        """M5: a store reads what its step computes; flushed in it, what an earlier one did."""
        return forall(
            Piece,
            lambda p: implies(
                both(self.store[self.piece_job[p]], self.pieces[self.piece_job[p], p]),
                both(
                    self.due_in.has(self.piece_lease[p], self.place_content[self.piece_place[p]]),
                    self.due_in[self.piece_lease[p], self.place_content[self.piece_place[p]]]
                    <= self.job_step[self.piece_job[p]],
                    implies(
                        both(
                            self.flush_at.has(self.piece_job[p]),
                            self.flush_at[self.piece_job[p]] == self.job_step[self.piece_job[p]],
                        ),
                        self.due_in[self.piece_lease[p], self.place_content[self.piece_place[p]]]
                        < self.job_step[self.piece_job[p]],
                    ),
                ),
            ),
        )
