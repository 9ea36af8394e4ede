"""A campaign's coverage as the table that ``kvproof fuzz`` prints."""

from __future__ import annotations

from rich.console import Console

from kvproof.conformance.cli.coverage import table
from kvproof.conformance.fuzz.campaign import Coverage


def test_moves_actions_and_ids_each_have_their_columns() -> None:
    coverage = Coverage(
        rules={"step": 1200, "abort": 0},
        events={"Ask": 3},
        reference={"ask": 3, "answer": 3, "lease": 12, "pin": 0, "guard S1": 7, "guard E1": 0},
        never=["abort", "pin", "guard E1"],
    )
    shown = Console(width=120)
    with shown.capture() as told:
        shown.print(table(coverage))
    assert [" ".join(line.split()) for line in told.get().splitlines()] == [
        "move times action times action times action times id times id times",
        "abort never answer 3 lease 12 E1 never S1 7",
        "step 1,200 ask 3 pin never",
    ]
