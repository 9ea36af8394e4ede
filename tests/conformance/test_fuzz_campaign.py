"""Campaigns on the toy engine: repeatable, bounded, and with their files written."""

from __future__ import annotations

import ast
from pathlib import Path

import msgspec
import pytest

from kvproof.conformance.engines.base import Emit, Setup, Target
from kvproof.conformance.errors import UsageError
from kvproof.conformance.fuzz import campaign, replay
from kvproof.conformance.fuzz.session import MakeJudge
from kvproof.conformance.monitor.finding import Finding, Signature
from kvproof.conformance.trace import codec
from kvproof.conformance.trace.events import AnyEvent, Raised

from .fuzz_toy import RaisedIsWrong, ToyEngine, ToyTarget

PLANTED = Signature("P11", "crash", "toy.py:1")


def run(
    out: Path,
    seed: int = 1,
    max_examples: int | None = 400,
    seconds: float | None = None,
    allow: frozenset[Signature] = frozenset(),
    stop_at: int | None = None,
    plain: Target | None = None,
    make_judge: MakeJudge = RaisedIsWrong,
) -> campaign.CampaignResult:
    return campaign.run(
        ToyTarget(),
        seed=seed,
        seconds=seconds,
        max_examples=max_examples,
        out=out,
        allow=allow,
        make_judge=make_judge,
        stop_at=stop_at,
        plain=plain,
    )


def without_clock(result: campaign.CampaignResult) -> object:
    found = [
        msgspec.structs.replace(f, seconds=0.0, files=[Path(file).name for file in f.files])
        for f in result.found
    ]
    return msgspec.structs.replace(result, seconds=0.0, found=found)


def the_one(result: campaign.CampaignResult) -> campaign.Found:
    (found,) = result.found
    return found


def test_the_planted_fault_is_found_and_shrunk(tmp_path: Path) -> None:
    result = run(tmp_path)
    found = the_one(result)
    assert found.finding.signature() == PLANTED
    assert len(found.history.moves) == 4
    assert 1 <= found.example < 400


def test_a_finding_ends_its_example_and_not_the_campaign(tmp_path: Path) -> None:
    result = run(tmp_path)
    assert result.examples == 400
    assert result.again[str(PLANTED)] > 0


def test_a_campaign_can_stop_at_its_first_finding(tmp_path: Path) -> None:
    result = run(tmp_path, stop_at=1)
    assert result.examples == the_one(result).example
    assert result.again == {}


def test_the_same_seed_gives_the_same_result_and_another_seed_other_examples(
    tmp_path: Path,
) -> None:
    first = run(tmp_path / "a")
    assert without_clock(first) == without_clock(run(tmp_path / "b"))
    assert run(tmp_path / "c", seed=2).events != first.events


def test_an_allowed_finding_ends_its_example_and_is_counted(tmp_path: Path) -> None:
    result = run(tmp_path, allow=frozenset({PLANTED}))
    assert result.found == []
    assert result.examples == 400
    assert result.allowed.keys() == {str(PLANTED)}
    (first,) = result.passed
    found = the_one(run(tmp_path / "found"))
    assert (first.finding.signature(), first.example) == (PLANTED, found.example)
    assert (first.files, first.replays) == ([], 0)
    assert len(first.history.moves) >= len(found.history.moves)
    assert [path.name for path in tmp_path.iterdir()] == ["found"]


class EngineIsWrong(RaisedIsWrong):
    """The same judge; it takes the engine for the culprit."""

    def feed(self, event: AnyEvent) -> Finding | None:
        found = super().feed(event)
        return found and msgspec.structs.replace(found, culprit="engine")


class Sound(ToyTarget):
    """A toy without the planted fault."""

    def start(self, setup: Setup, emit: Emit) -> ToyEngine:
        return ToyEngine(setup, lambda event: None if isinstance(event, Raised) else emit(event))


def test_what_the_engine_does_wrong_around_its_own_scheduler_too_is_no_finding(
    tmp_path: Path,
) -> None:
    result = run(tmp_path, plain=ToyTarget(), make_judge=EngineIsWrong)
    assert result.found == []
    assert result.engine == {str(PLANTED): result.engine[str(PLANTED)]}
    assert result.engine[str(PLANTED)] > 1
    (first,) = result.passed
    assert first.finding.signature() == PLANTED
    assert list(tmp_path.iterdir()) == []


def test_what_it_does_wrong_around_this_scheduler_alone_is_one(tmp_path: Path) -> None:
    result = run(tmp_path, plain=Sound(), make_judge=EngineIsWrong)
    assert the_one(result).finding.signature() == PLANTED
    assert result.engine == {}


def test_the_scheduler_s_own_faults_count_whatever_the_release_does(tmp_path: Path) -> None:
    result = run(tmp_path, plain=ToyTarget())
    assert the_one(result).finding.signature() == PLANTED
    assert result.engine == {}


def test_time_cuts_a_campaign_off(tmp_path: Path) -> None:
    result = run(tmp_path, allow=frozenset({PLANTED}), max_examples=None, seconds=0.3)
    assert result.examples > 0
    assert result.seconds < 30


def test_a_campaign_without_a_bound_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="bound"):
        run(tmp_path, max_examples=None)


def test_coverage_tells_what_happened_and_what_never_did(tmp_path: Path) -> None:
    result = run(tmp_path, allow=frozenset({PLANTED}), max_examples=60)
    assert result.coverage.rules["add"] == result.coverage.events["Arrive"]
    assert "evict" in result.coverage.never
    assert "add" not in result.coverage.never


def test_what_is_written_can_be_read_back_and_replays(tmp_path: Path) -> None:
    result = the_one(run(tmp_path))
    files = {"".join(Path(f).suffixes): Path(f) for f in result.files}
    assert files.keys() == {".jsonl", ".history.json", ".finding.json", ".txt", ".py"}

    assert replay.load(files[".history.json"]) == result.history
    finding = msgspec.json.decode(files[".finding.json"].read_bytes(), type=Finding)
    assert finding == result.finding
    assert replay.replay(files[".history.json"], ToyTarget(), RaisedIsWrong) == [result.finding]

    header, events = codec.read(files[".jsonl"])
    assert header.target == "toy"
    assert len(events) == finding.index + 1

    text = files[".txt"].read_text()
    assert finding.sentence in text
    assert "schedule raises Planted" in text

    module = ast.parse(files[".py"].read_text())
    imported = {
        alias.name
        for node in ast.walk(module)
        if isinstance(node, ast.Import)
        for alias in node.names
    } | {node.module or "" for node in ast.walk(module) if isinstance(node, ast.ImportFrom)}
    assert not [name for name in imported if name.startswith("kvproof")]


def test_a_history_that_the_target_cannot_run_is_a_usage_error(tmp_path: Path) -> None:
    history = the_one(run(tmp_path)).history
    group = msgspec.structs.replace(history.setup.groups[0], kind="recurrent")
    setup = msgspec.structs.replace(history.setup, groups=(group,))
    with pytest.raises(UsageError, match="recurrent"):
        replay.run(msgspec.structs.replace(history, setup=setup), ToyTarget(), RaisedIsWrong)


def test_a_file_that_is_no_history_is_a_usage_error(tmp_path: Path) -> None:
    path = tmp_path / "x.history.json"
    with pytest.raises(UsageError, match="cannot be read"):
        replay.load(path)
    path.write_text("{}")
    with pytest.raises(UsageError, match="not a history"):
        replay.load(path)
