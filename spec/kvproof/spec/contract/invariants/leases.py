"""What is true of leases, and of blocks on the GPU."""

from __future__ import annotations

from kvproof.spec.contract.sorts import Block, Content, Lease, Request, Worker
from kvproof.spec.contract.views import Views
from kvproof.spec.lang import Bool, both, either, forall, implies, invariant, negate


class LeaseInvariants(Views):
    """Each method is one invariant; its docstring is its sentence."""

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

    @invariant("P7")
    def what_is_held_was_allocated(self) -> Bool:
        """Where a request holds a lease, its table has listed a block."""
        return forall(
            Request,
            Lease,
            lambda r, l: implies(self.holds[r, l], self.had[r, self.lease_position[l]]),
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

    @invariant("S10")
    def written_slots_were_reached(self) -> Bool:
        """What is written belongs to a lease of a step that the worker has reached."""
        return forall(
            Lease,
            Worker,
            Content,
            lambda l, w, c: implies(self.written[l, w, c], self.handed_at.has(l)),
        )

    @invariant("P6")
    def ends_follow_beginnings(self) -> Bool:
        """The tier hears of a request's end only after it heard of the request."""
        return forall(Request, lambda r: implies(self.concluded[r], self.announced[r]))

    @invariant("P13")
    def incarnations_are_distinct(self) -> Bool:
        """An incarnation that has ended never lives again."""
        return forall(Request, lambda r: negate(both(self.alive[r], self.ended[r])))
