"""Why the mechanism keeps the contract: each invariant is a sentence, named after its lemma.

Each ties a table of the scheduler to what is true.
"""

from __future__ import annotations

from kvproof.spec.mechanism.invariants.chunks import CoverageInvariants
from kvproof.spec.mechanism.invariants.flushes import FlushInvariants
from kvproof.spec.mechanism.invariants.jobs import TableInvariants
from kvproof.spec.mechanism.invariants.slots import UserInvariants
from kvproof.spec.mechanism.invariants.tables import RequestInvariants


class MechanismInvariants(
    FlushInvariants, UserInvariants, TableInvariants, RequestInvariants, CoverageInvariants
):
    """All of them."""
