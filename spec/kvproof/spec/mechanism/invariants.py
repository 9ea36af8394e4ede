"""Why the mechanism keeps the contract: each invariant is a sentence, named after its lemma."""

from __future__ import annotations

from kvproof.spec.contract.sorts import Block, Job, Lease, Request, Residency, Slot, Worker
from kvproof.spec.lang import Bool, both, either, forall, implies, invariant, negate
from kvproof.spec.mechanism.state import MechanismState


class MechanismInvariants(MechanismState):
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

    @invariant("S7")
    def what_was_waited_for_uses_no_slot(self) -> Bool:
        """M7: a copy that has not ended is in no flush set that the worker has worked off."""
        return forall(
            Slot,
            Worker,
            Job,
            Residency,
            lambda s, w, j, x: implies(
                both(self.using[s, w, j, x], self.flush_at.has(j)),
                both(
                    self.waited_to[w] < self.flush_at[j],
                    implies(
                        self.flush_at[j] <= self.cleared_to[w],
                        self.cleared_to[w] <= self.job_step[j],
                    ),
                ),
            ),
        )

    # --- epochs ---

    @invariant("S7")
    def dead_jobs_are_older(self) -> Bool:
        """M2: a job of an earlier epoch was issued in an earlier step."""
        return both(
            forall(
                Job,
                Job,
                lambda i, j: implies(
                    both(
                        self.job_step.has(i),
                        self.job_step.has(j),
                        self.job_epoch[i] < self.job_epoch[j],
                    ),
                    self.job_step[i] < self.job_step[j],
                ),
            ),
            forall(
                Job,
                lambda i: both(
                    implies(
                        both(self.job_step.has(i), self.decided_in.value < self.now.value),
                        self.job_step[i] < self.now.value,
                    ),
                    implies(
                        both(self.job_step.has(i), self.job_epoch[i] < self.epoch.value),
                        self.job_step[i] < self.now.value,
                    ),
                ),
            ),
        )

    @invariant("S7")
    def dead_jobs_are_flushed(self) -> Bool:
        """M7: a dead job is flushed no later than the first job of a later epoch is issued."""
        return both(
            forall(
                Job,
                Job,
                Worker,
                lambda i, j, w: implies(
                    both(
                        self.unreported[i, w],
                        self.job_step.has(j),
                        self.job_epoch[i] < self.job_epoch[j],
                    ),
                    both(self.flush_at.has(i), self.flush_at[i] <= self.job_step[j]),
                ),
            ),
            forall(
                Job,
                Worker,
                lambda i, w: implies(
                    both(
                        self.unreported[i, w],
                        self.job_epoch[i] < self.epoch.value,
                        self.decided_in.value == self.now.value,
                    ),
                    self.flush_at.has(i),
                ),
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
                        self.job_epoch.has(j),
                        self.job_epoch[j] == self.epoch.value,
                        self.storing[x],
                        self.maker.has(x),
                        self.maker[x] == j,
                    ),
                ),
                implies(
                    self.to_unpin[j, x],
                    both(
                        self.job_epoch.has(j),
                        self.job_epoch[j] == self.epoch.value,
                        self.pinned[x, j],
                    ),
                ),
            ),
        )

    # --- slots ---

    @invariant("S7")
    def a_live_copy_keeps_its_chunk(self) -> Bool:
        """What a copy of this epoch uses is in the tier: being stored by it, or pinned by it."""
        return forall(
            Slot,
            Worker,
            Job,
            Residency,
            lambda s, w, j, x: implies(
                self.using[s, w, j, x],
                both(
                    self.job_step.has(j),
                    self.residency_slot[x] == s,
                    self.admitted_in.has(x),
                    self.admitted_in[x] == self.job_epoch[j],
                    implies(
                        self.job_epoch[j] == self.epoch.value,
                        both(
                            self.resident[x],
                            implies(
                                self.store[j],
                                both(self.storing[x], self.maker.has(x), self.maker[x] == j),
                            ),
                            implies(self.load[j], self.pinned[x, j]),
                        ),
                    ),
                ),
            ),
        )

    @invariant("S7")
    def one_chunk_a_slot_and_epoch(self) -> Bool:
        """Copies of one epoch that use one slot are of one residency."""
        return forall(
            Slot,
            Worker,
            Worker,
            Job,
            Job,
            Residency,
            Residency,
            lambda s, v, w, i, j, x, y: implies(
                both(
                    self.using[s, v, i, x],
                    self.using[s, w, j, y],
                    self.job_epoch[i] == self.job_epoch[j],
                ),
                x == y,
            ),
        )

    @invariant("S7")
    def residencies_of_a_slot_are_in_order(self) -> Bool:
        """Of two residencies of a slot one came first, and in no later epoch."""
        return forall(
            Residency,
            Residency,
            lambda x, y: implies(
                both(
                    self.admitted_in.has(x),
                    self.admitted_in.has(y),
                    self.residency_slot[x] == self.residency_slot[y],
                    negate(x == y),
                ),
                both(
                    negate(self.residency_seq[x] == self.residency_seq[y]),
                    implies(
                        self.residency_seq[x] < self.residency_seq[y],
                        self.admitted_in[x] <= self.admitted_in[y],
                    ),
                ),
            ),
        )
