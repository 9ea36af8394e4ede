"""What the production scheduler does in vLLM, the proved mechanism allows; what it must not, not.

The release runs in a child process. The mechanism is executed there or here, beside it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kvproof.conformance.monitor.audit import Audit
from kvproof.conformance.releases.child import child_environment
from kvproof.conformance.releases.folders import installed
from kvproof.conformance.trace import codec
from kvproof.conformance.trace import events as ev
from kvproof.spec.contract import contract
from kvproof.spec.mechanism import mechanism
from tests.impl.beside import Beside

pytestmark = pytest.mark.vllm

RELEASE = "0.32.0"

Events = list[ev.AnyEvent]

# Runs in the child: drawn histories; then loads that fail, of a request that computes instead and
# of one that is gone by then.
INSIDE = """
import sys
from pathlib import Path
import msgspec
from kvproof.conformance.engines.base import Abort, Add, Drain, GroupSetup, ResetCache, Setup, Step
from kvproof.conformance.engines.names import OURS
from kvproof.conformance.engines.vllm import VllmTarget
from kvproof.conformance.fuzz import campaign
from kvproof.conformance.fuzz.session import play
from tests.impl.beside import Beside

target = VllmTarget(OURS)
drawn = campaign.run(
    target, seed=5, seconds=None, max_examples=40, out=Path(sys.argv[1]), make_judge=Beside
)
tokens, gone = tuple(range(1, 9)), ResetCache(connector=False)
late = (Step(finish="none"), Step(finish="none"))
moves = (
    Add("a", tokens, 1), Drain(), gone,
    Add("b", tokens, 1), *late, Step(fail="loads"), Step(), Drain(), gone,
    Add("c", tokens, 1), *late, Abort("c"), Step(fail="loads"), Drain(), gone,
    Add("c", tokens, 1), Drain(),
)
failing = play(target, Setup(groups=(GroupSetup("full", 2),)), moves, Beside)
print(msgspec.json.encode([drawn, failing.finding, failing.coverage()]).decode())
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> tuple[ev.Header, Events]:
    """The scripted workload, recorded by the command that users call."""
    if RELEASE not in installed():
        pytest.skip(f"vLLM {RELEASE} is not installed: kvproof releases add {RELEASE}")
    path = tmp_path_factory.mktemp("traces") / "ours.jsonl"
    arguments = ["record", "--target", f"kvproof-on-vllm:{RELEASE}", "--out", str(path)]
    command = [sys.executable, "-m", "kvproof.conformance.cli", *arguments]
    subprocess.run(command, check=True, env=dict(os.environ), stdout=subprocess.DEVNULL)
    return codec.read(path)


def judged(header: ev.Header, events: Events) -> Beside:
    beside = Beside(header)
    for event in events:
        beside.feed(event)
    return beside


def test_the_recorded_workload_is_a_run_of_the_mechanism(trace: tuple[ev.Header, Events]) -> None:
    beside = judged(*trace)
    assert beside.finding is None
    # Failures, and loads that a reset finds unplanned, are the fuzzer's part.
    never = {name for name in own_moves() if not beside.calls[name]}
    assert never == {"mark_failed", "give_up"}


def own_moves() -> set[str]:
    """The moves that the mechanism has beside the contract's."""
    return mechanism().actions.keys() - contract().actions.keys()


def test_every_invariant_holds_along_the_way(trace: tuple[ev.Header, Events]) -> None:
    header, events = trace
    beside = Beside(header)
    audit = Audit(mechanism(), beside.world)
    for number, event in enumerate(events[:500]):
        beside.feed(event)
        if number % 25 == 0:
            assert (number, audit.broken()) == (number, [])


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What came of the runs in the child: of drawn histories, and of loads that fail."""
    if RELEASE not in installed():
        pytest.skip(f"vLLM {RELEASE} is not installed: kvproof releases add {RELEASE}")
    environment = child_environment(RELEASE)
    root = str(Path(__file__).parents[2])
    environment["PYTHONPATH"] = os.pathsep.join([root, environment["PYTHONPATH"]])
    command = [sys.executable, "-c", INSIDE, str(tmp_path_factory.mktemp("found"))]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return msgspec.json.decode(ended.stdout.splitlines()[-1])


def test_drawn_histories_are_runs_of_the_mechanism(inside: Any) -> None:
    drawn, _, _ = inside
    assert [f["finding"]["sentence"] for f in drawn["found"]] == []
    counts = drawn["coverage"]["reference"]
    wanted = {"plan_store": 200, "plan_load": 50, "flush": 10, "share": 50, "evict": 1, "reset": 1}
    assert {name: counts[name] for name in wanted if counts.get(name, 0) < wanted[name]} == {}


def test_loads_that_fail_are_runs_of_the_mechanism(inside: Any) -> None:
    _, finding, counts = inside
    assert finding is None
    # The last life of c asks for what failed in its former one, and gets it.
    names = ("open_load", "release", "mark_failed", "settle")
    assert [counts[name] for name in names] == [3, 8, 4, 4]


# --- what the code must not do -------------------------------------------------------------------


def without_flushes(events: Events) -> Events:
    return [e for e in events if not isinstance(e, ev.Flush)]


def without_hits(events: Events) -> Events:
    return [e for e in events if not (isinstance(e, ev.Probe) and e.result == "hit")]


def with_another_block(events: Events) -> Events:
    """A store reads the block after the one that its request has there."""
    i, store = next(
        (i, e) for i, e in enumerate(events) if isinstance(e, ev.Issue) and e.kind == "store"
    )
    first, *others = store.pieces
    piece = msgspec.structs.replace(first, block=first.block + 1)
    return [*events[:i], msgspec.structs.replace(store, pieces=[piece, *others]), *events[i + 1 :]]


def with_a_load_before_the_waits(events: Events) -> Events:
    """A copy of a load is submitted before its step's forward of the step before is over."""
    submitted = {e.job for e in events if isinstance(e, ev.Issue) and e.kind == "load"}
    i, submit = next(
        (i, e) for i, e in enumerate(events) if isinstance(e, ev.Submit) and e.job in submitted
    )
    launch = max(j for j in range(i) if isinstance(events[j], ev.Launch))
    return [*events[:launch], submit, *events[launch:i], *events[i + 1 :]]


def without_a_piece(events: Events) -> Events:
    """A store leaves out the last block of a chunk."""
    i, store = next(
        (i, e) for i, e in enumerate(events) if isinstance(e, ev.Issue) and e.kind == "store"
    )
    shorter = msgspec.structs.replace(store, pieces=store.pieces[:-1])
    return [*events[:i], shorter, *events[i + 1 :]]


@pytest.mark.parametrize(
    ("tamper", "action"),
    [
        (without_flushes, "decide"),
        (without_hits, "pin"),
        (with_another_block, "plan_store"),
        (with_a_load_before_the_waits, "start_load"),
        (without_a_piece, "close_window"),
    ],
)
def test_a_run_that_is_not_the_codes_is_refused_where_it_leaves_the_mechanism(
    trace: tuple[ev.Header, Events], tamper: Callable[[Events], Events], action: str
) -> None:
    header, events = trace
    finding: Any = judged(header, tamper(events)).finding
    assert (finding.id, finding.action) == ("M", action)
