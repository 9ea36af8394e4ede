"""``kvproof matrix`` as a command: wrong use, exit codes, and one small run on a real release."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kvproof.conformance.matrix import process
from kvproof.conformance.matrix.document import Matrix
from kvproof.conformance.monitor.finding import Signature

from .matrix_stub import StubRunner, found

Refuses = Callable[..., str]


@pytest.fixture
def releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Installed releases 1.2.3 and 1.2.4, which nobody imports here."""
    monkeypatch.setenv("KVPROOF_CACHE", str(tmp_path / "cache"))
    for release in ("1.2.3", "1.2.4"):
        (tmp_path / "cache" / "releases" / release / "vllm").mkdir(parents=True)


@pytest.mark.usefixtures("releases")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "missing option '--releases'"),
        (["--releases", " , ", "--max-examples", "2"], "--releases names no release"),
        (["--releases", "frob", "--max-examples", "2"], "'frob' is not a release"),
        (["--releases", "../../etc", "--max-examples", "2"], "is not a release"),
        (["--releases", "1.2.3,1.2.9", "--time-per-release", "1"], "`kvproof releases add 1.2.9`"),
        (["--releases", "1.2.3"], "say when to stop: --time-per-release SECONDS"),
        (["--releases", "1.2.3", "--max-examples", "1"], "--max-examples"),
        (["--releases", "1.2.3", "--time-per-release", "-1"], "--time-per-release"),
        (["--releases", "1.2.3", "--max-examples", "2", "--jobs", "0"], "--jobs"),
        (
            ["--releases", "1.2.3", "--max-examples", "2", "--allow-dir", "none"],
            "none: there is no such folder of allow files",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_use_is_one_line(
    refuses: Refuses,
    arguments: list[str],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert told.lower() in refuses("matrix", *arguments).lower()
    assert not (tmp_path / "out").exists()


def test_it_has_help_and_json(kvproof: Any) -> None:
    ended = kvproof("matrix", "--help")
    assert ended.code == 0
    assert "--json" in ended.out


@pytest.mark.usefixtures("releases")
def test_a_broken_allow_file_is_named(refuses: Refuses, tmp_path: Path) -> None:
    (tmp_path / "1.2.4.allow").write_text("S4\n")
    arguments = ["--releases", "1.2.3,1.2.4", "--max-examples", "2", "--allow-dir", tmp_path]
    assert "1.2.4.allow:1: expected" in refuses("matrix", *arguments)


def stubbed(monkeypatch: pytest.MonkeyPatch, runner: StubRunner) -> StubRunner:
    monkeypatch.setattr(process, "run", runner)
    return runner


@pytest.mark.usefixtures("releases")
def test_a_finding_is_exit_code_1_and_the_table_is_printed_and_written(
    kvproof: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stubbed(monkeypatch, StubRunner({"1.2.4": [found("S4", "plan_load", 1.0)]}))
    asked = ["matrix", "--releases", "1.2.3, 1.2.4,1.2.3", "--max-examples", "4"]
    asked += ["--out", str(tmp_path / "out")]
    ended = kvproof(*asked)
    assert (ended.code, ended.err) == (1, "")
    assert ended.out == (tmp_path / "out" / "matrix.md").read_text()

    made = msgspec.convert(kvproof(*asked, "--json").json(), Matrix)
    assert [row.release for row in made.releases] == ["1.2.3", "1.2.4"]
    assert [list(row.cells) for row in made.releases] == [[], ["S4"]]


@pytest.mark.usefixtures("releases")
def test_fresh_runs_what_is_finished_again(
    kvproof: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = stubbed(monkeypatch, StubRunner())
    asked = ["matrix", "--releases", "1.2.3", "--max-examples", "4", "--out", str(tmp_path)]
    assert kvproof(*asked).code == kvproof(*asked).code == 0
    assert len(runner.tasks) == 2
    assert kvproof(*asked, "--fresh").code == 0
    assert len(runner.tasks) == 4


@pytest.mark.usefixtures("releases")
def test_a_second_budget_passes_over_what_the_allow_file_of_its_release_lists(
    kvproof: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = stubbed(monkeypatch, StubRunner())
    (tmp_path / "1.2.3.allow").write_text("S4 plan_load  # known\n")
    asked = ["--releases", "1.2.3,1.2.4", "--max-examples", "4", "--out", tmp_path / "out"]
    assert kvproof("matrix", *asked, "--allow-dir", tmp_path).code == 0
    assert [task.asked.allow for task in runner.tasks] == [
        [],
        [Signature("S4", "plan_load")],
        [],
        [],
    ]


@pytest.mark.usefixtures("releases")
def test_a_release_that_cannot_be_driven_is_exit_code_2_after_the_others(
    kvproof: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stubbed(monkeypatch, StubRunner(broken=("1.2.3",)))
    asked = ["--releases", "1.2.3,1.2.4", "--max-examples", "4", "--out", tmp_path]
    ended = kvproof("matrix", *asked)
    told = "not everything was carried out: vLLM 1.2.3: it does not import"
    assert (ended.code, ended.err) == (2, f"kvproof: {told}\n")
    assert "- 1.2.3: not carried out: it does not import\n- 1.2.4: 400 steps" in ended.out
    assert kvproof("matrix", *asked, "--json").json() == {"error": told}


@pytest.mark.vllm
def test_a_real_release_is_fuzzed_in_two_budgets_once(kvproof: Any, tmp_path: Path) -> None:
    asked = ["--releases", "0.32.0", "--max-examples", "6", "--seed", "1", "--out", tmp_path]
    ended = kvproof("matrix", *asked, "--json")
    assert ended.err == ""
    (row,) = msgspec.convert(ended.json(), Matrix).releases
    assert ended.code == (1 if row.findings else 0)
    assert row.examples == 6
    assert 6 <= row.steps <= row.events
    assert row.problem is None
    budgets = sorted((tmp_path / "0.32.0").glob("budget*"))
    assert [path.name for path in budgets] == ["budget1.campaign.json", "budget2.campaign.json"]
    assert kvproof("matrix", *asked, "--json").json() == ended.json()
