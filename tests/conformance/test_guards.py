"""Every guard of the reference has a test that needs it; a sample is put to that test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kvproof.conformance.mutation import guards as command
from kvproof.conformance.mutation.guards import Guarded, guards, main
from kvproof.spec import ir
from kvproof.spec.contract import contract

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def table() -> list[Guarded]:
    return guards()


def test_the_table_lists_every_guard_in_order(table: list[Guarded]) -> None:
    expected = [
        (action.name, number, guard.kind, guard.id)
        for action in contract().actions.values()
        for number, guard in enumerate(s for s in action.body if isinstance(s, ir.Guard))
    ]
    assert [(g.action, g.number, g.kind, g.id) for g in table] == expected


def test_no_guard_would_go_without_being_missed(table: list[Guarded]) -> None:
    assert [g for g in table if g.missed] == []


def test_the_test_of_a_guard_fails_without_it(table: list[Guarded]) -> None:
    """Five guards, spread over the table, each really run by pytest."""
    tested = [g for g in table if g.test]
    sample = tested[:: len(tested) // 5][:5]
    ended = subprocess.run(
        [sys.executable, "-m", "tests.conformance.without_guard"],
        input=json.dumps([(g.mutant, g.test) for g in sample]),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    passed_then_failed = [0, 1]
    assert json.loads(ended.stdout) == [passed_then_failed] * 5


def test_a_guard_without_a_test_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    missed = Guarded("evict", 0, "oblige", "S8", "x in resident", "…", "", "")
    tested = Guarded("evict", 1, "assume", "", "True", "…", "tests/a.py::b", "")
    excused = Guarded("land", 2, "conclude", "S3", "True", "…", "", "exempt: so it is")
    monkeypatch.setattr(command, "guards", lambda: [missed, tested, excused])
    assert main([]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "evict 0 oblige S8 x in resident",
        "    -> no test",
        "evict 1 assume True",
        "    -> tests/a.py::b",
        "land 2 conclude S3 True",
        "    -> exempt: so it is",
        "",
        "3 guards: 1 have a test, 1 do without, 1 would not be missed",
    ]
    assert err == "no test needs evict 0 oblige S8 x in resident\n"
    monkeypatch.setattr(command, "guards", lambda: [tested])
    assert main(["--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["missed"], document["guards"][0]["test"]) == (0, "tests/a.py::b")
