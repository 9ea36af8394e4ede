"""Running the proofs: every obligation to Z3, in several processes, ``unknown`` never a pass."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from typing import Any

import z3

from kvproof.spec import ir
from kvproof.spec.contract import contract
from kvproof.spec.encode import Encoder
from kvproof.spec.functions.verify import (
    FunctionObligation,
    emitted_text,
    function_obligations,
    spec_text,
)
from kvproof.spec.mechanism import ELSEWHERE, mechanism
from kvproof.spec.obligations import Obligation, obligations
from kvproof.spec.refinement import refinement

CHUNK = 24
"""Obligations per task: large enough to amortise the trip, small enough to show progress."""


@dataclass(frozen=True)
class ObligationResult:
    """The outcome of one obligation; ``model`` is a counterexample when it failed."""

    name: str
    kind: str
    action: str
    id: str
    status: str  # "proved" | "failed" | "unknown"
    seconds: float
    model: str | None


def subject(generated: bool) -> ir.Machine:
    """The machine under proof: the spec, or the text of the reference read back."""
    if not generated:
        return contract()
    from kvproof.spec.parse import reference_machine

    return reference_machine()


def on_top(generated: bool) -> ir.Machine:
    """The mechanism under proof: the spec, or its text read back."""
    if not generated:
        return mechanism()
    from kvproof.spec.parse import mechanism_machine

    return mechanism_machine()


@cache
def _all(generated: bool) -> list[Obligation | FunctionObligation]:
    text = emitted_text() if generated else spec_text()
    return [
        *obligations(contract(), subject(generated)),
        *refinement(contract(), mechanism(), ELSEWHERE, on_top(generated)),
        *function_obligations(text),
    ]


@cache
def _encoder(machine: str) -> Encoder:
    return Encoder(mechanism() if machine == "mechanism" else contract())


def prove_one(obligation: Obligation | FunctionObligation, timeout_ms: int) -> ObligationResult:
    """Ask Z3 for a counterexample to one obligation."""
    begin = time.perf_counter()
    if isinstance(obligation, FunctionObligation):
        status, model = obligation.prove(timeout_ms)
    else:
        status, model = _ask(obligation, timeout_ms)
    return ObligationResult(
        obligation.name,
        obligation.kind,
        obligation.action,
        obligation.id,
        status,
        time.perf_counter() - begin,
        model,
    )


def _ask(obligation: Obligation, timeout_ms: int) -> tuple[str, str | None]:
    encoder = _encoder(obligation.machine)
    hypotheses, goal = obligation.build(encoder)
    if follows_at_once(encoder, hypotheses, goal, timeout_ms):
        return "proved", None
    solver = _solver(encoder, timeout_ms)
    solver.add(*hypotheses)
    solver.add(z3.Not(goal))
    answer = str(solver.check())
    status = {"unsat": "proved", "sat": "failed"}.get(answer, "unknown")
    model = None
    if status == "failed":
        from kvproof.spec.counterexample import describe

        model = describe(encoder, solver.model())
    return status, model


def follows_at_once(encoder: Encoder, hypotheses: list[Any], goal: Any, timeout_ms: int) -> bool:
    """Whether a solver that knows the invariants already proves the goal.

    Most proofs start from the same invariants, and reading them takes longer than the proof does.
    A no means nothing: a fresh solver has to be asked.
    """
    known = encoder.invariants()
    if [h.get_id() for h in hypotheses[: len(known)]] != [k.get_id() for k in known]:
        return False
    solver = _standing(encoder)
    solver.set("timeout", timeout_ms)
    solver.push()
    solver.add(*hypotheses[len(known) :])
    solver.add(z3.Not(goal))
    proved = str(solver.check()) == "unsat"
    solver.pop()
    return proved


@cache
def _standing(encoder: Encoder) -> Any:
    solver = _solver(encoder, 0)
    solver.add(*encoder.invariants())
    return solver


def _solver(encoder: Encoder, timeout_ms: int) -> Any:
    solver = z3.Solver(ctx=encoder.context)
    solver.set("timeout", timeout_ms)
    solver.set("random_seed", 0)
    return solver


def _prove_chunk(generated: bool, indices: list[int], timeout_ms: int) -> list[ObligationResult]:
    every = _all(generated)
    return [prove_one(every[i], timeout_ms) for i in indices]


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def prove_all(
    generated: bool = False,
    jobs: int = 2,
    timeout_ms: int = 10_000,
    progress: Callable[[int, int], None] | None = None,
) -> list[ObligationResult]:
    """Prove everything, in the order in which ``obligations`` lists it.

    Args:
        generated: prove the text of the committed reference instead of the spec.
        jobs: processes; 1 stays in this one.
        timeout_ms: per obligation; what takes longer is "unknown".
        progress: called with (done, total).
    """
    total = len(_all(generated))
    # Striding spreads the slow ones, which sit together, over the chunks.
    count = max(1, total // CHUNK)
    chunks = [list(range(i, total, count)) for i in range(count)]
    results: dict[str, ObligationResult] = {}

    def take(batch: list[ObligationResult]) -> None:
        results.update((r.name, r) for r in batch)
        if progress:
            progress(len(results), total)

    if jobs == 1:
        for chunk in chunks:
            take(_prove_chunk(generated, chunk, timeout_ms))
    else:
        pool = ProcessPoolExecutor(jobs, initializer=_leave_interrupts_to_the_parent)
        done = False
        try:
            tasks = [pool.submit(_prove_chunk, generated, c, timeout_ms) for c in chunks]
            for task in as_completed(tasks):
                take(task.result())
            done = True
        finally:
            # After an interrupt nobody wants what is still queued, nor to wait for it.
            pool.shutdown(wait=done, cancel_futures=True)
    return [results[o.name] for o in _all(generated)]
