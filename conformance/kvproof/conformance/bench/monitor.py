"""How many events a second the monitor judges, with no engine beside it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kvproof.conformance.errors import UsageError
from kvproof.conformance.monitor.monitor import Monitor
from kvproof.conformance.releases.child import child_environment
from kvproof.conformance.trace import codec
from kvproof.conformance.trace.events import AnyEvent, Header


class Judging(msgspec.Struct, frozen=True):
    """One trace, judged again and again. ``events`` are those of one time, up to a finding."""

    trace: str
    target: str
    events: int
    times: int
    seconds: float
    events_per_second: float


def judge(path: Path, seconds: float) -> Judging:
    """Judge the trace at ``path`` over and over for about so many seconds, at least once.

    Reading the file does not count.

    Raises:
        UsageError: the file is no trace.
    """
    header, events = codec.read(path)
    judged = times = 0
    began = time.perf_counter()
    while times == 0 or time.perf_counter() - began < seconds:
        judged += _once(header, events)
        times += 1
    taken = time.perf_counter() - began
    return Judging(
        trace=path.name,
        target=header.target,
        events=judged // times,
        times=times,
        seconds=round(taken, 3),
        events_per_second=round(judged / taken, 1),
    )


def _once(header: Header, events: Sequence[AnyEvent]) -> int:
    monitor = Monitor(header)
    for event in events:
        if monitor.feed(event) is not None:
            break
    return monitor.events


def record(release: str, folder: Path) -> Path:
    """Record the scripted workload on a release, in a child process; returns the trace.

    Raises:
        UsageError: the release cannot be driven.
    """
    path = folder / f"{release}.jsonl"
    command = [sys.executable, "-P", "-m", "kvproof.conformance.cli", "record"]
    ended = subprocess.run(
        [*command, "--target", f"vllm:{release}", "--out", str(path)],
        env=child_environment(release),
        capture_output=True,
        text=True,
    )
    if ended.returncode != 0:
        told = ended.stderr.strip().splitlines()[-1:] or ["without a word"]
        raise UsageError(f"vLLM {release} cannot be recorded: {told[0].removeprefix('kvproof: ')}")
    return path
