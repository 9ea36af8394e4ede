"""How long the proofs take: on the spec, and on the text of the generated reference, in turns."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import msgspec

from kvproof.conformance.report import proofs
from kvproof.conformance.report.evidence import Proofs


class Proving(msgspec.Struct, frozen=True):
    """One side. ``median`` and ``fastest`` are seconds for all of its obligations."""

    side: str
    runs: int
    proved: int
    total: int
    median: float
    fastest: float
    slowest_obligation: str
    worst_seconds: float


def prove(runs: int, report: Callable[[str, int, int], None]) -> list[Proving]:
    """Prove both sides so many times.

    Raises:
        UsageError: the reference cannot be read back.
    """
    sides = {"the spec": False, "the generated text": True}
    made: dict[str, list[Proofs]] = {side: [] for side in sides}
    for number in range(runs):
        for side, generated in sides.items():
            report(side, number, runs)
            made[side].append(proofs.run(generated))
    return [_summary(side, results) for side, results in made.items()]


def _summary(side: str, results: list[Proofs]) -> Proving:
    seconds = [result.seconds for result in results]
    worst = max((result.overall for result in results), key=lambda one: one.worst_seconds)
    return Proving(
        side=side,
        runs=len(results),
        proved=min(result.overall.proved for result in results),
        total=results[0].overall.total,
        median=round(statistics.median(seconds), 2),
        fastest=round(min(seconds), 2),
        slowest_obligation=worst.slowest,
        worst_seconds=worst.worst_seconds,
    )
