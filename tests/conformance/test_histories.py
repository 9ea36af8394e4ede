"""Every stored history still breaks its release, in the way that is written beside it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kvproof.conformance.releases.child import child_environment
from kvproof.conformance.releases.folders import installed

pytestmark = pytest.mark.vllm

HISTORIES = Path(__file__).parents[2] / "conformance" / "histories"
RELEASES = sorted(p.name for p in HISTORIES.iterdir() if p.is_dir())

# Runs in the child: replays all histories given, and prints the findings.
REPLAY = """
import json, sys
from pathlib import Path
import msgspec
from kvproof.conformance.engines.vllm import VllmTarget
from kvproof.conformance.fuzz import replay
target = VllmTarget()
found = {}
for path in sys.argv[1:]:
    found[path] = msgspec.to_builtins(replay.replay(Path(path), target))
print(json.dumps(found))
"""


@pytest.mark.parametrize("release", RELEASES)
def test_the_histories_of_a_release_break_it_as_recorded(release: str) -> None:
    if release not in installed():
        pytest.skip(f"vLLM {release} is not installed: kvproof releases add {release}")
    paths = sorted(str(p) for p in (HISTORIES / release).glob("*.history.json"))
    assert paths
    ended = subprocess.run(
        [sys.executable, "-c", REPLAY, *paths],
        env=child_environment(release),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout.splitlines()[-1])
    for path in paths:
        recorded = json.loads(Path(path.replace(".history.json", ".finding.json")).read_text())
        assert recorded in found[path], path


def test_each_history_has_its_finding_and_a_test_of_its_own() -> None:
    for history in HISTORIES.glob("*/*.history.json"):
        slug = history.name.removesuffix(".history.json")
        assert history.with_name(f"{slug}.finding.json").exists()
        recorded = json.loads(history.with_name(f"{slug}.finding.json").read_text())
        # A test of its own sees bytes, which tell nothing of a finding of class missed.
        alone = history.with_name(f"test_{slug.replace('-', '_')}.py")
        assert alone.exists() == (recorded["severity"] == "unsafe"), slug
