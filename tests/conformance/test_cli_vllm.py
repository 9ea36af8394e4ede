"""The commands on real vLLM releases, each in a child process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.vllm

RECORDED = "vllm:0.32.0"


def test_a_recorded_trace_is_the_same_every_time_and_can_be_judged(
    kvproof: Any, tmp_path: Path
) -> None:
    traces = [tmp_path / "first.jsonl", tmp_path / "second.jsonl"]
    for trace in traces:
        recorded = kvproof("record", "--target", RECORDED, "--out", trace, "--json")
        assert recorded.code == 0, recorded
        assert recorded.json()["events"] == sum(recorded.json()["counts"].values()) > 100
    assert traces[0].read_bytes() == traces[1].read_bytes()

    judged = kvproof("check-trace", traces[0], "--json")
    assert judged.code == {"holds": 0, "finding": 1}[judged.json()["verdict"]]
    assert judged.json()["target"] == RECORDED


def kvproof_fuzz(out: Path, *more: str) -> Any:
    """One campaign on 0.21.0; what it printed, and its exit code."""
    command = [sys.executable, "-m", "kvproof.conformance.cli", "fuzz", "--target", "vllm:0.21.0"]
    command += ["--seed", "1", "--stop-at", "1", "--out", str(out), "--json", *more]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.stderr == ""
    return {"code": ended.returncode, **json.loads(ended.stdout)}


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A campaign that finds something, and the folder of its files."""
    out = tmp_path_factory.mktemp("campaign")
    return out, kvproof_fuzz(out, "--max-examples", "400")


def test_a_campaign_repeats_with_its_seed(campaign: tuple[Path, Any], tmp_path: Path) -> None:
    out, first = campaign
    second = kvproof_fuzz(tmp_path, "--max-examples", "400")
    assert first["code"] == 1
    for run in (first, second):
        del run["seconds"]
        (found,) = run["found"]
        del found["seconds"], found["files"]
    assert first == second
    assert {path.name for path in out.iterdir()} == {path.name for path in tmp_path.iterdir()}


def test_a_finding_replays_from_its_history_and_from_its_trace(
    campaign: tuple[Path, Any], kvproof: Any
) -> None:
    out, run = campaign
    (found,) = run["found"]
    (history,) = out.glob("*.history.json")
    for file in (history, history.with_name(history.name.replace(".history.json", ".jsonl"))):
        replayed = kvproof("replay", file, "--json")
        assert replayed.code == 1, replayed
        assert replayed.json()["as_recorded"] is True
        assert replayed.json()["finding"] == found["finding"]


def test_a_finding_that_is_allowed_is_passed_over(
    campaign: tuple[Path, Any], tmp_path: Path
) -> None:
    _, run = campaign
    finding = run["found"][0]["finding"]
    where = finding["facts"].get("where") or finding["explained_by"] or ""
    allowed = tmp_path / "allowed"
    allowed.write_text(f"{finding['id']} {finding['action']} {where}\n")
    again = kvproof_fuzz(tmp_path, "--max-examples", str(run["examples"]), "--allow", str(allowed))
    assert again["code"] == 0
    assert again["found"] == []
    assert sum(again["allowed"].values()) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("--target", "vllm:0.26.0", "--device", "simulated"),
            "vllm:0.26.0 cannot be set up with tier cpu, device simulated:"
            " kvproof's own transfers cannot be loaded beside this release",
        ),
        (
            ("--target", "kvproof-on-vllm:0.32.0", "--planted", "told-early"),
            "kvproof-on-vllm:0.32.0 cannot be set up with tier cpu, planted told-early:"
            " faults are planted in kvproof's own tier and transfers",
        ),
    ],
)
def test_a_device_that_does_not_fit_is_refused_in_one_line(
    kvproof: Any, options: tuple[str, ...], said: str
) -> None:
    refused = kvproof("fuzz", *options, "--max-examples", "1")
    assert (refused.code, refused.err.strip()) == (2, f"kvproof: {said}")


def test_an_unknown_fault_is_answered_with_the_known_ones(kvproof: Any) -> None:
    refused = kvproof(
        *("fuzz", "--target", "kvproof-on-vllm:0.32.0", "--tier", "ours"),
        *("--device", "simulated", "--planted", "foo", "--max-examples", "1"),
    )
    assert refused.code == 2
    assert "no fault 'foo' can be planted; known are store-before-compute," in refused.err
