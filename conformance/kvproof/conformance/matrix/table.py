"""A matrix as Markdown: the table, a line a release, and every distinct finding."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kvproof.conformance.matrix.budgets import Bounds
from kvproof.conformance.matrix.document import Cell, Distinct, Matrix, Row
from kvproof.conformance.report.evidence import HISTORY

NOTHING = "–"


def render(matrix: Matrix) -> str:
    """The whole text."""
    head = ["release", *matrix.ids]
    body = [
        [row.release, *(_cell(row.cells.get(id)) for id in matrix.ids)] for row in matrix.releases
    ]
    parts = [
        f"# Releases and what they break\n\n{_asked(matrix)}\n",
        _table(head, body),
        "\n".join(f"- {_summary(row)}" for row in matrix.releases) + "\n",
    ]
    found = [(row.release, one) for row in matrix.releases for one in row.findings]
    if found:
        parts.append(_table(_FINDING, [_finding(release, one) for release, one in found]))
    return "\n".join(parts)


def _asked(matrix: Matrix) -> str:
    return (
        f"Seed {matrix.seed}, {_bounds(matrix.bounds)} a release. A cell is the earliest finding: "
        f"moves of its shrunk history · seconds until it was found. {NOTHING}: none was found."
    )


def _bounds(bounds: Bounds) -> str:
    told = []
    if bounds.seconds is not None:
        told.append(f"{bounds.seconds:g} s")
    if bounds.max_examples is not None:
        told.append(f"{bounds.max_examples} examples")
    return " or ".join(told)


def _cell(cell: Cell | None) -> str:
    return NOTHING if cell is None else f"{cell.moves} · {cell.seconds:.1f} s"


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
    if row.problem is not None:
        told += f"; the second budget was not carried out: {row.problem}"
    return told


_FINDING = ("release", "id", "action", "explained by", "culprit", "moves", "after", "times", "name")


def _finding(release: str, one: Distinct) -> list[str]:
    return [
        release,
        one.id,
        one.action,
        one.explained_by or "",
        one.culprit,
        str(one.moves),
        f"{one.seconds:.1f} s",
        str(one.times),
        _name(one),
    ]


def _name(one: Distinct) -> str:
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
