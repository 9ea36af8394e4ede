"""Shorthands that several invariants share."""

from __future__ import annotations

from kvproof.spec.contract.sorts import Lease, Residency, Worker
from kvproof.spec.contract.state import State
from kvproof.spec.lang import EACH, Bool, Expr, both, either, every


class Views(State):
    """Conditions with a name."""

    def owns(self, w: Expr[Worker], l: Expr[Lease]) -> Bool:
        """Nothing has changed the lease's block since the lease itself did."""
        b = self.lease_block[l]
        return both(self.owner.has(b, w), self.owner[b, w] == l)

    def slot_is(self, w: Expr[Worker], x: Expr[Residency]) -> Bool:
        """The last residency whose store wrote the slot on the worker is this one."""
        s = self.residency_slot[x]
        return both(self.slot_owner.has(s, w), self.slot_owner[s, w] == x)

    def no_earlier_lease_is_read(self, w: Expr[Worker], l: Expr[Lease]) -> Bool:
        """No store may still be reading an earlier lease of the block there."""
        return every(
            self.reading.match(self.lease_block[l], w, EACH, EACH),
            lambda j, other: either(other == l, self.lease_seq[l] < self.lease_seq[other]),
        )
