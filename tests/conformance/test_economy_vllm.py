"""Economy on real releases: the scripted workload loses no hit and wastes no work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kvproof.conformance.monitor.monitor import Monitor
from kvproof.conformance.releases.folders import installed
from kvproof.conformance.trace import codec
from kvproof.conformance.trace import events as ev

pytestmark = pytest.mark.vllm

RELEASES = ("0.21.0", "0.26.0", "0.32.0")


@pytest.fixture(scope="module", params=RELEASES)
def trace(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[ev.Header, list[ev.AnyEvent]]:
    """The scripted workload on one release, recorded by the command that users call."""
    release: str = request.param
    if release not in installed():
        pytest.skip(f"vLLM {release} is not installed: kvproof releases add {release}")
    path: Path = tmp_path_factory.mktemp("economy") / f"{release}.jsonl"
    arguments = ["record", "--target", f"vllm:{release}", "--out", str(path)]
    command = [sys.executable, "-m", "kvproof.conformance.cli", *arguments]
    subprocess.run(command, check=True, env=dict(os.environ), stdout=subprocess.DEVNULL)
    return codec.read(path)


def test_the_recorded_workload_loses_nothing_before_it_is_reset(
    trace: tuple[ev.Header, list[ev.AnyEvent]],
) -> None:
    """The last thing that it does is a reset; releases that pass it on do not tell of it (E5)."""
    header, events = trace
    monitor = Monitor(header)
    for event in events:
        assert monitor.feed(event) is None
    missed = [f for f in monitor.missed if f.id.startswith("E")]
    reset = next((i for i, e in enumerate(events) if isinstance(e, ev.TierReset)), len(events))
    assert all(f.id == "E5" and f.index > reset for f in missed)
    assert bool(missed) == bool(header.features["connector_reset"])


def test_the_workload_gives_economy_something_to_judge(
    trace: tuple[ev.Header, list[ev.AnyEvent]],
) -> None:
    header, events = trace
    monitor = Monitor(header)
    for event in events:
        monitor.feed(event)
    coverage = monitor.coverage()
    asked = {id for id in ("E1", "E2", "E3", "E4", "E5", "E6") if coverage[f"guard {id}"]}
    assert asked == {"E1", "E2", "E3", "E4", "E5", "E6"}


def test_emitted_events_fold_to_the_keys_that_are_there(
    trace: tuple[ev.Header, list[ev.AnyEvent]],
) -> None:
    """As a consumer would do it, without the monitor: keys, or hashes where no group is told."""
    _, events = trace
    stored: set[str] = set()
    told: list[str] = []
    drained = -1
    for index, event in enumerate(events):
        match event:
            case ev.CompleteStore(keys=keys, ok=True):
                stored.update(keys)
            case ev.KvEvents(changes=changes):
                assert all(change.what == "stored" for change in changes)
                told += [key for change in changes for key in change.keys]
            case ev.TierReset():
                break
            case ev.Drained():
                drained = index
                grouped = all(":" in key for key in told)
                there = [key if grouped else key.partition(":")[0] for key in stored]
                assert sorted(told) == sorted(there)
    assert drained > 0
