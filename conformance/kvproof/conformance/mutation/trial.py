"""One mutant, tried: first on the histories that make its move, then on its proof obligations."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from kvproof.conformance.errors import UsageError
from kvproof.conformance.mutation.histories import Findings, History, committed
from kvproof.conformance.mutation.installed import installed
from kvproof.spec import ir
from kvproof.spec.contract import contract
from kvproof.spec.encode import Encoder
from kvproof.spec.mutants import Mutant, without
from kvproof.spec.obligations import Goal, Obligation, obligations
from kvproof.spec.prove import prove_one

UNTOUCHED = ("effect", "faithful")
"""Kinds that compare spec and reference, which agree on a slip: they cannot tell."""


@dataclass(frozen=True)
class Trial:
    """What became of a mutant.

    ``killed_by`` is "history", "proof" or "" (it lives); ``killer`` is the test whose history gives
    other findings, or the obligation that has a counterexample. ``undecided`` are obligations that
    the solver could not settle: they kill nothing. ``equivalent`` is for what lives: it is proved
    that the action with the deletion is allowed exactly where it was.
    """

    mutant: Mutant
    killed_by: str
    killer: str
    undecided: tuple[str, ...]
    equivalent: bool
    seconds: float


def tried(mutant: Mutant, timeout_ms: int) -> Trial:
    """Find out whether anything notices the mutant."""
    began = time.perf_counter()
    undecided: tuple[str, ...] = ()
    killed_by, killer = "history", next((history.test for history, _ in noticing(mutant)), "")
    if not killer:
        killed_by = "proof"
        killer, undecided = disproved(mutant, timeout_ms)
    same = not killer and mutant.kind != "update" and equivalent(mutant, timeout_ms)
    seconds = time.perf_counter() - began
    return Trial(mutant, killed_by if killer else "", killer, undecided, same, seconds)


def noticing(mutant: Mutant) -> Iterator[tuple[History, Findings]]:
    """The histories that give other findings when the mutant's move is made in them, and which.

    Those that find what a deleted guard is for come first: they are the guard's own.
    """
    own = mutant.id or f"A-{mutant.action}"
    # Judged once themselves, before anything is installed.
    histories = histories_of(mutant.action)
    histories = sorted(histories, key=lambda h: own not in (id for id, _ in h.findings))
    with installed(contract(), mutant):
        for history in histories:
            findings = _judged(history)
            if findings != history.findings:
                yield history, findings


def _judged(history: History) -> Findings:
    """What is found in a history, on whatever machine is installed."""
    try:
        return history.judged()[0]
    except Exception as error:  # a broken machine may lead the monitor anywhere
        return [(type(error).__name__, -1)]


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


def equivalent(mutant: Mutant, timeout_ms: int) -> bool:
    """Whether it is proved that the guards allow the same with the deletion as without it.

    Not tried where an update stands before a guard: then guards speak of different states.
    """
    action = contract().actions[mutant.action]
    if any(isinstance(s, ir.Guard) for s in action.body[len(_guards(action)) :]):
        return False
    changed = without(contract(), mutant).actions[mutant.action]

    def follows(given: ir.Action, wanted: ir.Action) -> bool:
        def build(e: Encoder) -> Goal:
            state, env = e.arbitrary(), {p.name: e.constant(p) for p in action.params}
            guards = [state.eval(g.cond, env) for g in _guards(given)]
            goal = e.conj([state.eval(g.cond, env) for g in _guards(wanted)])
            return [*e.invariants(), *guards], goal

        allowed = Obligation("allowed", action.name, mutant.id, mutant.name, build)
        return prove_one(allowed, timeout_ms).status == "proved"

    return follows(action, changed) and follows(changed, action)


def _guards(action: ir.Action) -> list[ir.Guard]:
    return [s for s in action.body if isinstance(s, ir.Guard)]


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
