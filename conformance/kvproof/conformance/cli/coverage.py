"""A campaign's coverage as a table: what was played, and how often each promise was asked."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    from kvproof.conformance.fuzz.campaign import Coverage

_GUARD = "guard "


def table(coverage: Coverage) -> Table:
    """Moves, the reference's actions, and the contract's ids, each with how often."""
    shown = Table(box=None, pad_edge=False)
    for heading in ("move", "action", "action", "action", "id", "id"):
        shown.add_column(heading)
        shown.add_column("times", justify="right")
    reference = coverage.reference
    guards = {n.removeprefix(_GUARD): c for n, c in reference.items() if n.startswith(_GUARD)}
    actions = {n: c for n, c in reference.items() if not n.startswith(_GUARD)}
    columns = [_cells(coverage.rules), *_parts(actions, 3), *_parts(guards, 2)]
    for row in zip_longest(*columns, fillvalue=("", "")):
        shown.add_row(*(cell for pair in row for cell in pair))
    return shown


def _cells(counts: Mapping[str, int]) -> list[tuple[str, str]]:
    return [(name, f"{count:,}" if count else "never") for name, count in sorted(counts.items())]


def _parts(counts: Mapping[str, int], parts: int) -> list[list[tuple[str, str]]]:
    cells = _cells(counts)
    length = -(-len(cells) // parts)
    return [cells[i * length : (i + 1) * length] for i in range(parts)]
