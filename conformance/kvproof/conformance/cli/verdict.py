"""How a finding is shown: on a terminal as a short table, in JSON as it is."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kvproof.conformance.monitor.finding import Finding


def show_all(console: Console, findings: Sequence[Finding]) -> None:
    """Print findings one after another, with an empty line between them."""
    for number, finding in enumerate(findings):
        if number:
            console.print()
        show(console, finding)


def show(console: Console, finding: Finding) -> None:
    """Print the broken obligation, who broke it, where, and the facts that differ."""
    console.print(Text(finding.id, style="bold red"), finding.sentence)
    console.print(
        f"broken by the {finding.culprit} ({finding.severity}), at event {finding.index} "
        f"({finding.event}) of step {finding.step}, taken as {finding.action}"
    )
    if finding.explained_by:
        console.print(f"in a state that breaks {finding.explained_by}")
    if finding.kind:
        console.print(f"kind: {finding.kind}")
    if finding.facts:
        table = Table("fact", "value", box=None, pad_edge=False)
        for fact, value in finding.facts.items():
            table.add_row(fact, value)
        console.print(table)
