"""Our scheduler answers the greatest boundary that every group can serve (E1), over both managers.

The verified lookup functions say which one that is. What lies in the tiers is drawn: in the CPU
tier, and over the release's manager of tiers also in the tier behind it, from where it has to be
brought back before it counts.
"""

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


@pytest.mark.parametrize("tier", ["cpu", "tiering"])
def test_answers_are_the_greatest_boundary(tier: str) -> None:
    if RELEASE not in installed():
        pytest.skip(f"vLLM {RELEASE} is not installed: kvproof releases add {RELEASE}")
    ended = subprocess.run(
        [sys.executable, "-m", "tests.conformance.answers", tier, "300"],
        env=child_environment(RELEASE),
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    seen = json.loads(ended.stdout.splitlines()[-1])
    # The comparison is worth something only where there is something to find, and to miss.
    assert seen["answers"] >= 200, seen
    assert seen["hits"] >= 50, seen
    assert seen["with holes"] >= 25, seen
    assert seen["inside a chunk"] >= 10, seen
    assert seen["hybrid"] >= 100, seen
    assert (seen["put off"] >= 50) == (tier == "tiering"), seen
