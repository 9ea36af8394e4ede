"""What is true of slots, and of the copies that use them."""

from __future__ import annotations

from kvproof.spec.contract.sorts import Job, Piece, Residency, Slot, Worker
from kvproof.spec.contract.views import Views
from kvproof.spec.lang import Bool, both, either, forall, implies, invariant, negate


class SlotInvariants(Views):
    """Each method is one invariant; its docstring is its sentence."""

    @invariant("S7")
    def slots_are_used_by_their_residencies(self) -> Bool:
        """Who uses a slot is a residency of it whose copy has not ended; owners were handed it."""
        return both(
            forall(
                Slot,
                Worker,
                Job,
                Residency,
                lambda s, w, j, x: implies(
                    self.using[s, w, j, x],
                    both(
                        self.residency_slot[x] == s,
                        self.admitted_in.has(x),
                        self.pending[j, w],
                    ),
                ),
            ),
            forall(
                Slot,
                Worker,
                lambda s, w: implies(
                    self.slot_owner.has(s, w),
                    both(
                        self.residency_slot[self.slot_owner[s, w]] == s,
                        self.admitted_in.has(self.slot_owner[s, w]),
                    ),
                ),
            ),
            forall(
                Piece,
                Worker,
                lambda p, w: implies(
                    both(
                        self.pieces[self.piece_job[p], p],
                        self.pending[self.piece_job[p], w],
                    ),
                    self.using[
                        self.residency_slot[self.place_residency[self.piece_place[p]]],
                        w,
                        self.piece_job[p],
                        self.place_residency[self.piece_place[p]],
                    ],
                ),
            ),
        )

    @invariant("S7")
    def a_late_copy_is_not_overtaken(self) -> Bool:
        """Before a copy is submitted no later residency of its slot has been written."""
        return forall(
            Slot,
            Worker,
            Job,
            Residency,
            lambda s, w, j, x: implies(
                both(
                    self.using[s, w, j, x],
                    negate(self.submitted[j, w]),
                    self.slot_owner.has(s, w),
                ),
                self.residency_seq[self.slot_owner[s, w]] <= self.residency_seq[x],
            ),
        )

    @invariant("S7")
    def slots_are_handed_out_in_order(self) -> Bool:
        """The last residency of a slot is the latest; who occupies a slot is its last residency."""
        return both(
            forall(
                Residency,
                lambda x: implies(
                    self.admitted_in.has(x),
                    both(
                        self.latest.has(self.residency_slot[x]),
                        either(
                            self.latest[self.residency_slot[x]] == x,
                            self.residency_seq[x]
                            < self.residency_seq[self.latest[self.residency_slot[x]]],
                        ),
                    ),
                ),
            ),
            forall(
                Slot,
                lambda s: implies(
                    self.latest.has(s),
                    both(
                        self.residency_slot[self.latest[s]] == s,
                        self.admitted_in.has(self.latest[s]),
                    ),
                ),
            ),
            forall(
                Slot,
                lambda s: implies(
                    self.occupant.has(s),
                    both(self.latest.has(s), self.latest[s] == self.occupant[s]),
                ),
            ),
        )

    @invariant("S7")
    def a_live_store_owns_its_slots(self) -> Bool:
        """Once a store of a resident chunk has started on a worker, its slot is the chunk's."""
        return forall(
            Piece,
            Worker,
            lambda p, w: implies(
                both(
                    self.store[self.piece_job[p]],
                    self.started[p, w],
                    self.resident[self.place_residency[self.piece_place[p]]],
                ),
                self.slot_is(w, self.place_residency[self.piece_place[p]]),
            ),
        )
