"""The outcome of a matrix as one document: a row for each release."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

import msgspec

from kvproof.conformance.fuzz.campaign import Found
from kvproof.conformance.fuzz.demand import never
from kvproof.conformance.matrix.budgets import Bounds
from kvproof.conformance.matrix.cases import recognised
from kvproof.conformance.matrix.schedule import Order, Outcome
from kvproof.conformance.matrix.store import Stored
from kvproof.spec.ids import CONTRACT


class Cell(msgspec.Struct, frozen=True):
    """The earliest finding of one invariant: moves of its history, seconds until it came.

    ``known``: it was passed over, since an allow file has it; then the history was not shrunk.
    """

    moves: int
    seconds: float
    known: bool = False


class Distinct(msgspec.Struct, frozen=True):
    """A finding of a release, told apart by id, action, explanation and kind.

    ``signatures`` are those that it comes with (calls that raise differ in where they do), the
    earliest first; all but ``times`` is the earliest's. ``seconds`` counts both campaigns of the
    release; ``times`` is how many examples ended so, or had it; ``cases`` are the known ones that
    it is one of. ``known``: see ``Cell``; it has no files.
    """

    id: str
    action: str
    explained_by: str | None
    kind: str
    severity: str
    cases: list[str]
    culprit: str
    signatures: list[str]
    moves: int
    seconds: float
    budget: int
    example: int
    times: int
    files: list[str]
    known: bool = False


class Row(msgspec.Struct, frozen=True):
    """A release. ``first`` is the seconds until its first finding, None when there is none.

    ``cells`` are by invariant, ``cases`` by known case; one that is absent was not found.
    ``passed_over`` counts, by signature, what ended examples because it was known from elsewhere
    than the first campaign. ``never`` are the ids and moves that had no chance in any campaign.
    """

    release: str
    seeds: list[int]
    steps: int
    examples: int
    events: int
    seconds: float
    first: float | None
    cells: dict[str, Cell]
    cases: dict[str, Cell]
    findings: list[Distinct]
    passed_over: dict[str, int]
    never: list[str]
    problem: str | None


class Matrix(msgspec.Struct, frozen=True):
    """All of it. ``ids`` are the contract's, then the broken promises of engines (``A-...``).

    ``command`` made it, with ``versions`` of what matters.
    """

    command: str
    versions: dict[str, str]
    seed: int
    bounds: Bounds
    ids: list[str]
    releases: list[Row]
    file: str


def assemble(order: Order, outcomes: Sequence[Outcome], file: Path, command: str) -> Matrix:
    """The document of what was carried out by ``command``; ``file`` is where its table goes."""
    rows = [_row(outcome) for outcome in outcomes]
    broken = {id for row in rows for id in row.cells}
    ids = [*CONTRACT, *sorted(broken - CONTRACT.keys())]
    versions = {"kvproof": metadata.version("kvproof"), "Python": platform.python_version()}
    return Matrix(command, versions, order.seed, order.bounds, ids, rows, str(file))


def _row(outcome: Outcome) -> Row:
    results = outcome.finished
    findings = _distinct(results)
    cells: dict[str, Cell] = {}
    cases: dict[str, Cell] = {}
    for one in findings:
        cell = Cell(one.moves, one.seconds, one.known)
        cells.setdefault(one.id, cell)
        for case in one.cases:
            cases.setdefault(case, cell)
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
        cases=cases,
        findings=findings,
        passed_over={
            signature: count
            for result in results
            for signature, count in result.allowed.items()
            if signature not in found
        },
        never=_never(results),
        problem=outcome.problem,
    )


def _never(results: Sequence[Stored]) -> list[str]:
    """What had no chance in any campaign."""
    missing = [never(result.coverage) for result in results]
    return [name for name in missing[0] if all(name in one for one in missing)] if missing else []


def _distinct(results: Sequence[Stored]) -> list[Distinct]:
    """The release's findings, the earliest first."""
    times: dict[str, int] = {}
    for result in results:
        for signature, count in [*result.again.items(), *result.allowed.items()]:
            times[signature] = times.get(signature, 0) + count
    merged: dict[tuple[str, str, str | None, str], Distinct] = {}
    for budget, seconds, found, passed in _by_signature(results):
        finding, signature = found.finding, _signature(found)
        key = (finding.id, finding.action, finding.explained_by, finding.kind)
        # What was passed over is counted from its first time on, what was found is not.
        ended = times.get(signature, 0) + (not passed)
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
            kind=finding.kind,
            severity=finding.severity,
            cases=recognised(finding, found.history),
            culprit=finding.culprit,
            signatures=[signature],
            moves=len(found.history.moves),
            seconds=seconds,
            budget=budget,
            example=found.example,
            times=ended,
            files=found.files,
            known=passed,
        )
    return list(merged.values())


def _by_signature(results: Sequence[Stored]) -> Iterator[tuple[int, float, Found, bool]]:
    """The earliest finding of each signature: its campaign, the seconds until then, itself.

    And whether it was passed over.
    """
    seen: set[str] = set()
    before = 0.0
    for budget, result in enumerate(results, start=1):
        both = [(found, False) for found in result.found]
        both += [(found, True) for found in result.passed]
        for found, passed in sorted(both, key=lambda one: one[0].seconds):
            if _signature(found) not in seen:
                seen.add(_signature(found))
                yield budget, round(before + found.seconds, 3), found, passed
        before += result.seconds


def _signature(found: Found) -> str:
    """As campaigns write it in their counts."""
    return str(found.finding.signature())
