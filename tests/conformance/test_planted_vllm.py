"""Every fault of the list is found on the simulated device as what it is; without one, nothing."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from typing import Any

import pytest

from kvproof.conformance.errors import UsageError
from kvproof.conformance.planted import FAULTS
from kvproof.conformance.releases import child_environment

pytestmark = pytest.mark.vllm

RELEASE = "0.32.0"

SOUND = """
import sys
from pathlib import Path
import msgspec
from kvproof.conformance.engines.names import OURS
from kvproof.conformance.engines.vllm import VllmTarget
from kvproof.conformance.fuzz import campaign

target = VllmTarget(OURS, tells_caught=True)
behind = {"tier": "ours", "device": "simulated"}
result = campaign.run(target, seed=4, seconds=None, max_examples=150, out=Path(sys.argv[1]),
                      behind=behind, plain=target.plain())
found = [str(one.finding.signature()) for one in result.found]
print(msgspec.json.encode([found, result.coverage.reference]).decode())
"""


def run(*command: str) -> str:
    try:
        environment = child_environment(RELEASE)
    except UsageError as missing:
        pytest.skip(str(missing))
    ended = subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode in (0, 1), ended.stderr
    return ended.stdout


@functools.cache
def outcomes() -> dict[str, dict[str, Any]]:
    told = json.loads(run("-m", "kvproof.conformance.planted", "--here", "--json"))
    return {one["fault"]: one for one in told["faults"]}


def test_there_are_as_many_as_were_promised() -> None:
    assert len(FAULTS) >= 12


@pytest.mark.parametrize("fault", FAULTS)
def test_the_fault_is_found_as_what_it_is(fault: str) -> None:
    assert outcomes()[fault]["id"] in FAULTS[fault].ids


def test_without_a_fault_nothing_is_found(tmp_path: Any) -> None:
    found, counts = json.loads(run("-c", SOUND, str(tmp_path)).splitlines()[-1])
    assert found == []
    # Copies that fail are among what was played.
    assert min(counts[name] for name in ("start_load", "start_store", "fail", "flush")) > 0
