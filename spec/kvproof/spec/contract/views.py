"""Shorthands that several invariants share."""

from __future__ import annotations

from kvproof.spec.contract.sorts import Lease, Residency, Worker
from kvproof.spec.contract.state import State
from kvproof.spec.lang import Bool, Expr, both


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
