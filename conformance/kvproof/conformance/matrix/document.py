"""The outcome of a matrix as one document: a row for each release."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kvproof.conformance.fuzz.campaign import Found
from kvproof.conformance.matrix.budgets import Bounds
from kvproof.conformance.matrix.schedule import Order, Outcome
from kvproof.conformance.matrix.store import Stored
from kvproof.spec.ids import CONTRACT


class Cell(msgspec.Struct, frozen=True):
    """The earliest finding of one invariant: moves of its shrunk history, seconds until it came."""

    moves: int
    seconds: float


class Distinct(msgspec.Struct, frozen=True):
    """A finding of a release, told apart by id, action and explanation.

    ``signatures`` are those that it comes with (calls that raise differ in where they do), the
    earliest first; all but ``times`` is the earliest's. ``seconds`` counts both campaigns of the
    release; ``times`` is how many examples ended so.
    """

    id: str
    action: str
    explained_by: str | None
    culprit: str
    signatures: list[str]
    moves: int
    seconds: float
    budget: int
    example: int
    times: int
    files: list[str]


class Row(msgspec.Struct, frozen=True):
    """A release. ``first`` is the seconds until its first finding, None when there is none.

    ``cells`` are by invariant; one that is absent was not found broken. ``passed_over`` counts, by
    signature, what ended examples because it was known from elsewhere than the first campaign.
    """

    release: str
    seeds: list[int]
    steps: int
    examples: int
    events: int
    seconds: float
    first: float | None
    cells: dict[str, Cell]
    findings: list[Distinct]
    passed_over: dict[str, int]
    problem: str | None


class Matrix(msgspec.Struct, frozen=True):
    """All of it. ``ids`` are the contract's, then the broken promises of engines (``A-...``)."""

    seed: int
    bounds: Bounds
    ids: list[str]
    releases: list[Row]
    file: str


def assemble(order: Order, outcomes: Sequence[Outcome], file: Path) -> Matrix:
    """The document of what was carried out; ``file`` is where its table goes."""
    rows = [_row(outcome) for outcome in outcomes]
    broken = {id for row in rows for id in row.cells}
    ids = [*CONTRACT, *sorted(broken - CONTRACT.keys())]
    return Matrix(order.seed, order.bounds, ids, rows, str(file))


def _row(outcome: Outcome) -> Row:
    results = outcome.finished
    findings = _distinct(results)
    cells: dict[str, Cell] = {}
    for one in findings:
        cells.setdefault(one.id, Cell(one.moves, one.seconds))
    found = {_signature(one) for result in results for one in result.found}
    return Row(
        release=outcome.release,
        seeds=[result.seed for result in results],
        steps=sum(result.steps for result in results),
        examples=sum(result.examples for result in results),
        events=sum(result.events for result in results),
        seconds=round(sum(result.seconds for result in results), 3),
        first=findings[0].seconds if findings else None,
        cells=cells,
        findings=findings,
        passed_over={
            signature: count
            for result in results
            for signature, count in result.allowed.items()
            if signature not in found
        },
        problem=outcome.problem,
    )


def _distinct(results: Sequence[Stored]) -> list[Distinct]:
    """The release's findings, the earliest first."""
    times: dict[str, int] = {}
    for result in results:
        for signature, count in [*result.again.items(), *result.allowed.items()]:
            times[signature] = times.get(signature, 0) + count
    merged: dict[tuple[str, str, str | None], Distinct] = {}
    for budget, seconds, found in _by_signature(results):
        finding, signature = found.finding, _signature(found)
        key = (finding.id, finding.action, finding.explained_by)
        ended = 1 + times.get(signature, 0)
        known = merged.get(key)
        if known is not None:
            merged[key] = msgspec.structs.replace(
                known, signatures=[*known.signatures, signature], times=known.times + ended
            )
            continue
        merged[key] = Distinct(
            id=finding.id,
            action=finding.action,
            explained_by=finding.explained_by,
            culprit=finding.culprit,
            signatures=[signature],
            moves=len(found.history.moves),
            seconds=seconds,
            budget=budget,
            example=found.example,
            times=ended,
            files=found.files,
        )
    return list(merged.values())


def _by_signature(results: Sequence[Stored]) -> Iterator[tuple[int, float, Found]]:
    """The earliest finding of each signature: its campaign, the seconds until then, itself."""
    seen: set[str] = set()
    before = 0.0
    for budget, result in enumerate(results, start=1):
        for found in result.found:
            if _signature(found) not in seen:
                seen.add(_signature(found))
                yield budget, round(before + found.seconds, 3), found
        before += result.seconds


def _signature(found: Found) -> str:
    """As campaigns write it in their counts."""
    return str(found.finding.signature())
