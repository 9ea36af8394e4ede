"""A matrix as Markdown: what was asked, two tables, a line a release, every distinct finding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from kvproof.conformance.matrix.budgets import Bounds
from kvproof.conformance.matrix.cases import CASES
from kvproof.conformance.matrix.document import Cell, Distinct, Matrix, Row
from kvproof.conformance.report.evidence import HISTORY
from kvproof.spec.ids import CONTRACT

NOTHING = "–"
UNASKED = "?"


def render(matrix: Matrix) -> str:
    """The whole text."""
    releases = [row.release for row in matrix.releases]
    parts = [
        f"# Releases and what they break\n\n{_asked(matrix)}\n",
        f"{_LEGEND}\n",
        _table(
            ["invariant", *releases],
            [
                [_name(id), *(_cell(row, row.cells, id) for row in matrix.releases)]
                for id in matrix.ids
            ],
        ),
        "## Known cases\n",
        _table(
            ["case", *releases],
            [
                [
                    f"{case.id} {case.title}",
                    *(_cell(row, row.cases, case.id) for row in matrix.releases),
                ]
                for case in CASES
            ],
        ),
        "## Campaigns\n",
        "\n".join(f"- {line}" for line in map(_summary, matrix.releases)) + "\n",
    ]
    found = [(row.release, one) for row in matrix.releases for one in row.findings]
    if found:
        parts.append("## Findings\n")
        parts.append(_table(_FINDING, [_finding(release, one) for release, one in found]))
    return "\n".join(parts)


_LEGEND = (
    f"A cell is the earliest finding: moves of its shrunk history · seconds until it was found. "
    "known: the second budget met what an allow file has, and did not shrink it again. "
    f"{NOTHING}: none was found, which is no proof that there is none. {UNASKED}: no guard of the "
    "invariant was asked, so none could be."
)


def _asked(matrix: Matrix) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in matrix.versions.items())
    return (
        f"```\n{matrix.command}\n```\n\n"
        f"{versions}. Seed {matrix.seed}, {_bounds(matrix.bounds)} a release, half of it for each "
        "of two budgets; shrinking comes on top."
    )


def _bounds(bounds: Bounds) -> str:
    told = []
    if bounds.seconds is not None:
        told.append(f"{bounds.seconds:g} s")
    if bounds.max_examples is not None:
        told.append(f"{bounds.max_examples} examples")
    return " or ".join(told)


def _name(id: str) -> str:
    return f"{id} {CONTRACT[id].name}" if id in CONTRACT else id


def _cell(row: Row, cells: Mapping[str, Cell], name: str) -> str:
    cell = cells.get(name)
    if cell is not None:
        return f"{'known' if cell.known else cell.moves} · {cell.seconds:.1f} s"
    return UNASKED if not row.seeds or name in row.never else NOTHING


def _summary(row: Row) -> str:
    if not row.seeds:
        return f"{row.release}: not carried out: {row.problem}"
    told = (
        f"{row.release}: {row.steps} steps, {row.examples} examples, {row.events} events in "
        f"{row.seconds:.1f} s; distinct findings: {len(row.findings)}"
    )
    if row.first is not None:
        told += f", the first after {row.first:.1f} s"
    if row.passed_over:
        told += f"; known and passed over: {sum(row.passed_over.values())} examples"
    if row.never:
        told += f"; no chance: {', '.join(row.never)}"
    if row.problem is not None:
        told += f"; the second budget was not carried out: {row.problem}"
    return told


_FINDING = (
    "release",
    "id",
    "class",
    "case",
    "action",
    "explained by",
    "kind",
    "culprit",
    "moves",
    "after",
    "times",
    "name",
)


def _finding(release: str, one: Distinct) -> list[str]:
    return [
        release,
        one.id,
        one.severity,
        " ".join(one.cases),
        one.action,
        one.explained_by or "",
        one.kind,
        one.culprit,
        "known" if one.known else str(one.moves),
        f"{one.seconds:.1f} s",
        str(one.times),
        _file_name(one),
    ]


def _file_name(one: Distinct) -> str:
    """What the finding's files begin with."""
    names = (Path(file).name for file in one.files)
    return next((name.removesuffix(HISTORY) for name in names if name.endswith(HISTORY)), "")


def _table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose columns also stand under each other as plain text."""
    rows = [head, *body]
    widths = [max(3, *(len(row[i]) for row in rows)) for i in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        return f"| {' | '.join(padded)} |\n"

    rule = f"| {' | '.join('-' * width for width in widths)} |\n"
    return line(head) + rule + "".join(line(row) for row in body)
