"""Plays histories on our scheduler inside a release, in a child process, and judges them there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from kvproof.conformance.engines.base import History, Move, Setup
from kvproof.conformance.monitor.finding import Finding
from kvproof.conformance.releases.child import child_environment
from kvproof.conformance.releases.folders import installed
from kvproof.conformance.trace import events as ev

RELEASE = "0.32.0"
TARGET = f"kvproof-on-vllm:{RELEASE}"

_PLAY = """
import sys
import msgspec
from kvproof.conformance.engines import names
from kvproof.conformance.engines.base import History
from kvproof.conformance.engines.vllm import VllmTarget
from kvproof.conformance.fuzz import replay

histories = msgspec.json.decode(sys.stdin.buffer.read(), type=dict[str, History])
targets = {}
runs = {}
for name, history in histories.items():
    given = names.parse(history.target).given
    target = targets.setdefault(given, None) or VllmTarget(given, tells_caught=True)
    targets[given] = target
    session = replay.run(history, target)
    runs[name] = {
        "played": len(session.moves) == len(history.moves),
        "findings": session.findings(),
        "events": session.events,
    }
sys.stdout.buffer.write(b"\\n" + msgspec.json.encode(runs))
"""


class Run(msgspec.Struct):
    """What came of a history. ``played``: every move was taken."""

    played: bool
    findings: list[Finding]
    events: list[ev.AnyEvent]

    def of(self, *kinds: type[ev.Event]) -> list[ev.AnyEvent]:
        """The events of some kinds."""
        return [event for event in self.events if isinstance(event, kinds)]


def history(setup: Setup, *moves: Move, target: str = TARGET) -> History:
    """Moves on our scheduler."""
    return History(target, setup, moves)


def play(histories: Mapping[str, History]) -> dict[str, Run]:
    """Play all of them in one child; a release that is not installed skips the test."""
    if RELEASE not in installed():
        pytest.skip(f"vLLM {RELEASE} is not installed: kvproof releases add {RELEASE}")
    ended = subprocess.run(
        [sys.executable, "-c", _PLAY],
        env=child_environment(RELEASE),
        input=msgspec.json.encode(dict(histories)),
        capture_output=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert ended.returncode == 0, ended.stderr.decode()
    return msgspec.json.decode(ended.stdout.splitlines()[-1], type=dict[str, Run])
