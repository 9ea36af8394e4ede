"""Why a slot has one user: dead copies are over before their slots are used again."""

from __future__ import annotations

from kvproof.spec.contract.sorts import Job, Residency, Slot, Worker
from kvproof.spec.lang import Bool, both, forall, implies, invariant, negate
from kvproof.spec.mechanism.state import MechanismState


class UserInvariants(MechanismState):
    """Each method is one invariant; its docstring is its sentence."""

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
