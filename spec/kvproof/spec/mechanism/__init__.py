"""The mechanism: how the production scheduler keeps the contract, by superposition.

The mechanism is the contract plus fields (``state``): each of its actions is an action of the
contract with further conditions, and updates of those fields alone (``moves``), so that what it
does, the contract allows. What the contract *obliges* a scheduler to is a goal here, for the ids in
``REFINED``; the contract's invariants are hypotheses, and the mechanism's own (``invariants``) are
proved.

So far: the fence and the flush (M3, M5), epochs and dead jobs (M2, M7), the job table, and the
order of a worker's step, from which S3, S7, P4, P5, S6 and P14 follow. The other obligations (where
a block lies, what is computed, what is answered, in which order the tier is told) are still taken
for granted here.
"""

from __future__ import annotations

from functools import cache

from kvproof.spec import ir
from kvproof.spec.mechanism.invariants import MechanismInvariants
from kvproof.spec.mechanism.moves import MechanismMoves

REFINED = frozenset({"S3", "S6", "S7", "P4", "P5", "P14"})
"""Ids whose obligations are proved to be kept; see ``NOT_OURS`` for what they exclude."""

NOT_OURS = frozenset({"evict", "hit", "release"})
"""Actions whose obligations are kept by others: whom the tier evicts, and what it calls readable,
is its manager's promise; that a load failed is the worker's word.
"""


class Mechanism(MechanismMoves, MechanismInvariants):
    """The contract with the scheduler's own fields on top."""


@cache
def mechanism() -> ir.Machine:
    """The traced mechanism."""
    return Mechanism.trace()
