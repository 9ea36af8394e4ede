"""One mutant, tried: first on the histories that make its move, then on its proof obligations."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from kvproof.conformance.errors import UsageError
from kvproof.conformance.mutation.histories import History, committed
from kvproof.conformance.mutation.installed import installed
from kvproof.spec.contract import contract
from kvproof.spec.mutants import Mutant, without
from kvproof.spec.obligations import obligations
from kvproof.spec.prove import prove_one

UNTOUCHED = ("effect", "faithful")
"""Kinds that compare spec and reference, which agree on a slip: they cannot tell."""


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
    undecided: tuple[str, ...] = ()
    killed_by, killer = "history", next(noticing(mutant), "")
    if not killer:
        killed_by = "proof"
        killer, undecided = disproved(mutant, timeout_ms)
    seconds = time.perf_counter() - began
    return Trial(mutant, killed_by if killer else "", killer, undecided, seconds)


def noticing(mutant: Mutant) -> Iterator[str]:
    """The tests whose histories give other findings when the mutant's move is made in them."""
    histories = histories_of(mutant.action)  # judged once themselves, before anything is installed
    with installed(contract(), mutant):
        for history in histories:
            if history.judged()[0] != history.findings:
                yield history.test


def disproved(mutant: Mutant, timeout_ms: int) -> tuple[str, tuple[str, ...]]:
    """The first obligation on the action that fails, or ""; and those undecided until then."""
    machine = without(contract(), mutant)
    undecided: list[str] = []
    for obligation in obligations(machine, machine):
        if not obligation.action or obligation.kind in UNTOUCHED:
            continue
        status = prove_one(obligation, timeout_ms).status
        if status == "failed":
            return obligation.name, tuple(undecided)
        if status == "unknown":
            undecided.append(obligation.name)
    return "", tuple(undecided)


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
