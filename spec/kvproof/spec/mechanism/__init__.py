"""The mechanism: how the production scheduler keeps the contract, by superposition.

The mechanism is the contract plus fields (``state``): each of its actions is an action of the
contract with further conditions, and updates of those fields alone, so that what it does, the
contract allows. Its moves stand in ``engine`` (in which order the engine calls, and what its
numbers mean), ``lookups``, ``plans``, ``workers`` and ``ends``; each names the function of the code
that it is. What the contract *obliges* a scheduler to is a goal here, but for what ``elsewhere``
lists with a reason; the contract's invariants are hypotheses, and the mechanism's own
(``invariants``) are proved. No condition asks for what only the contract knows when a table of the
scheduler has it.
"""

from __future__ import annotations

from functools import cache

from kvproof.spec import ir
from kvproof.spec.mechanism.elsewhere import ELSEWHERE
from kvproof.spec.mechanism.ends import Ends
from kvproof.spec.mechanism.engine import EngineCalls
from kvproof.spec.mechanism.invariants import MechanismInvariants
from kvproof.spec.mechanism.lookups import Questions
from kvproof.spec.mechanism.plans import Plans
from kvproof.spec.mechanism.workers import WorkerOrder

__all__ = ["ELSEWHERE", "Mechanism", "mechanism"]


class Mechanism(EngineCalls, Questions, Plans, WorkerOrder, Ends, MechanismInvariants):
    """The contract with the scheduler's own fields on top."""


@cache
def mechanism() -> ir.Machine:
    """The traced mechanism."""
    return Mechanism.trace()
