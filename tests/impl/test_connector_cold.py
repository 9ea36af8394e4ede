"""Our scheduler and its tier made to raise, once, in each of their calls: the engine goes on.

This file runs itself once inside the release and prints what it saw; the tests read that. In every
run one call of one function raises, at its first, second or fifth time; the monitor listens.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from kvproof.conformance.engines.base import (
    Abort,
    Add,
    Drain,
    GroupSetup,
    Move,
    ResetCache,
    Setup,
    Step,
)
from kvproof.conformance.errors import UsageError
from kvproof.conformance.releases import child_environment
from kvproof.conformance.trace import events as ev

pytestmark = pytest.mark.vllm

RELEASE = "0.32.0"
A, B, C = tuple(range(64)), tuple(range(100, 164)), tuple(range(200, 280))
MOVES: tuple[Move, ...] = (
    *(Add("a", A, 3), Step(), Add("b", B, 20), Step(finish="none"), Step(finish="none"), Drain()),
    ResetCache(connector=False),
    *(Add("c", (*A, 7), 4), Add("d", (*B, 7), 2), Step(finish="none"), Step(), Step()),
    *(Add("e", C, 2), Add("f", C, 9), Step(), Step(finish="none"), Abort("e"), Step()),
    *(ResetCache(running=True), Step(), Step(), Add("h", B[:40], 2), Step(), Drain()),
    *(ResetCache(connector=False), Add("g", (*A, 8), 2), Add("i", (*B, 9), 2), Drain()),
    *(ResetCache(), Add("j", (*A, 8), 2), Step(), Step(), Drain(), ResetCache(), Drain()),
)
"""Stores in flight, loads, an abort, a preemption of all, a reset of everything, and a rest."""

TIER = (
    *("lookup", "touch", "prepare_load", "prepare_store", "complete_load", "complete_store"),
    *("on_new_request", "on_request_finished", "on_schedule_end", "has_pending_work"),
    *("take_events", "reset_cache", "get_stats"),
)
CORE = (
    *("alarms.Alarms.advance", "alarms.Alarms.set", "alarms.Alarms.forget", "fence.Fence.add"),
    *("fence.Fence.remove", "fence.Fence.jobs", "jobs.JobTable.issue", "jobs.JobTable.report"),
    *("ledger.Ledger.ask", "ledger.Ledger.pin", "ledger.Ledger.issue_load"),
    *("ledger.Ledger.issue_store", "ledger.Ledger.forget_request", "ledger.Ledger.reset"),
    *("loads.Loads.lookup", "loads.Loads.take", "lookup.Finder.find", "stores.Stores.offer"),
    *("stores.Stores._collect", "stores.Stores._store", "stores.Stores.end"),
    *("stores.Stores.started", "stores.Stores.restart", "scheduler.OffloadScheduler.add"),
)
TIMES = (1, 2, 5)
LETS_GO = ("complete_load", "complete_store")
"""Calls that let go of slots: when one of them fails, what the tier keeps is its own affair."""

GIVEN_BACK = ("P4 unpin", "P5 drop")
"""The contract has no word for giving back what the tier granted and no job has carried yet."""
BROKEN_PROMISE = ("P16 answer",)
"""A promised load fails before there is a job; asked again, the scheduler, now cold, says 0."""
EXPLAINED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("fence.Fence.add", "jobs.JobTable.issue", "stores.Stores._store"), GIVEN_BACK),
    **dict.fromkeys(("ledger.Ledger.issue_store", "ledger.Ledger.issue_load"), GIVEN_BACK),
    "touch": GIVEN_BACK,
    **dict.fromkeys(("prepare_load", "ledger.Ledger.pin", "loads.Loads.take"), BROKEN_PROMISE),
}
"""What the monitor may say of a run, and why that is right."""


@functools.cache
def seen() -> dict[str, Any]:
    """What came of each run, by the function that raised and the time at which it did."""
    try:
        environment = child_environment(RELEASE)
    except UsageError as missing:
        pytest.skip(str(missing))
    command = [sys.executable, "-P", __file__]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


def test_nothing_is_cold_while_nothing_fails() -> None:
    run = seen()["nothing 0"]
    assert (run["fired"], run["cold"], run["lines"]) == (False, 0, [])
    assert run["finding"] is None
    assert run["loads"] > 0


@pytest.mark.parametrize("function", (*TIER, *CORE))
def test_the_engine_goes_on(function: str) -> None:
    runs = {time: seen()[f"{function} {time}"] for time in TIMES}
    fired = {time: run for time, run in runs.items() if run["fired"]}
    assert 1 in fired
    for run in fired.values():
        assert run["finding"] in (None, *EXPLAINED.get(function, ()))
        assert run["raised"] == []
        assert run["unfinished"] == []
        assert run["cold"] == 1
        assert run["told"] == "vllm" and len(run["lines"]) == 1
        assert "RuntimeError: out of order" in run["lines"][0]
        assert run["blocks in use"] == 0
        assert run["jobs"] == 0
        if function not in LETS_GO:
            assert run["slots held"] == 0


def test_what_was_counted_is_told() -> None:
    run = seen()["prepare_store 1"]
    assert run["statistics"]["kvproof:kv_offload_cold"] == 1


# --- inside the release ---


class Fault:
    """Raises at one call of a function."""

    def __init__(self, function: Callable[..., Any], time: int) -> None:
        self._function = function
        self._left = time
        self.fired = False

    def __get__(self, instance: Any, owner: type[Any]) -> Callable[..., Any]:
        @functools.wraps(self._function)
        def call(*arguments: Any, **options: Any) -> Any:
            self._left -= 1
            if self._left == 0:
                self.fired = True
                raise RuntimeError("out of order")
            return self._function(instance, *arguments, **options)

        return call


def look() -> dict[str, Any]:
    import importlib
    import logging

    from kvproof.conformance.engines.vllm import VllmTarget
    from kvproof.conformance.monitor.monitor import Monitor

    target = VllmTarget("kvproof.impl.connector:OffloadingConnector")
    manager: Any = importlib.import_module("vllm.v1.kv_offload.cpu.manager").CPUOffloadingManager
    role: Any = importlib.import_module("kvproof.impl.connector.scheduler")
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    handler.setLevel(logging.ERROR)
    role.logger.addHandler(handler)
    role.logger.setLevel(logging.ERROR)

    def place(function: str) -> tuple[Any, str]:
        if function in TIER:
            return manager, function
        module, kind, name = function.split(".")
        return getattr(importlib.import_module(f"kvproof.impl.scheduler.{module}"), kind), name

    def run(function: str, time: int) -> dict[str, Any]:
        lines.clear()
        setup = Setup(
            groups=(GroupSetup("full", 16), GroupSetup("window", 16, 24)),
            num_gpu_blocks=40,
            num_slots=64,
            max_batch_tokens=48,
        )
        kind, name = place(function) if time else (object, "")
        own = vars(kind).get(name)
        fault = Fault(getattr(kind, name), time) if time else None
        if fault is not None:
            setattr(kind, name, fault)
        events: list[ev.AnyEvent] = []
        statistics: dict[str, float] = {}
        try:
            engine = target.start(setup, events.append)
            connector = engine._scheduler.connector
            take = connector.get_kv_connector_stats

            def taken() -> Any:
                stats = take()
                for key, value in (stats.reduce() if stats else {}).items():
                    if key.startswith("kvproof:"):
                        statistics[key] = statistics.get(key, 0) + value
                return stats

            connector.get_kv_connector_stats = taken
            for move in MOVES:
                engine.play(move)
        finally:
            if fault is not None:
                if own is None:
                    delattr(kind, name)
                else:
                    setattr(kind, name, own)
        monitor = Monitor(engine.header)
        finding = next(filter(None, map(monitor.feed, events)), None)
        ended = {one.req for one in events if isinstance(one, ev.Finish)}
        scheduler = connector.connector_scheduler
        chunks = scheduler.manager._policy.chunks.values()
        pool = engine._scheduler.kv_cache_manager.block_pool
        found = {
            "fired": fault is not None and fault.fired,
            "cold": scheduler._warm.counts["cold"],
            "told": role.logger.name.split(".")[0],
            "lines": list(lines),
            "finding": finding and f"{finding.id} {finding.action}",
            "raised": [one.exception for one in events if isinstance(one, ev.Raised)],
            "unfinished": [
                one.req for one in events if isinstance(one, ev.Arrive) and one.req not in ended
            ],
            "loads": sum(isinstance(one, ev.PrepareLoad) for one in events),
            "blocks in use": setup.num_gpu_blocks - pool.get_num_free_blocks(),
            "slots held": sum(chunk.ref_cnt != 0 for chunk in chunks),
            "jobs": len(scheduler._warm._ledger.jobs.live),
            "statistics": statistics,
        }
        engine.close()
        return found

    runs = {
        f"{function} {time}": run(function, time) for function in (*TIER, *CORE) for time in TIMES
    }
    return {"nothing 0": run("nothing", 0), **runs}


if __name__ == "__main__":
    print(json.dumps(look()))
