"""A second tier behind the CPU tier, the release's own: what is told of it, how it is judged."""

from __future__ import annotations

import pytest

from kvproof.conformance.engines.base import Add, Drain, GroupSetup, ResetCache, Setup, Step
from kvproof.conformance.monitor.audit import Audit
from kvproof.conformance.monitor.monitor import Monitor
from kvproof.conformance.trace import events as ev
from kvproof.conformance.trace.events import GroupGeometry, Header
from kvproof.spec.contract import contract
from tests.conformance.on_ours import RELEASE, TARGET, Run, history, play

pytestmark = pytest.mark.vllm

SETUP = Setup(groups=(GroupSetup("full", 2),), num_gpu_blocks=16, num_slots=4, tier="tiering")
A, B = tuple(range(9)), tuple(range(100, 109))

# a fills the tier, b takes its place; then a's prompt comes again, and all of it lies behind.
MOVES = (
    Add("a", A, 1),
    Drain(),
    Add("b", B, 1),
    Drain(),
    ResetCache(connector=False),
    Add("c", A, 1),
)
HELD = (*MOVES, Step("none"), Step("none"), Step("stores"), Step("loads"), Drain())
AFTER_A_RESET = (*MOVES[:4], ResetCache(connector=True), Add("c", A, 1), Drain())
# A client's id is used again while the store of its former life has not been told to the tier.
AGAIN = (
    Add("a", tuple(range(7)), 1),
    Step("none"),
    Step("none"),
    Add("a", (200,), 2),
    Step("none"),
    Drain(),
)
HISTORIES = {
    "ours": history(SETUP, *MOVES, Drain()),
    "stock": history(SETUP, *MOVES, Drain(), target=f"vllm:{RELEASE}"),
    "held": history(SETUP, *HELD),
    "after a reset": history(SETUP, *AFTER_A_RESET),
    "an id again": history(SETUP, *AGAIN),
}


@pytest.fixture(scope="module")
def runs() -> dict[str, Run]:
    return play(HISTORIES)


def story(run: Run) -> list[str]:
    """What c is told, and what the tier does meanwhile; keys are numbered along the prompt."""
    keys = [
        f"{found}:0"
        for e in run.events
        if isinstance(e, ev.Hashed) and e.req == "c#0"
        for found in e.hashes
    ]
    told: list[str] = []
    for event in run.events:
        match event:
            case ev.Probe(req="c#0", key=key, result=result):
                told.append(f"{keys.index(key)} {result}")
            case ev.Answer(req="c#0", tokens=tokens):
                told.append(f"answer {tokens}")
            case ev.Promote(req="c#0", evicted=evicted, accepted=accepted):
                numbers = [keys.index(key) for key, _ in accepted]
                told.append(f"brings {numbers}, evicts {len(evicted)}")
            case ev.Promoted(keys=back, ok=True):
                told.append(f"back {sorted(map(keys.index, back))}")
            case ev.PrepareLoad(req="c#0", keys=loaded):
                told.append(f"loads {list(map(keys.index, loaded))}")
            case _:
                pass
    return told


@pytest.mark.parametrize("name", HISTORIES)
def test_nothing_unsafe_is_found(runs: dict[str, Run], name: str) -> None:
    assert [f for f in runs[name].findings if f.severity == "unsafe"] == []
    assert isinstance(runs[name].events[-1], ev.Drained)


def test_chunks_come_back_one_lookup_after_the_other(runs: dict[str, Run]) -> None:
    assert story(runs["ours"]) == [
        *[f"{n} retry" for n in range(4)],
        "answer None",
        *[word for n in range(4) for word in (f"brings [{n}], evicts 1", f"{n} pending")],
        "answer None",
        "back [0, 1, 2, 3]",
        *[f"{n} hit" for n in range(4)],
        "answer 8",
        *[
            f"{n} hit" for n in range(4)
        ],  # once more: over such a tier an answer may have gone stale
        "loads [0, 1, 2, 3]",
    ]


def test_the_stock_scheduler_sees_the_same_tier(runs: dict[str, Run]) -> None:
    told = story(runs["stock"])
    assert told[0] == "0 retry"
    assert "brings [0], evicts 1" in told
    assert told[-1] == "loads [0, 1, 2, 3]"


def test_what_comes_back_is_held_as_long_as_the_history_says(runs: dict[str, Run]) -> None:
    run = runs["held"]
    started = next(e.step for e in run.events if isinstance(e, ev.Promote))
    ended = next(e.step for e in run.events if isinstance(e, ev.Promoted))
    assert ended - started == 2
    assert story(run).count("answer None") == 3


def test_a_second_tier_outlives_a_reset(runs: dict[str, Run]) -> None:
    run = runs["after a reset"]
    assert [f.id for f in run.findings] == []
    assert story(run)[-1] == "loads [0, 1, 2, 3]"


def test_an_id_that_is_used_again_confuses_no_manager(runs: dict[str, Run]) -> None:
    run = runs["an id again"]
    told = [
        (e.req, e.phase) if isinstance(e, ev.TierRequest) else "stored"
        for e in run.of(ev.TierRequest, ev.CompleteStore)
    ]
    assert told == [
        ("a#0", "new"),
        ("a#1", "new"),
        ("a#0", "finished"),
        "stored",
        ("a#1", "finished"),
        "stored",
    ]
    assert run.findings == []


@pytest.mark.parametrize("name", ["ours", "after a reset"])
def test_all_invariants_hold_when_chunks_are_back(runs: dict[str, Run], name: str) -> None:
    run = runs[name]
    header = Header(
        1, TARGET, [GroupGeometry("full", 2)], 1, 2, 16, 4, 1, "direction", {}, {"tier": "tiering"}
    )
    monitor = Monitor(header)
    audits = 0
    for event in run.events:
        monitor.feed(event)
        if isinstance(event, ev.Promoted | ev.PrepareLoad | ev.CompleteLoad):
            assert Audit(contract(), monitor.world).broken() == []
            audits += 1
    assert monitor.finding is None
    assert audits == 3
