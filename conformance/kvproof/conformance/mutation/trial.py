"""One mutant, tried: first on the histories that make its move, then on its proof obligations."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from kvproof.conformance.errors import UsageError
from kvproof.conformance.mutation.histories import History, committed
from kvproof.conformance.mutation.installed import installed
from kvproof.spec import ir
from kvproof.spec.contract import contract
from kvproof.spec.mutants import Mutant
from kvproof.spec.obligations import Obligation, obligations
from kvproof.spec.prove import prove_one

PROVING = ("step", "conclude", "defined")
"""The kinds that can tell: the others compare spec and reference, which agree on a slip."""


@dataclass(frozen=True)
class Trial:
    """What became of a mutant.

    ``killed_by`` is "history", "proof" or "" (it lives); ``killer`` is the test whose history gives
    other findings, or the obligation that has a counterexample. ``undecided`` are obligations that
    the solver could not settle: they kill nothing.
    """

    mutant: Mutant
    killed_by: str
    killer: str
    undecided: tuple[str, ...]
    seconds: float


def tried(mutant: Mutant, timeout_ms: int) -> Trial:
    """Find out whether anything notices the mutant."""
    began = time.perf_counter()
    undecided: list[str] = []
    killed_by, killer = "", next(noticing(mutant), "")
    if killer:
        killed_by = "history"
    else:
        for obligation in affected(mutant):
            status = prove_one(obligation, timeout_ms).status
            if status == "failed":
                killed_by, killer = "proof", obligation.name
                break
            if status == "unknown":
                undecided.append(obligation.name)
    return Trial(mutant, killed_by, killer, tuple(undecided), time.perf_counter() - began)


def noticing(mutant: Mutant) -> Iterator[str]:
    """The tests whose histories give other findings when the mutant's move is made in them.

    Those whose finding the mutated action gives come first: they are what the action is tested by.
    """
    with installed(contract(), mutant):
        for history in histories_of(mutant.action):
            if history.judged()[0] != history.findings:
                yield history.test


def affected(mutant: Mutant) -> list[Obligation]:
    """What has to be proved about the mutated action, as far as a proof can tell."""
    machine = mutant.machine(contract())
    return [o for o in obligations(machine, machine) if o.action and o.kind in PROVING]


def histories_of(action: str) -> list[History]:
    """The committed histories in which an action is tried."""
    return _by_action().get(action, [])


@cache
def _by_action() -> dict[str, list[History]]:
    """Raises: UsageError when the corpus does not fit the committed reference."""
    found: dict[str, list[History]] = {}
    for history in committed():
        findings, actions = history.judged()
        if findings != history.findings:
            raise UsageError(
                f"the history of {history.test} gives {findings}, not {history.findings}: "
                "run scripts/corpus"
            )
        for action in actions:
            found.setdefault(action, []).append(history)
    return found


def machine_of(mutant: Mutant) -> ir.Machine:
    """The contract with the mutant's action."""
    return mutant.machine(contract())
