"""Shadow mode beside the release's real core: it agrees on a plain workload, and tells of a fault.

This file runs itself once inside the release and prints what it saw; the tests read that.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from typing import Any

import pytest

from kvproof.conformance.engines.base import Add, Drain, GroupSetup, Move, ResetCache, Setup, Step
from kvproof.conformance.errors import UsageError
from kvproof.conformance.releases import child_environment
from kvproof.conformance.trace import events as ev

pytestmark = pytest.mark.vllm

RELEASE = "0.32.0"
A, B = tuple(range(64)), tuple(range(100, 170))
PLAIN: tuple[Move, ...] = (
    *(Add("a", A, 3), Step(finish="none"), Add("b", B, 20), Step(), Drain()),
    ResetCache(connector=False),
    *(Add("c", (*A, 7), 4), Add("d", (*B, 7), 2), Step(finish="none"), Step(), Drain()),
    *(ResetCache(), Add("e", A, 2), Drain()),
)
"""Two prompts are stored, come again and are loaded; everything is reset, and one comes again."""
REPEAT: tuple[Move, ...] = (
    *(Add("a", A, 1), Drain(), ResetCache(connector=False), Add("b", (*A, 7), 1), Drain()),
)
FULL = GroupSetup("full", 16)


@functools.cache
def seen() -> dict[str, Any]:
    """What came of each run, by its name."""
    try:
        environment = child_environment(RELEASE)
    except UsageError as missing:
        pytest.skip(str(missing))
    command = [sys.executable, "-P", __file__]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("name", ["full", "full, several workers", "full and window"])
def test_a_plain_workload_makes_no_difference(name: str) -> None:
    run = seen()[name]
    assert run["lines"] == []
    assert run["counts"] == {"shadow_answers": 5}
    assert run["loads"] == 2
    assert run["finding"] is None


def test_a_hit_that_the_stock_scheduler_loses_is_told() -> None:
    # A window of two blocks and a token needs two blocks before a boundary; the stock lookup asks
    # for three, of which its store mask keeps two when the full group's blocks are larger.
    run = seen()["a window of a token more"]
    assert run["counts"] == {"shadow_answers": 2, "shadow_differences": 1}
    assert run["lines"] == [
        "Shadow: of request b the GPU has 0 tokens; the stock scheduler loads 0 more, ours 64"
    ]
    assert run["statistics"] == {
        "kvproof:kv_offload_shadow_answers": 2,
        "kvproof:kv_offload_shadow_differences": 1,
    }


def test_a_fault_of_ours_ends_the_listening_and_nothing_else() -> None:
    run = seen()["a fault of ours"]
    assert run["lines"][-1].startswith("Shadow: our scheduler has failed and is not asked any more")
    assert run["counts"]["shadow_differences"] == 1
    assert run["loads"] == 2
    assert run["finding"] is None


# --- inside the release ---


def look() -> dict[str, Any]:
    import importlib
    import logging

    from kvproof.conformance.engines.vllm import VllmTarget, configs
    from kvproof.conformance.monitor.monitor import Monitor

    ours: Any = importlib.import_module("kvproof.impl.scheduler.lookup").Finder
    shadow: Any = importlib.import_module("kvproof.impl.connector.shadow")
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    shadow.logger.addHandler(handler)
    shadow.logger.setLevel(logging.WARNING)
    target = VllmTarget("kvproof.impl.connector:OffloadingConnector")
    transfer: Any = configs._transfer

    def with_shadow(config: Any, setup: Any, features: Any) -> None:
        transfer(config, setup, features)
        config.kv_connector_extra_config["shadow"] = True

    configs._transfer = with_shadow

    def run(moves: tuple[Move, ...], *groups: GroupSetup, workers: int = 1) -> dict[str, Any]:
        lines.clear()
        setup = Setup(groups=groups, num_gpu_blocks=64, num_slots=128, num_workers=workers)
        events: list[ev.AnyEvent] = []
        engine = target.start(setup, events.append)
        connector = engine._scheduler.connector
        statistics: dict[str, float] = {}
        take = connector.get_kv_connector_stats

        def taken() -> Any:
            stats = take()
            for key, value in (stats.reduce() if stats else {}).items():
                if key.startswith("kvproof:"):
                    statistics[key] = statistics.get(key, 0) + value
            return stats

        connector.get_kv_connector_stats = taken
        for move in moves:
            assert engine.play(move), move
        engine.close()
        monitor = Monitor(engine.header)
        finding = next(filter(None, map(monitor.feed, events)), None)
        return {
            "lines": list(lines),
            "counts": dict(connector.connector_scheduler.counts),
            "statistics": statistics,
            "loads": sum(isinstance(one, ev.PrepareLoad) for one in events),
            "finding": finding and f"{finding.id} {finding.action} {finding.facts}",
        }

    found = {
        "full": run(PLAIN, FULL),
        "full, several workers": run(PLAIN, FULL, workers=2),
        "full and window": run(PLAIN, FULL, GroupSetup("window", 16, 32)),
        "a window of a token more": run(
            REPEAT, GroupSetup("full", 32), GroupSetup("window", 8, 17)
        ),
    }
    find = ours.find

    def fails(*arguments: Any) -> Any:
        raise RuntimeError("out of order")

    ours.find = fails
    try:
        found["a fault of ours"] = run(PLAIN, FULL)
    finally:
        ours.find = find
    return found


if __name__ == "__main__":
    print(json.dumps(look()))
