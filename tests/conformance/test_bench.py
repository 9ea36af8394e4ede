"""Figures: what is counted, what a median is, and that releases take turns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kvproof.conformance.bench import fuzz, monitor
from kvproof.conformance.bench.fuzz import Time
from kvproof.conformance.bench.monitor import Judging
from kvproof.conformance.engines.base import ResetCache
from kvproof.conformance.fuzz.campaign import CampaignResult, Found
from kvproof.conformance.trace import codec

from .matrix_stub import StubRunner, found, result
from .story import Story, tokens

JUDGED = Judging("1.2.3.jsonl", "vllm:1.2.3", 10, 3, 2.0, 15.0)


def second_reset(seconds: float) -> Found:
    one = found("P11", "crash", seconds, where="scheduler.py:9", explained_by="P10")
    moves = (ResetCache(), ResetCache())
    return msgspec.structs.replace(one, history=msgspec.structs.replace(one.history, moves=moves))


def busy(seconds: float) -> Found:
    return found("P11", "crash", seconds, where="scheduler.py:7", explained_by="M1")


def test_a_case_s_time_is_the_median_of_all_seeds() -> None:
    runs = [
        result(1, second_reset(3.0), busy(2.0)),
        result(2, busy(4.0), second_reset(9.0), second_reset(1.0)),
        result(3, second_reset(2.0)),
        result(4),
    ]
    made = fuzz.figures("1.2.3", runs, JUDGED)
    assert made.cases == {
        "K2": Time([2.0, 4.0], 4, 4.0),
        "K7": Time([1.0, 2.0, 3.0], 4, 2.0),
    }
    assert (made.campaigns, made.examples) == (4, 40)
    assert (made.steps_per_second, made.events_per_second) == (50.0, 750.0)


def test_a_case_that_most_seeds_did_not_find_has_no_median() -> None:
    made = fuzz.figures("1.2.3", [result(1, busy(2.0)), result(2), result(3)], JUDGED)
    assert made.cases == {"K2": Time([2.0], 3, None)}


def test_releases_take_turns_and_nothing_is_shrunk(tmp_path: Path) -> None:
    runner = StubRunner()
    releases = ["1.2.3", "1.2.4"]
    made: dict[str, list[CampaignResult]] = asyncio.run(
        fuzz.campaigns(releases, (1, 2), 5.0, tmp_path, runner, lambda *_: None)
    )
    assert [(task.release, task.asked.seed) for task in runner.tasks] == [
        ("1.2.3", 1),
        ("1.2.4", 1),
        ("1.2.3", 2),
        ("1.2.4", 2),
    ]
    assert {(task.asked.seconds, task.max_replays) for task in runner.tasks} == {(5.0, 0)}
    assert {release: len(results) for release, results in made.items()} == {"1.2.3": 2, "1.2.4": 2}


def test_a_trace_is_judged_up_to_its_finding(tmp_path: Path) -> None:
    s = Story()
    s.stored("a#0", tokens(0, 8))
    s.finish("a#0")
    s.finish("a#0")
    s.drained()
    codec.write(tmp_path / "t.jsonl", s.header, s.events)
    judged = monitor.judge(tmp_path / "t.jsonl", 0.0)
    assert (judged.trace, judged.target, judged.times) == ("t.jsonl", "story", 1)
    assert judged.events == len(s.events) - 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["schedulers"], "no such command 'schedulers'"),
        (["scheduler", "--release", "9.9.9"], "kvproof releases add 9.9.9"),
        (["scheduler", "--requests", "1"], "--requests"),
        (["fuzz", "--releases", "9.9.9"], "kvproof releases add 9.9.9"),
        (["fuzz", "--runs", "0"], "--runs"),
        (["monitor", "none.jsonl"], "none.jsonl: cannot be read"),
        (["monitor", "x.jsonl", "--releases", "1.2.3"], "name traces or --releases, not both"),
    ],
)
def test_wrong_use_is_one_line(
    refuses: Callable[..., str], arguments: list[str], told: str
) -> None:
    assert told in refuses("bench", *arguments)


def test_bench_monitor_tells_its_settings(kvproof: Any, tmp_path: Path) -> None:
    s = Story()
    s.stored("a#0", tokens(0, 8))
    codec.write(tmp_path / "t.jsonl", s.header, s.events)
    told = kvproof("bench", "monitor", tmp_path / "t.jsonl", "--time", "0", "--json").json()
    assert set(told["settings"]) == {"seconds a trace", "kvproof", "Python", "machine", "load"}
    (trace,) = told["traces"]
    assert (trace["trace"], trace["events"], trace["times"]) == ("t.jsonl", len(s.events), 1)
