"""The text of a matrix, to the letter."""

from __future__ import annotations

from kvproof.conformance.matrix import table
from kvproof.conformance.matrix.budgets import Bounds
from kvproof.conformance.matrix.cases import CASES
from kvproof.conformance.matrix.document import Cell, Distinct, Matrix, Row

FOUND = Distinct(
    id="P11",
    action="crash",
    explained_by="M1",
    kind="",
    severity="unsafe",
    cases=["K2"],
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
    cases={"K2": Cell(12, 3.26)},
    findings=[FOUND],
    passed_over={"S4 plan_load": 6, "S1 plan_store": 1},
    never=["S1", "abort"],
    problem=None,
)
HOLDING = Row("1.2.4", [1, 99], 380, 20, 5000, 8.0, None, {}, {}, [], {}, [], None)
PROBLEM = "it does not import"
HALF = Row("1.2.5", [1], 190, 10, 2500, 4.0, None, {}, {}, [], {}, [], PROBLEM)
ABSENT = Row("1.2.6", [], 0, 0, 0, 0.0, None, {}, {}, [], {}, [], PROBLEM)

COMMAND = "kvproof matrix --releases 1.2.3,1.2.4"
VERSIONS = {"kvproof": "0.1.0", "Python": "3.11.2"}


def matrix(bounds: Bounds, *rows: Row) -> Matrix:
    return Matrix(COMMAND, VERSIONS, 1, bounds, ["S1", "P11"], list(rows), "matrix.md")


HEAD = """\
# Releases and what they break

```
kvproof matrix --releases 1.2.3,1.2.4
```

kvproof 0.1.0, Python 3.11.2. Seed 1, 10 s or 25 examples a release, half of it for each of two \
budgets; shrinking comes on top.

A cell is the earliest finding: moves of its shrunk history · seconds until it was found. \
known: the second budget met what an allow file has, and did not shrink it again. \
–: none was found, which is no proof that there is none. \
?: no guard of the invariant was asked, so none could be.

| invariant              | 1.2.3      | 1.2.4 | 1.2.5 | 1.2.6 |
| ---------------------- | ---------- | ----- | ----- | ----- |
| S1 reads-its-own-lease | ?          | –     | –     | ?     |
| P11 nothing-raises     | 12 · 3.3 s | –     | –     | ?     |
"""

TAIL = """\
## Campaigns

- 1.2.3: 400 steps, 20 examples, 6000 events in 8.0 s; distinct findings: 1, \
the first after 3.3 s; known and passed over: 7 examples; no chance: S1, abort
- 1.2.4: 380 steps, 20 examples, 5000 events in 8.0 s; distinct findings: 0
- 1.2.5: 190 steps, 10 examples, 2500 events in 4.0 s; distinct findings: 0; \
the second budget was not carried out: it does not import
- 1.2.6: not carried out: it does not import

## Findings

| release | id  | class  | case | action | explained by | kind | culprit   | moves | after | times | name         |
| ------- | --- | ------ | ---- | ------ | ------------ | ---- | --------- | ----- | ----- | ----- | ------------ |
| 1.2.3   | P11 | unsafe | K2   | crash  | M1           |      | scheduler | 12    | 3.3 s | 9     | P11-0a1b2c3d |
"""  # noqa: E501


def test_the_whole_text_but_for_the_cases() -> None:
    text = table.render(matrix(Bounds(10.0, 25), BROKEN, HOLDING, HALF, ABSENT))
    head, _, rest = text.partition("\n## Known cases\n\n")
    cases, _, tail = rest.partition("\n## Campaigns\n")
    assert head == HEAD
    assert f"## Campaigns\n{tail}" == TAIL
    assert len(cases.splitlines()) == 2 + len(CASES)


def test_a_case_has_a_row_with_its_earliest_finding() -> None:
    text = table.render(matrix(Bounds(10.0, 25), BROKEN, HOLDING, ABSENT))
    (row,) = [line for line in text.splitlines() if line.startswith("| K2 ")]
    assert [cell.strip() for cell in row.split("|")[2:-1]] == ["12 · 3.3 s", "–", "?"]


def test_without_a_finding_there_is_no_table_of_findings() -> None:
    text = table.render(matrix(Bounds(None, 25), HOLDING))
    assert "Seed 1, 25 examples a release" in text
    assert text.endswith("5000 events in 8.0 s; distinct findings: 0\n")
