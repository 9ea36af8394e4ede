"""Traces of real releases hold, and stop holding when one event is tampered with."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kvproof.conformance.monitor.finding import Finding
from kvproof.conformance.monitor.monitor import Monitor
from kvproof.conformance.releases.folders import installed
from kvproof.conformance.trace import codec
from kvproof.conformance.trace.events import AnyEvent, Header
from tests.conformance import tampering

pytestmark = pytest.mark.vllm

RELEASES = ("0.21.0", "0.26.0", "0.32.0")


@pytest.fixture(scope="module", params=RELEASES)
def trace(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Header, list[AnyEvent]]:
    """The scripted workload on one release, recorded by the command that users call."""
    release: str = request.param
    if release not in installed():
        pytest.skip(f"vLLM {release} is not installed: kvproof releases add {release}")
    path: Path = tmp_path_factory.mktemp("traces") / f"{release}.jsonl"
    arguments = ["record", "--target", f"vllm:{release}", "--out", str(path)]
    command = [sys.executable, "-m", "kvproof.conformance.cli", *arguments]
    subprocess.run(command, check=True, env=dict(os.environ), stdout=subprocess.DEVNULL)
    return (release, *codec.read(path))


def judge(header: Header, events: list[AnyEvent]) -> Finding | None:
    monitor = Monitor(header)
    return next((f for e in events if (f := monitor.feed(e))), None)


def test_the_recorded_workload_holds(trace: tuple[str, Header, list[AnyEvent]]) -> None:
    _, header, events = trace
    assert judge(header, events) is None


@pytest.mark.parametrize("name", sorted(tampering.ALL))
def test_a_tampered_trace_is_found_out(
    trace: tuple[str, Header, list[AnyEvent]], name: str
) -> None:
    _, header, events = trace
    id, tamper = tampering.ALL[name]
    result = tamper(events)
    assert result is not None, "the workload offers no place for it"
    tampered, index = result
    finding = judge(header, tampered)
    assert finding is not None
    assert (finding.id, finding.index) == (id, index)
