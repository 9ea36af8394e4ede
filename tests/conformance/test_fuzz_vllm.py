"""The fuzzer on real releases: a known fault is found, and its stand-alone test knows who has it.

Each release runs in a child process, since two of them cannot be imported into one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kvproof.conformance.releases.child import child_environment

pytestmark = pytest.mark.vllm

MAX_EXAMPLES = 150

# Runs in the child.
CAMPAIGN = """
import sys
from pathlib import Path
import msgspec
from kvproof.conformance.engines.vllm import VllmTarget
from kvproof.conformance.fuzz import campaign

result = campaign.run(
    VllmTarget(), seed=4, seconds=None, max_examples=int(sys.argv[2]), out=Path(sys.argv[1])
)
print(msgspec.json.encode(result).decode())
"""

# The same examples under a judge that finds nothing: what happens in them?
UNJUDGED = """
import sys
from collections import Counter
from pathlib import Path
import msgspec
from kvproof.conformance.engines.vllm import VllmTarget
from kvproof.conformance.fuzz import campaign
from kvproof.conformance.trace.events import Answer, Issue, PrepareStore

class Counting:
    def __init__(self, header):
        self.missed = []
        self.counts = Counter()
    def feed(self, event):
        match event:
            case Issue(kind=kind):
                self.counts[kind] += 1
            case PrepareStore(refused=refused):
                self.counts["refused" if refused else "taken"] += 1
            case Answer(tokens=None):
                self.counts["deferred"] += 1
    def coverage(self):
        return self.counts

result = campaign.run(
    VllmTarget(), seed=1, seconds=None, max_examples=100, out=Path(sys.argv[1]), make_judge=Counting
)
print(msgspec.json.encode(result).decode())
"""


def run(release: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, env=child_environment(release), capture_output=True, text=True, check=False
    )


def campaign(out: Path) -> Any:
    ended = run("0.21.0", "-c", CAMPAIGN, str(out), str(MAX_EXAMPLES))
    assert ended.returncode == 0, ended.stderr
    return msgspec.json.decode(ended.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return campaign(tmp_path_factory.mktemp("found"))


def stale_window_blocks(result: Any) -> Any:
    """The public fault that a store reads blocks which slid away and were handed out again."""
    (found,) = [f for f in result["found"] if f["finding"]["id"] == "S1"]
    return found


def test_a_known_fault_of_0_21_0_is_found_from_nothing(result: Any) -> None:
    assert result["examples"] == MAX_EXAMPLES
    found = stale_window_blocks(result)
    assert found["finding"]["action"] == "plan_store"
    assert len(found["history"]["moves"]) <= 12


@pytest.mark.parametrize("release", ["0.21.0", "0.32.0"])
def test_nothing_that_matters_is_rare(release: str, tmp_path: Path) -> None:
    ended = run(release, "-c", UNJUDGED, str(tmp_path))
    assert ended.returncode == 0, ended.stderr
    result = msgspec.json.decode(ended.stdout.splitlines()[-1])
    assert result["examples"] == 100
    counts = {**result["coverage"]["reference"], **result["coverage"]["events"]}
    wanted = {"load": 40, "store": 100, "refused": 30, "deferred": 30, "Preempt": 10, "Flush": 30}
    assert {
        name: counts.get(name, 0) for name in wanted if counts.get(name, 0) < wanted[name]
    } == {}


def test_the_same_seed_finds_the_same_histories(result: Any, tmp_path: Path) -> None:
    again = campaign(tmp_path)
    assert [(f["example"], f["finding"], f["history"]) for f in again["found"]] == [
        (f["example"], f["finding"], f["history"]) for f in result["found"]
    ]
    assert (again["events"], again["again"]) == (result["events"], result["again"])


@pytest.mark.parametrize(("release", "code"), [("0.21.0", 1), ("0.32.0", 0)])
def test_the_stand_alone_test_fails_where_the_fault_is_and_passes_where_it_is_fixed(
    result: Any, release: str, code: int
) -> None:
    (test,) = (path for path in stale_window_blocks(result)["files"] if path.endswith(".py"))
    # Plain pytest: without this project's settings, and without its package on the path.
    plain = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", os.path.dirname(test)]
    ended = run(release, *plain, test)
    assert ended.returncode == code, ended.stdout
