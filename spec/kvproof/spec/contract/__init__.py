"""The contract: what any KV-offloading scheduler keeps, in leases, residencies, incarnations.

Read in this order: ``sorts`` (the words), ``state`` (the fields) with ``views`` (conditions that
have a name), then the parties' moves in ``engine``, ``lookups``, ``jobs``, ``worker`` and ``tier``,
then ``invariants`` and ``progress``; ``economy`` only judges. It knows nothing of a scheduler's own
fences, mirrors, cursors or job tables.
"""

from __future__ import annotations

from functools import cache

from kvproof.spec import ir
from kvproof.spec.contract.economy import EconomyMoves
from kvproof.spec.contract.engine import EngineMoves
from kvproof.spec.contract.invariants import Invariants
from kvproof.spec.contract.jobs import JobMoves
from kvproof.spec.contract.lookups import LookupMoves
from kvproof.spec.contract.progress import Progress
from kvproof.spec.contract.tier import TierMoves
from kvproof.spec.contract.worker import WorkerMoves
from kvproof.spec.expressions import SpecError
from kvproof.spec.ids import CONTRACT


class Contract(
    EngineMoves,
    LookupMoves,
    JobMoves,
    WorkerMoves,
    TierMoves,
    EconomyMoves,
    Invariants,
    Progress,
):
    """All parties' moves and all invariants, as one machine."""


@cache
def contract() -> ir.Machine:
    """The traced contract.

    Raises:
        SpecError: an action that may only note a missed hit would change something, too.
    """
    machine = Contract.trace()
    for action in machine.actions.values():
        guards = [s for s in action.body if isinstance(s, ir.Guard)]
        missed = [g.id in CONTRACT and CONTRACT[g.id].severity == "missed" for g in guards]
        # The monitor goes on after such a guard is broken, so nothing may depend on it.
        if any(missed) and not (all(missed) and len(guards) == len(action.body)):
            raise SpecError(f"{action.name} mixes what is missed with what is unsafe or changes")
    return machine
