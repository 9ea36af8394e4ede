"""Demands: which ids and moves must have had a chance, and who is excused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kvproof.conformance.cli import fuzz as command
from kvproof.conformance.errors import UsageError
from kvproof.conformance.fuzz.campaign import RULES, Coverage
from kvproof.conformance.fuzz.demand import askable_ids, idle_excuses, never, read_demand, unmet
from kvproof.spec.ids import CONTRACT

from .fuzz_toy import ToyTarget

DEMANDS = sorted((Path(__file__).parents[2] / "conformance" / "allow").glob("*.demand"))


def coverage(asked: tuple[str, ...] = (), rules: dict[str, int] | None = None) -> Coverage:
    return Coverage(rules or {}, {}, {f"guard {id}": 3 for id in asked} | {"guard S7": 0}, [])


def test_what_can_only_be_asked_by_breaking_it_is_not_demanded() -> None:
    assert "P11" not in askable_ids()
    assert {"S1", "S10", "S14", "P4", "P12", "E1"} <= askable_ids() <= CONTRACT.keys()


def test_ids_come_in_the_contract_s_order_and_rules_after_them() -> None:
    rest = tuple(askable_ids() - {"S7", "S2", "P4"})
    counted = coverage(rest, {"add": 0, "step": 5, "abort": 0})
    assert never(counted) == ["S2", "S7", "P4", "add", "abort"]
    assert unmet(counted, {"S2": "reason", "abort": "reason"}) == ["S7", "P4", "add"]
    assert idle_excuses(counted, {"S2": "reason", "S1": "reason", "step": "reason"}) == [
        "S1",
        "step",
    ]


def test_all_excuses_nothing_and_a_file_what_it_lists(tmp_path: Path) -> None:
    file = tmp_path / "demand"
    file.write_text("# remark\n\nS9  # no recurrent groups here\nreset_twice  # cannot\n")
    assert read_demand("all") == {}
    assert read_demand(str(file)) == {"S9": "no recurrent groups here", "reset_twice": "cannot"}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("S99  # because", "'S99' is neither an id with a guard nor a rule"),
        ("P11  # because", "'P11' is neither an id with a guard nor a rule"),
        ("S9", "S9 has no reason"),
    ],
)
def test_an_excuse_is_a_known_name_with_a_reason(tmp_path: Path, line: str, told: str) -> None:
    file = tmp_path / "demand"
    file.write_text(f"abort  # none\n{line}\n")
    with pytest.raises(UsageError, match=f"demand:2: .*{told}"):
        read_demand(str(file))


@pytest.mark.parametrize("file", DEMANDS, ids=lambda file: file.stem)
def test_the_files_that_are_kept_are_such_files(file: Path) -> None:
    assert set(read_demand(str(file))) <= askable_ids() | set(RULES)


def test_a_missing_file_is_one_line(refuses: Callable[..., str]) -> None:
    asked = ("--target", "vllm:0.32.0", "--max-examples", "1", "--demand", "none.demand")
    assert "none.demand: cannot be read" in refuses("fuzz", *asked)


def test_what_had_no_chance_is_told_and_is_exit_code_3(
    kvproof: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "open_target", lambda *_: ToyTarget())
    known = tmp_path / "known"
    known.write_text("P11 crash toy.py:1\nA-arrive arrive\n")
    asked = ["fuzz", "--target", "toy", "--max-examples", "30", "--out", tmp_path / "out"]
    asked += ["--allow", known, "--severity", "unsafe"]
    assert kvproof(*asked).code == 0
    ended = kvproof(*asked, "--demand", "all")
    assert ended.code == 3
    assert "demanded, but had no chance: S1, S2, S3, " in ended.out
    excused = tmp_path / "demand"
    names = kvproof(*asked, "--demand", "all", "--json").json()["unmet"]
    excused.write_text("".join(f"{name}  # a toy\n" for name in [*names, "add"]))
    ended = kvproof(*asked, "--demand", excused)
    assert ended.code == 0
    assert "excused, but it had a chance: add\n" in ended.out
