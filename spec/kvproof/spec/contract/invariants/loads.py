"""What is true of loads, from the answer to the bytes that arrive."""

from __future__ import annotations

from kvproof.spec.contract.sorts import Content, Job, Lease, Piece, Request, Residency, Worker
from kvproof.spec.contract.views import Views
from kvproof.spec.lang import Bool, both, forall, implies, invariant, negate


class LoadInvariants(Views):
    """Each method is one invariant; its docstring is its sentence."""

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

    @invariant("L1")
    def only_the_living_wait(self) -> Bool:
        """A request whose lookup was put off has not ended, and was asked about by now."""
        return forall(
            Request,
            int,
            lambda r, n: implies(self.deferred[r, n], both(self.alive[r], n <= self.now.value)),
        )

    @invariant("L1")
    def waits_are_counted(self) -> Bool:
        """Who is put off is alive, has its polls counted, and waits for jobs of before."""
        return forall(
            Request,
            lambda r: both(
                implies(
                    self.putting_off.has(r),
                    both(
                        self.alive[r],
                        self.polls.has(r),
                        self.putting_off[r] <= self.issued.value,
                    ),
                ),
                implies(self.polls.has(r), self.putting_off.has(r)),
                implies(self.asking[r], self.alive[r]),
                implies(self.told.has(r), both(self.alive[r], self.told_from.has(r))),
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
