"""Comparing schedulers: turns, medians, and one small comparison on the real release."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kvproof.conformance.bench.scheduler import timing
from kvproof.conformance.releases.folders import installed


def test_sides_take_turns_in_changing_order() -> None:
    order: list[str] = []
    turn: dict[str, Callable[[], object]] = {
        "a": lambda: order.append("a"),
        "b": lambda: order.append("b"),
    }
    taken = timing.in_turns([turn, turn, turn])
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert list(taken) == ["a", "b"]
    assert all(0 <= milliseconds < 1000 for milliseconds in taken.values())


def test_what_is_short_is_repeated() -> None:
    calls: list[int] = []
    timing.repeated(lambda: calls.append(1), 7)()
    assert len(calls) == 7


@pytest.mark.vllm
@pytest.mark.skipif("0.32.0" not in installed(), reason="vLLM 0.32.0 is not installed")
def test_both_schedulers_are_measured_on_the_same_work(kvproof: Callable[..., Any]) -> None:
    small = ("--requests", 16, "--tokens", 64, "--prompt", 4096, "--runs", 3)
    ended = kvproof("bench", "scheduler", *small, "--no-growth", "--turns", 60, "--json")
    assert ended.code == 0, ended.err
    told = ended.json()
    assert told["settings"]["vLLM"] == "0.32.0"
    assert told["growth"] == []
    rows = told["rows"]
    goals = [50, 10, None, 4, None, 50, None, 4]
    # For a first lookup of one group there is none.
    assert [row["goal"] for row in rows] == [*goals, 50, 10, *3 * [None], 50, None, 4]
    assert [row["unit"] for row in rows] == 2 * ([*7 * ["ms"], "MB"])
    assert len({row["workload"] for row in rows}) == 16
    steps, worst = rows[1:3]
    assert worst["workload"].startswith(steps["workload"])
    assert all(worst[side] >= steps[side] for side in ("release", "kvproof", "own"))
    served = told["served"]
    assert [(one["slots"], one["scheduler"]) for one in served] == [
        (slots, side) for slots in (600, 800, 1000, 1600) for side in ("vLLM", "kvproof")
    ]
    # The largest tier does not overflow: both find and store the same.
    assert served[-1] == served[-2] | {"scheduler": "kvproof"}
    assert 0 < served[-1]["hits"] <= served[-1]["greatest"]
    for row in rows:
        assert row["ratio"] == pytest.approx(row["release"] / row["kvproof"])
    # A lookup that is asked again costs the same whatever it found: two orders of magnitude less.
    again = [row for row in rows if row["workload"].endswith("again")]
    assert len(again) == 2
    assert all(row["ratio"] > 10 for row in again)
