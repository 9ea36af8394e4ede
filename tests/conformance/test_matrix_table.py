"""The text of a matrix, to the letter."""

from __future__ import annotations

from kvproof.conformance.matrix import table
from kvproof.conformance.matrix.budgets import Bounds
from kvproof.conformance.matrix.document import Cell, Distinct, Matrix, Row

FOUND = Distinct(
    id="P11",
    action="crash",
    explained_by="M1",
    culprit="scheduler",
    signatures=["P11 crash scheduler.py:7"],
    moves=12,
    seconds=3.26,
    budget=1,
    example=40,
    times=9,
    files=["out/1.2.3/P11-0a1b2c3d.jsonl", "out/1.2.3/P11-0a1b2c3d.history.json"],
)
BROKEN = Row(
    release="1.2.3",
    seeds=[1, 99],
    steps=400,
    examples=20,
    events=6000,
    seconds=8.04,
    first=3.26,
    cells={"P11": Cell(12, 3.26)},
    findings=[FOUND],
    passed_over={"S4 plan_load": 6, "S1 plan_store": 1},
    problem=None,
)
HOLDING = Row("1.2.4", [1, 99], 380, 20, 5000, 8.0, None, {}, [], {}, None)
HALF = Row("1.2.5", [1], 190, 10, 2500, 4.0, None, {}, [], {}, "it does not import")
ABSENT = Row("1.2.6", [], 0, 0, 0, 0.0, None, {}, [], {}, "it does not import")

TEXT = """\
# Releases and what they break

Seed 1, 10 s or 25 examples a release. A cell is the earliest finding: \
moves of its shrunk history · seconds until it was found. –: none was found.

| release | S1  | P11        |
| ------- | --- | ---------- |
| 1.2.3   | –   | 12 · 3.3 s |
| 1.2.4   | –   | –          |
| 1.2.5   | –   | –          |
| 1.2.6   | –   | –          |

- 1.2.3: 400 steps, 20 examples, 6000 events in 8.0 s; distinct findings: 1, \
the first after 3.3 s; known and passed over: 7 examples
- 1.2.4: 380 steps, 20 examples, 5000 events in 8.0 s; distinct findings: 0
- 1.2.5: 190 steps, 10 examples, 2500 events in 4.0 s; distinct findings: 0; \
the second budget was not carried out: it does not import
- 1.2.6: not carried out: it does not import

| release | id  | action | explained by | culprit   | moves | after | times | name         |
| ------- | --- | ------ | ------------ | --------- | ----- | ----- | ----- | ------------ |
| 1.2.3   | P11 | crash  | M1           | scheduler | 12    | 3.3 s | 9     | P11-0a1b2c3d |
"""


def test_the_whole_text() -> None:
    rows = [BROKEN, HOLDING, HALF, ABSENT]
    assert table.render(Matrix(1, Bounds(10.0, 25), ["S1", "P11"], rows, "matrix.md")) == TEXT


def test_without_a_finding_there_is_no_table_of_findings() -> None:
    text = table.render(Matrix(1, Bounds(None, 25), ["S1"], [HOLDING], "matrix.md"))
    assert "Seed 1, 25 examples a release." in text
    assert text.endswith("5000 events in 8.0 s; distinct findings: 0\n")
