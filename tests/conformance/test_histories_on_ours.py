"""What breaks a release is harmless to our scheduler: all stored histories, played on it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kvproof.conformance.releases.child import child_environment
from kvproof.conformance.releases.folders import installed

pytestmark = pytest.mark.vllm

RELEASE = "0.32.0"
HISTORIES = Path(__file__).parents[2] / "conformance" / "histories"

# Runs in the child: plays all histories that can be set up, and tells what is unsafe in them.
PLAY = """
import json, sys
from pathlib import Path
from kvproof.conformance.engines.names import OURS
from kvproof.conformance.engines.vllm import VllmTarget
from kvproof.conformance.fuzz import replay

target = VllmTarget(OURS, tells_caught=True)
told = {"played": 0, "jobs": 0}
for path in map(Path, sys.argv[1:]):
    history = replay.load(path)
    if target.supports(history.setup) is not None:
        continue
    session = replay.run(history, target)
    told["played"] += 1
    told["jobs"] += sum(type(event).__name__ == "Issue" for event in session.events)
    if session.finding is not None:
        told[str(path)] = [session.finding.culprit, session.finding.id]
print(json.dumps(told))
"""


def test_no_stored_history_breaks_our_scheduler() -> None:
    if RELEASE not in installed():
        pytest.skip(f"vLLM {RELEASE} is not installed: kvproof releases add {RELEASE}")
    paths = sorted(map(str, HISTORIES.glob("*/*.history.json")))
    ended = subprocess.run(
        [sys.executable, "-c", PLAY, *paths],
        env=child_environment(RELEASE),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout.splitlines()[-1])
    assert told.pop("played") > 0.9 * len(paths)
    assert told.pop("jobs") > len(paths)
    # What is left is the core's own: it is stuck whoever its connector is.
    assert {tuple(found) for found in told.values()} <= {("engine", "A-stall")}, told
