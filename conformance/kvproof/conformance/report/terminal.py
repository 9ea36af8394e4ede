"""The ledger on a terminal: one line for each invariant."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from kvproof.conformance.report.evidence import Count, Proofs
from kvproof.conformance.report.ledger import Asked, Ledger, Row

ABSENT = "–"


def show(console: Console, ledger: Ledger) -> None:
    """Print the table, then what is absent."""
    table = Table(
        "id",
        "invariant",
        Column("proved", justify="right"),
        Column("as text", justify="right"),
        Column("fuzzed", justify="right"),
        Column("traces", justify="right"),
        "broken by",
        box=None,
        pad_edge=False,
    )
    for row in ledger.rows:
        table.add_row(
            Text(row.id, style="bold red" if row.broken else "bold"),
            row.name,
            _count(row.proved),
            _count(row.generated),
            _asked(row, row.fuzzed),
            _asked(row, row.replayed),
            _broken(row),
        )
    console.print(table)
    console.print()
    for proofs, name in ((ledger.spec, "the spec"), (ledger.text, "the generated text")):
        if proofs:
            _proofs(console, proofs, name)
    runs = sum(c.examples for c in ledger.campaigns)
    moves = sum(c.steps for c in ledger.campaigns)
    if ledger.campaigns:
        console.print(f"fuzzed: {moves} moves in {runs} runs of {len(ledger.campaigns)} campaigns")
    if ledger.traces:
        events = sum(t.events for t in ledger.traces)
        console.print(f"judged anew: {events} events of {len(ledger.traces)} traces")
    for note in ledger.notes:
        console.print(note)


def _proofs(console: Console, proofs: Proofs, name: str) -> None:
    overall = proofs.overall
    console.print(
        f"{name}: {overall.proved} of {overall.total} obligations proved in {proofs.seconds:.1f} s,"
        f" the slowest in {overall.worst_seconds:.2f} s"
    )
    for obligation, status in proofs.unproved:
        console.print(f"{status}: {obligation}", style="bold red")


def _count(count: Count | None) -> Text:
    if count is None:
        return Text(ABSENT, style="dim")
    style = "" if count.proved == count.total else "bold red"
    return Text(f"{count.proved}/{count.total}", style=style)


def _asked(row: Row, asked: Sequence[Asked]) -> Text:
    if not asked or not row.guarded:
        return Text(ABSENT, style="dim")
    total = sum(a.asked for a in asked)
    if row.forbidden:
        return Text(f"{total} in {sum(a.length for a in asked)}")
    return Text(f"{total}×", style="" if total else "yellow")


def _broken(row: Row) -> Text:
    told = (f"{b.target} ({b.length} {b.unit})" for b in row.broken)
    return Text(", ".join(told), style="red")
