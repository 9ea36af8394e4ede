"""Wrong use ends in exit code 2 and one line that says what to do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kvproof.conformance.cli import outcome
from kvproof.conformance.errors import UsageError
from kvproof.conformance.fuzz.allowed import read_allowed
from kvproof.conformance.monitor.finding import Signature

COMMANDS = ["prove", "generate", "record", "fuzz", "replay", "check-trace", "matrix", "report"]
Refuses = Callable[..., str]


@pytest.fixture(autouse=True)
def no_releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVPROOF_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "name a command"),
        (["frob"], "no such command 'frob'"),
        (["--frob"], "no such option"),
        (["prove", "--frob"], "no such option: --frob"),
        (["prove", "--jobs", "0"], "--jobs"),
        (["prove", "--jobs", "many"], "--jobs"),
        (["prove", "surplus"], "surplus"),
        (["check-trace"], "missing argument 'FILE'"),
        (["record", "--out", "t.jsonl"], "missing option '--target'"),
        (["record", "--target", "vllm:0.0.1"], "missing option '--out'"),
        (["report"], "missing option '--out'"),
        (["releases"], "kvproof releases add RELEASE"),
        (["releases", "add"], "missing argument 'RELEASE...'"),
        (["releases", "add", "../../etc"], "not a release"),
        (["releases", "add", "0.32.0 --index-url=x"], "not a release"),
        (["record", "--target", "frob", "--out", "t"], "unknown target 'frob'"),
        (["record", "--target", "vllm:", "--out", "t"], "not a release"),
        (["record", "--target", "vllm:0.0.1", "--out", "t"], "`kvproof releases add 0.0.1`"),
        (["fuzz", "--target", "vllm:0.0.1", "--time", "1"], "`kvproof releases add 0.0.1`"),
        (["fuzz", "--target", "vllm:0.0.1"], "say when to stop"),
        (
            ["fuzz", "--target", "vllm:0.0.1", "--time", "1", "--allow", "none"],
            "none: cannot be read",
        ),
        (["replay", "none.history.json"], "none.history.json: there is no such history"),
        (["replay", "none.jsonl"], "none.history.json: there is no such history"),
    ],
    ids=" ".join,
)
def test_wrong_use_is_one_line(refuses: Refuses, arguments: list[str], told: str) -> None:
    assert told.lower() in refuses(*arguments).lower()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_json(kvproof: Any, command: str) -> None:
    ended = kvproof(command, "--help")
    assert ended.code == 0
    assert "--json" in ended.out


def test_with_json_the_error_is_json_too(kvproof: Any) -> None:
    ended = kvproof("check-trace", "none.jsonl", "--json")
    assert ended.code == 2
    assert ended.json() == {"error": ended.err.removeprefix("kvproof: ").rstrip()}


def test_the_version_is_the_distribution_s(kvproof: Any) -> None:
    assert kvproof("--version").out == "kvproof 0.1.0\n"


def test_help_imports_neither_solver_nor_engine() -> None:
    script = (
        "import sys; from kvproof.conformance.cli import main; main(['--help']);"
        "print([m for m in ('z3', 'torch', 'hypothesis', 'vllm', 'numpy') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("blocked", "arguments", "extra"),
    [("typer", ["--help"], "check"), ("rich", ["check-trace", "x"], "check")],
)
def test_a_bare_installation_names_the_extra(
    blocked: str, arguments: list[str], extra: str
) -> None:
    script = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.partition('.')[0] == {blocked!r}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "from kvproof.conformance.cli import main\n"
        f"sys.exit(main({arguments!r}))\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (2, "")
    told = f"kvproof: {blocked} is not installed: run `pip install 'kvproof[{extra}]'`\n"
    assert ran.stderr == told


def test_a_reader_that_goes_away_is_no_finding() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ran = subprocess.run(
        [sys.executable, "-m", "kvproof.conformance.cli", "--help"],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writing)
    assert ran.returncode == 2
    assert ran.stderr == "kvproof: the reader of the output went away\n"


def test_a_fault_of_kvproof_is_one_line_that_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_arguments: list[str]) -> int:
        raise ValueError("two\nlines")

    monkeypatch.setattr("kvproof.conformance.cli.app.run", broken)
    assert outcome.guarded(["prove", "--json"]) == 2
    out, err = capsys.readouterr()
    assert err.count("\n") == 1
    assert "internal error: ValueError: two lines" in err
    assert "internal error" in json.loads(out)["error"]


def test_an_interrupt_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_arguments: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("kvproof.conformance.cli.app.run", interrupted)
    handler = signal.getsignal(signal.SIGINT)
    try:
        assert outcome.guarded(["prove"]) == 2
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, handler)
    assert capsys.readouterr() == ("", "kvproof: interrupted\n")


def test_a_history_that_is_none_is_refused(refuses: Refuses, tmp_path: Path) -> None:
    path = tmp_path / "x.history.json"
    path.write_text('{"target": "vllm:0.32.0"}')
    assert f"{path}: not a history" in refuses("replay", path)
    assert f"{path}: not a history" in refuses("replay", tmp_path / "x.jsonl")


def test_an_allow_file_lists_signatures(tmp_path: Path) -> None:
    path = tmp_path / "known"
    path.write_text(
        "# known\nS3 forward\n\nP11 raised scheduler.py:12 in x  # upstream issue\n"
        "S1 plan_store P13 (window, slid)\n"
    )
    assert read_allowed(path) == {
        Signature("S3", "forward"),
        Signature("P11", "raised", "scheduler.py:12 in x"),
        Signature("S1", "plan_store", "P13", "window, slid"),
    }


def test_a_broken_line_of_an_allow_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "known"
    for broken in ("S4", "S4 plan_load (window"):
        path.write_text(f"S3 forward\n{broken}\n")
        with pytest.raises(UsageError, match=r"known:2: expected `ID ACTION \[WHERE\] \[\(KIND"):
            read_allowed(path)
