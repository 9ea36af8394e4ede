"""What is true of chunks in the tier."""

from __future__ import annotations

from kvproof.spec.contract.sorts import Key, Piece, Place, Residency, Slot, Worker
from kvproof.spec.contract.views import Views
from kvproof.spec.lang import Bool, both, either, forall, implies, invariant, negate


class ChunkInvariants(Views):
    """Each method is one invariant; its docstring is its sentence."""

    @invariant("S8")
    def slots_match_keys(self) -> Bool:
        """Keys and slots of resident chunks are in bijection; every slot is the tier's."""
        return both(
            forall(
                Key,
                lambda k: implies(
                    self.where.has(k),
                    both(
                        self.resident[self.where[k]],
                        self.residency_key[self.where[k]] == k,
                    ),
                ),
            ),
            forall(
                Slot,
                lambda s: implies(
                    self.occupant.has(s),
                    both(
                        self.resident[self.occupant[s]],
                        self.residency_slot[self.occupant[s]] == s,
                        self.slot_exists[s],
                    ),
                ),
            ),
            forall(
                Residency,
                lambda x: implies(
                    self.resident[x],
                    both(
                        self.where.has(self.residency_key[x]),
                        self.where[self.residency_key[x]] == x,
                        self.occupant.has(self.residency_slot[x]),
                        self.occupant[self.residency_slot[x]] == x,
                    ),
                ),
            ),
        )

    @invariant("S13")
    def reset_forgets(self) -> Bool:
        """What is in the tier was handed its slot in this epoch; a maker is of that epoch too."""
        return both(
            forall(
                Residency,
                lambda x: implies(
                    self.resident[x],
                    both(
                        self.admitted_in.has(x),
                        self.admitted_in[x] == self.epoch.value,
                    ),
                ),
            ),
            forall(
                Residency,
                lambda x: implies(self.admitted_in.has(x), self.admitted_in[x] <= self.epoch.value),
            ),
            forall(
                Residency,
                lambda x: implies(
                    self.maker.has(x),
                    both(
                        self.admitted_in.has(x),
                        self.store[self.maker[x]],
                        self.job_epoch[self.maker[x]] == self.admitted_in[x],
                    ),
                ),
            ),
        )

    @invariant("S6")
    def resident_chunks_are_stored_or_being_stored(self) -> Bool:
        """A resident chunk is either readable or being stored, never both."""
        return forall(
            Residency,
            lambda x: both(
                implies(self.ready[x], both(self.resident[x], self.maker.has(x))),
                implies(self.storing[x], self.resident[x]),
                negate(both(self.ready[x], self.storing[x])),
                implies(self.resident[x], either(self.ready[x], self.storing[x])),
            ),
        )

    @invariant("S6")
    def readable_means_complete(self) -> Bool:
        """When a chunk is readable every worker has finished its store, and well."""
        return forall(
            Residency,
            Worker,
            lambda x, w: implies(
                self.ready[x],
                both(
                    negate(self.pending[self.maker[x], w]),
                    negate(self.failed[self.maker[x], w]),
                ),
            ),
        )

    @invariant("S4")
    def stores_fill_what_they_make(self) -> Bool:
        """A store's pieces go to residencies that it makes; a place is filled by its own piece."""
        return both(
            forall(
                Piece,
                lambda p: implies(
                    both(self.store[self.piece_job[p]], self.pieces[self.piece_job[p], p]),
                    both(
                        self.maker.has(self.place_residency[self.piece_place[p]]),
                        self.maker[self.place_residency[self.piece_place[p]]] == self.piece_job[p],
                    ),
                ),
            ),
            forall(
                Place,
                lambda y: implies(
                    self.cover.has(y),
                    both(
                        self.piece_place[self.cover[y]] == y,
                        self.store[self.piece_job[self.cover[y]]],
                        self.pieces[self.piece_job[self.cover[y]], self.cover[y]],
                    ),
                ),
            ),
        )

    @invariant("S10")
    def stored_pieces_are_in_place(self) -> Bool:
        """A piece of this epoch that a worker has stored lies where its key says."""
        return forall(
            Piece,
            Worker,
            lambda p, w: implies(
                both(
                    self.store[self.piece_job[p]],
                    self.landed[p, w],
                    self.resident[self.place_residency[self.piece_place[p]]],
                ),
                self.placed[self.piece_place[p], w],
            ),
        )

    @invariant("S10")
    def covered_places_of_readable_chunks_are_right(self) -> Bool:
        """A readable chunk holds, at each place that its store covered, what its key names."""
        return forall(
            Place,
            Worker,
            lambda y, w: implies(
                both(self.cover.has(y), self.ready[self.place_residency[y]]),
                both(self.placed[y, w], self.slot_is(w, self.place_residency[y])),
            ),
        )
