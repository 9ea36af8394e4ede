"""The contract: what any KV-offloading scheduler keeps, in leases, residencies, incarnations.

Read in this order: ``sorts`` (the words), ``state`` (the fields) with
``views`` (conditions that have a name), then the parties' moves in
``engine``, ``jobs``, ``worker`` and ``tier``, and at last ``invariants``. It knows nothing of a
scheduler's own fences, mirrors, cursors or job tables.
"""

from __future__ import annotations

from functools import cache

from kvproof.spec import ir
from kvproof.spec.contract.engine import EngineMoves
from kvproof.spec.contract.invariants import Invariants
from kvproof.spec.contract.jobs import JobMoves
from kvproof.spec.contract.tier import TierMoves
from kvproof.spec.contract.worker import WorkerMoves


class Contract(EngineMoves, JobMoves, WorkerMoves, TierMoves, Invariants):
    """All parties' moves and all invariants, as one machine."""


@cache
def contract() -> ir.Machine:
    """The traced contract."""
    return Contract.trace()
