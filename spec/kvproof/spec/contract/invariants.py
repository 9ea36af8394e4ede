"""What every reachable state satisfies. Each invariant is a sentence; its id is what it serves."""

from __future__ import annotations

from kvproof.spec.contract.sorts import (
    Block,
    Content,
    Job,
    Key,
    Lane,
    Lease,
    Piece,
    Place,
    Request,
    Residency,
    Slot,
    Worker,
)
from kvproof.spec.contract.state import State
from kvproof.spec.lang import Bool, Expr, both, either, forall, implies, invariant, negate


class Invariants(State):
    """Grouped as the fields are: leases, the GPU, jobs, the tier."""

    # --- leases ---

    @invariant("S1")
    def a_block_knows_its_latest_lease(self) -> Bool:
        """The current lease of a block is a lease of that block, handed out, not superseded."""
        return forall(
            Block,
            lambda b: implies(
                self.current.has(b),
                both(
                    self.lease_block[self.current[b]] == b,
                    self.handed_at.has(self.current[b]),
                    negate(self.superseded_at.has(self.current[b])),
                ),
            ),
        )

    @invariant("S1")
    def older_leases_are_superseded(self) -> Bool:
        """A lease that is not its block's current one has been superseded, and came before it."""
        return forall(
            Lease,
            lambda l: implies(
                self.handed_at.has(l),
                both(
                    self.current.has(self.lease_block[l]),
                    either(
                        self.current[self.lease_block[l]] == l,
                        both(
                            self.superseded_at.has(l),
                            self.lease_seq[l] < self.lease_seq[self.current[self.lease_block[l]]],
                        ),
                    ),
                ),
            ),
        )

    @invariant("S1")
    def what_is_superseded_was_handed_out(self) -> Bool:
        """Only leases that were handed out are superseded."""
        return forall(Lease, lambda l: implies(self.superseded_at.has(l), self.handed_at.has(l)))

    @invariant("S1")
    def held_leases_are_current(self) -> Bool:
        """What a request holds is its block's current lease."""
        return forall(
            Request,
            Lease,
            lambda r, l: implies(
                self.holds[r, l],
                both(
                    self.current.has(self.lease_block[l]),
                    self.current[self.lease_block[l]] == l,
                ),
            ),
        )

    @invariant("S3")
    def leases_of_a_block_follow_each_other(self) -> Bool:
        """Of two leases of a block the earlier was superseded by the time the later was made."""
        return forall(
            Lease,
            Lease,
            lambda l, m: implies(
                both(
                    self.handed_at.has(l),
                    self.handed_at.has(m),
                    self.lease_block[l] == self.lease_block[m],
                    negate(l == m),
                ),
                both(
                    negate(self.lease_seq[l] == self.lease_seq[m]),
                    implies(
                        self.lease_seq[l] < self.lease_seq[m],
                        both(
                            self.superseded_at.has(l),
                            self.superseded_at[l] <= self.handed_at[m],
                        ),
                    ),
                ),
            ),
        )

    @invariant("S3")
    def hand_outs_lie_in_the_past(self) -> Bool:
        """No lease is from a later window than the open one, and workers lag behind it."""
        return both(
            forall(
                Lease,
                lambda l: implies(self.handed_at.has(l), self.handed_at[l] <= self.now.value),
            ),
            forall(Worker, lambda w: self.at[w] < self.now.value),
        )

    # --- the GPU ---

    @invariant("S3")
    def a_block_was_changed_by_a_lease_that_was_reached(self) -> Bool:
        """Who changed a block on a worker is a lease of it from a step that the worker reached."""
        return forall(
            Block,
            Worker,
            lambda b, w: implies(
                self.owner.has(b, w),
                both(
                    self.lease_block[self.owner[b, w]] == b,
                    self.handed_at.has(self.owner[b, w]),
                    self.handed_at[self.owner[b, w]] <= self.at[w],
                ),
            ),
        )

    @invariant("S14")
    def what_may_be_read_is_there(self) -> Bool:
        """Settled content was written, and the block is unchanged until it is handed out again."""
        return forall(
            Lease,
            Worker,
            Content,
            lambda l, w, c: implies(
                self.settled[l, w, c],
                both(
                    self.written[l, w, c],
                    self.handed_at.has(l),
                    self.handed_at[l] <= self.at[w],
                    either(
                        both(self.superseded_at.has(l), self.superseded_at[l] <= self.at[w]),
                        self.owns(w, l),
                    ),
                ),
            ),
        )

    def owns(self, w: Expr[Worker], l: Expr[Lease]) -> Bool:
        """Nothing has changed the lease's block since the lease itself did."""
        b = self.lease_block[l]
        return both(self.owner.has(b, w), self.owner[b, w] == l)

    # --- destinations of loads ---

    @invariant("S11")
    def destinations_are_held_by_one(self) -> Bool:
        """A lease that a load fills is current, held by the load's request alone, and unread."""
        return both(
            forall(
                Lease,
                Job,
                lambda l, j: implies(
                    self.incoming[l, j],
                    both(
                        self.load[j],
                        self.job_step.has(j),
                        self.handed_at.has(l),
                        self.handed_at[l] <= self.job_step[j],
                        self.current.has(self.lease_block[l]),
                        self.current[self.lease_block[l]] == l,
                    ),
                ),
            ),
            forall(
                Lease,
                Job,
                Request,
                lambda l, j, r: implies(
                    both(self.incoming[l, j], self.holds[r, l]), self.job_request[j] == r
                ),
            ),
            forall(
                Lease,
                Job,
                Worker,
                Content,
                lambda l, j, w, c: implies(self.incoming[l, j], negate(self.settled[l, w, c])),
            ),
            forall(
                Lease,
                Job,
                Job,
                lambda l, i, j: implies(both(self.incoming[l, i], self.incoming[l, j]), i == j),
            ),
        )

    @invariant("S11")
    def a_load_owns_its_destinations_from_its_start(self) -> Bool:
        """Once a load's piece has started nothing else changes its block until the engine knows."""
        return forall(
            Piece,
            Worker,
            lambda p, w: implies(
                both(
                    self.load[self.piece_job[p]],
                    self.started[p, w],
                    self.incoming[self.piece_lease[p], self.piece_job[p]],
                ),
                self.owns(w, self.piece_lease[p]),
            ),
        )

    @invariant("S11")
    def pending_loads_are_incoming(self) -> Bool:
        """While a worker's copy of a load has not ended, the engine has not taken its blocks."""
        return forall(
            Piece,
            Worker,
            lambda p, w: implies(
                both(
                    self.load[self.piece_job[p]],
                    self.pieces[self.piece_job[p], p],
                    self.pending[self.piece_job[p], w],
                ),
                self.incoming[self.piece_lease[p], self.piece_job[p]],
            ),
        )

    # --- jobs ---

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

    # --- slots ---

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

    # --- the tier ---

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

    def slot_is(self, w: Expr[Worker], x: Expr[Residency]) -> Bool:
        """The last residency whose store wrote the slot on the worker is this one."""
        s = self.residency_slot[x]
        return both(self.slot_owner.has(s, w), self.slot_owner[s, w] == x)

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

    @invariant("S10")
    def served_bytes_are_right(self) -> Bool:
        """Until a load has ended on a worker its places hold what their keys name there."""
        return forall(
            Piece,
            Worker,
            lambda p, w: implies(
                both(
                    self.load[self.piece_job[p]],
                    self.pieces[self.piece_job[p], p],
                    self.pending[self.piece_job[p], w],
                ),
                both(
                    self.placed[self.piece_place[p], w],
                    self.slot_is(w, self.place_residency[self.piece_place[p]]),
                ),
            ),
        )

    @invariant("S10")
    def loaded_bytes_are_right(self) -> Bool:
        """A load that has ended well brought what its keys name."""
        return forall(
            Piece,
            Worker,
            lambda p, w: implies(
                both(self.load[self.piece_job[p]], self.landed[p, w]),
                self.written[self.piece_lease[p], w, self.place_content[self.piece_place[p]]],
            ),
        )

    @invariant("S10")
    def written_slots_were_reached(self) -> Bool:
        """What is written belongs to a lease of a step that the worker has reached."""
        return forall(
            Lease,
            Worker,
            Content,
            lambda l, w, c: implies(self.written[l, w, c], self.handed_at.has(l)),
        )

    @invariant("S5")
    def answers_and_pins_name_readable_chunks(self) -> Bool:
        """What a request was answered, and what a load pins, is in the tier and readable."""
        return both(
            forall(
                Request,
                Residency,
                lambda r, x: implies(self.answered[r, x], both(self.resident[x], self.ready[x])),
            ),
            forall(
                Residency,
                Job,
                lambda x, j: implies(
                    self.pinned[x, j],
                    both(self.resident[x], self.ready[x], self.load[j]),
                ),
            ),
        )

    @invariant("P12")
    def pins_have_a_live_load(self) -> Bool:
        """A pin belongs to a load of this epoch."""
        return forall(
            Residency,
            Job,
            lambda x, j: implies(
                self.pinned[x, j],
                both(
                    self.job_epoch.has(j),
                    self.job_epoch[j] == self.epoch.value,
                ),
            ),
        )

    @invariant("P13")
    def incarnations_are_distinct(self) -> Bool:
        """An incarnation that has ended never lives again."""
        return forall(Request, lambda r: negate(both(self.alive[r], self.ended[r])))
