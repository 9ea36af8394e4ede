"""What every reachable state satisfies. Each invariant is a sentence; its id is what it serves."""

from __future__ import annotations

from kvproof.spec.contract.invariants.chunks import ChunkInvariants
from kvproof.spec.contract.invariants.jobs import JobInvariants
from kvproof.spec.contract.invariants.leases import LeaseInvariants
from kvproof.spec.contract.invariants.loads import LoadInvariants
from kvproof.spec.contract.invariants.slots import SlotInvariants


class Invariants(LeaseInvariants, JobInvariants, LoadInvariants, SlotInvariants, ChunkInvariants):
    """All of them."""
