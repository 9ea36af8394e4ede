"""Failures of loads, played against the connector inside the release's real core, without weights.

This file runs itself once inside the release and prints what it saw; the tests read that.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from typing import Any

import pytest

from kvproof.conformance.engines.base import Add, Drain, GroupSetup, ResetCache, Setup, Step
from kvproof.conformance.errors import UsageError
from kvproof.conformance.releases import child_environment
from kvproof.conformance.trace import events as ev

pytestmark = pytest.mark.vllm

RELEASE = "0.32.0"
A, B = tuple(range(64)), tuple(range(100, 164))
MOVES = (
    *(Add("a", A, 1), Drain(), Add("b", B, 1), Drain()),
    ResetCache(connector=False),
    *(Add("c", (*A, 7), 1), Add("d", (*B, 7), 1), Step(finish="none")),
    Step(finish="oldest", fail="loads"),
    Drain(),
)
"""Two prompts are stored and come again. Both loads begin; the first fails, the other is made."""


@functools.cache
def seen() -> dict[str, Any]:
    """What came of the moves, by the policy for failed loads and the blocks of the pool."""
    try:
        environment = child_environment(RELEASE)
    except UsageError as missing:
        pytest.skip(str(missing))
    command = [sys.executable, "-P", __file__]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize(("policy", "finish"), [("recompute", "length_capped"), ("fail", "error")])
def test_a_failed_load_costs_no_more_than_the_policy_says(policy: str, finish: str) -> None:
    run = seen()[f"{policy} 20"]
    assert run["taken"] == [True] * len(MOVES)
    assert run["received"] == [["c#0", False], ["d#0", True]]
    assert run["finding"] is None
    assert run["stalled"] == []
    capped = dict.fromkeys(("a#0", "b#0", "d#0"), "length_capped")
    assert run["ends"] == capped | {"c#0": finish}


def test_the_core_never_gets_past_a_failed_load_that_has_no_room_beside_one_that_arrived() -> None:
    # Each load holds a block of the window and four others; computing takes twice that. With ten
    # or eleven blocks the loads come one after the other, with fifteen and more there is room.
    stalled = {pool: seen()[f"recompute {pool}"]["stalled"] for pool in range(10, 17)}
    stuck = ["c#0", "d#0"]
    assert stalled == {10: [], 11: [], 12: stuck, 13: stuck, 14: stuck, 15: [], 16: []}


# --- inside the release ---


def look() -> dict[str, Any]:
    from kvproof.conformance.engines.vllm import VllmTarget
    from kvproof.conformance.monitor.monitor import Monitor

    target = VllmTarget("kvproof.impl.connector:OffloadingConnector")

    def run(policy: str, pool: int) -> dict[str, Any]:
        events: list[ev.AnyEvent] = []
        setup = Setup(
            groups=(GroupSetup("full", 16), GroupSetup("window", 16, 16)),
            num_gpu_blocks=pool,
            load_failure=policy,
        )
        engine = target.start(setup, events.append)
        taken = [engine.play(move) for move in MOVES]
        engine.close()
        monitor = Monitor(engine.header)
        finding = next(filter(None, map(monitor.feed, events)), None)
        received = [[one.req, one.ok] for one in events if isinstance(one, ev.Received)]
        stalled = [one.reqs for one in events if isinstance(one, ev.Stalled)]
        return {
            "taken": taken,
            "received": received,
            "stalled": stalled[0] if stalled else [],
            "finding": finding and str(finding.signature()),
            "ends": {one.req: one.status for one in events if isinstance(one, ev.Finish)},
        }

    runs = [("recompute", pool) for pool in (*range(10, 17), 20)] + [("fail", 20)]
    return {f"{policy} {pool}": run(policy, pool) for policy, pool in runs}


if __name__ == "__main__":
    print(json.dumps(look()))
