"""Each installed release, driven for real: exact facts of a scripted run and of single moves.

This file runs itself once inside every release and prints what it saw; the tests read that. A
release that is not installed is skipped.
"""

from __future__ import annotations

import functools
import hashlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from kvproof.conformance.engines.base import (
    Abort,
    Add,
    Drain,
    GroupSetup,
    Move,
    ResetCache,
    Setup,
    Step,
)
from kvproof.conformance.errors import UsageError
from kvproof.conformance.releases import child_environment
from kvproof.conformance.trace import codec
from kvproof.conformance.trace import events as ev

pytestmark = pytest.mark.vllm

RELEASES = (
    # Those that are not installed are skipped.
    *("0.21.0", "0.22.1", "0.23.0", "0.24.0", "0.25.1", "0.26.0", "0.27.1"),
    *("0.28.0", "0.29.0", "0.30.0", "0.31.0", "0.32.0", "0.33.0"),
)
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "chunks": {"blocks_per_chunk": 2},
    "ahead": {"asynchronous": True},
    "pair": {"num_workers": 2},
    "recurrent": {"recurrent": True},
    "recurrent ahead": {"recurrent": True, "asynchronous": True},
}
PROMPT = tuple(range(100, 140))


@functools.cache
def facts(release: str) -> dict[str, Any]:
    """What the release did, as this file saw it from inside."""
    try:
        environment = child_environment(release)
    except UsageError as missing:
        pytest.skip(str(missing))
    ended = subprocess.run(
        [sys.executable, "-P", __file__], env=environment, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    seen: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return seen


@pytest.fixture(params=RELEASES)
def seen(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The facts of one release."""
    return facts(request.param)


# --- the scripted workload -----------------------------------------------------------------------

COUNTED = ("issue", "lease", "share", "preempt", "flush", "scheduled")
COUNTS = dict.fromkeys(RELEASES, (56, 212, 19, 3, 3, 106)) | {
    "0.21.0": (54, 206, 19, 3, 4, 105),
    "0.22.1": (56, 212, 19, 3, 6, 106),
    "0.23.0": (56, 212, 19, 3, 5, 106),
}
FREES = {
    release: {"finish": 135, "preempt": 32, "slide": 58 if release == "0.21.0" else 64}
    for release in RELEASES
}
RECURRENT_FREES = {
    release: {"advance": 121, "finish": 145, "preempt": 38, "slide": 116} for release in RELEASES
} | {
    "0.24.0": {"advance": 121, "finish": 145, "preempt": 26, "slide": 116},
    "0.25.1": {"advance": 121, "finish": 145, "preempt": 26, "slide": 116},
    "0.26.0": {"advance": 121, "finish": 145, "preempt": 26, "slide": 116},
    "0.32.0": {"advance": 120, "finish": 145, "preempt": 38, "slide": 117},
    "0.33.0": {"advance": 120, "finish": 145, "preempt": 38, "slide": 117},
}
WITHOUT_RECURRENT = ("0.21.0", "0.22.1")
KNOWN = {
    # Blocks that a load of this step writes are cleared in it.
    **{(release, "recurrent"): "A-zero" for release in ("0.23.0", "0.24.0", "0.25.1")},
    **{(release, "recurrent ahead"): "A-zero" for release in ("0.23.0", "0.24.0", "0.25.1")},
    # The tier is asked for room for the last chunk of a request that it was told is over.
    ("0.26.0", "ahead"): "P6",
    ("0.26.0", "recurrent ahead"): "P6",
}


def scripted(seen: dict[str, Any], variant: str) -> dict[str, Any]:
    """The facts of one variant of the scripted workload."""
    run: dict[str, Any] | None = seen["scripted"][variant]
    if run is None:
        assert seen["release"] in WITHOUT_RECURRENT
        pytest.skip("the core of this release refuses external tokens for recurrent groups")
    return run


def test_the_scripted_workload_does_exactly_this(seen: dict[str, Any]) -> None:
    plain = seen["scripted"]["plain"]
    assert tuple(plain["counts"].get(kind) for kind in COUNTED) == COUNTS[seen["release"]]
    assert plain["frees"] == FREES[seen["release"]]


def test_with_a_recurrent_group_it_does_exactly_this(seen: dict[str, Any]) -> None:
    assert scripted(seen, "recurrent")["frees"] == RECURRENT_FREES[seen["release"]]


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_scripted_workload_drains_without_a_finding_but_those_known(
    seen: dict[str, Any], variant: str
) -> None:
    run = scripted(seen, variant)
    assert run["raised"] == []
    assert run["residues"] == [0] * 5
    assert run["finding"] == KNOWN.get((seen["release"], variant))


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_history_replays_to_the_same_events(seen: dict[str, Any], variant: str) -> None:
    assert scripted(seen, variant)["repeats"]


def test_every_kind_of_event_comes_up(seen: dict[str, Any]) -> None:
    came = {
        tag
        for variant in ("plain", "recurrent")
        for tag in (seen["scripted"][variant] or {"counts": {}})["counts"]
    }
    tags = {kind.__struct_config__.tag for kind in ev.Event.__subclasses__()}
    expected = {"raised", "stalled", "copy_block", "extended", "filled", "reset_refused"}
    expected |= {"promote", "promoted"}
    # Only a simulated device can tell these.
    expected |= {"raced", "wrong_bytes"}
    if seen["release"] == "0.21.0":
        expected |= {"reset", "tier_reset"}
    if seen["release"] in WITHOUT_RECURRENT:
        expected |= {"tier_request", "zero"}
    if seen["release"] in ("0.31.0", "0.32.0", "0.33.0"):
        expected |= {"touch"}
    assert tags - came == expected


def test_two_workers_do_everything_twice_and_the_scheduler_once(seen: dict[str, Any]) -> None:
    one, two = (seen["scripted"][name]["counts"] for name in ("plain", "pair"))
    for kind in ("launch", "forward", "submit", "done", "report"):
        assert two[kind] == 2 * one[kind]
    for kind in ("scheduled", "issue", "complete_store", "complete_load", "received"):
        assert two[kind] == one[kind]


def test_an_asynchronous_engine_schedules_ahead_of_its_workers(seen: dict[str, Any]) -> None:
    assert seen["scripted"]["plain"]["ahead"] == 0
    assert seen["scripted"]["ahead"]["ahead"] > 0


# --- single facts --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kinds", ["full", "full+window", "full+recurrent", "full+window+recurrent"]
)
def test_a_prompt_of_1000_tokens_comes_back_from_the_tier_up_to_992(
    seen: dict[str, Any], kinds: str
) -> None:
    answer = seen["external"][kinds]
    if seen["release"] in WITHOUT_RECURRENT and "recurrent" in kinds:
        assert answer == "the core of this release refuses external tokens for recurrent groups"
    else:
        assert answer == 992


def test_with_the_tier_unused_every_forward_reads_what_it_should(seen: dict[str, Any]) -> None:
    assert seen["tier_unused"] == {"finding": None, "loads": 0}


def test_an_abort_during_a_load_gives_the_blocks_back_when_the_load_ends(
    seen: dict[str, Any],
) -> None:
    assert seen["abort_during_load"] == ["finish", "done", "report", "received", "free"]


def test_a_reset_reaches_the_connector_where_it_has_one(seen: dict[str, Any]) -> None:
    expected = 0 if seen["release"] == "0.21.0" else 1
    assert seen["scripted"]["plain"]["counts"].get("reset", 0) == expected


def test_moves_that_no_engine_takes_are_not_taken(seen: dict[str, Any]) -> None:
    assert seen["refused"] == [False] * 6


def test_a_second_reset_with_a_store_in_flight_is_a_raise_with_its_place(
    seen: dict[str, Any],
) -> None:
    if seen["release"] == "0.21.0":
        assert seen["double_reset"] is None
        return
    call, exception, where, crashed, later = seen["double_reset"]
    assert (call, exception, crashed, later) == ("reset_cache", "AssertionError", True, False)
    assert where.startswith("vllm/distributed/kv_transfer/kv_connector/v1/offloading/scheduler.py:")


def test_a_running_state_is_leased_again_by_each_step_that_advances_it(
    seen: dict[str, Any],
) -> None:
    """Blocks of 4; 9 tokens are computed, then 10, 11, 12 in place, then 13 in a new block."""
    if seen["release"] in WITHOUT_RECURRENT:
        assert seen["recurrent"] is None
    else:
        assert seen["recurrent"] == [
            ["8:9", "lease 2"],
            ["9:10", "advance", "lease 2"],
            ["10:11", "advance", "lease 2"],
            ["11:12", "advance", "lease 2"],
            ["12:13", "lease 3"],
        ]


# --- inside a release ----------------------------------------------------------------------------


def _look() -> dict[str, Any]:
    from kvproof.conformance.engines.vllm import VllmTarget

    target = VllmTarget()
    return {
        "release": target.name.removeprefix("vllm:"),
        "scripted": {name: _scripted(target, options) for name, options in VARIANTS.items()},
        "external": _external(target),
        "tier_unused": _tier_unused(target),
        "abort_during_load": _abort_during_load(target),
        "refused": _refused(target),
        "double_reset": _double_reset(target),
        "recurrent": _recurrent(target),
    }


def _play(target: Any, setup: Setup, moves: Iterable[Move]) -> tuple[Any, list[Any], list[bool]]:
    events: list[Any] = []
    engine = target.start(setup, events.append)
    taken = [engine.play(move) for move in moves]
    engine.close()
    return engine, events, taken


def _finding(header: ev.Header, events: list[Any]) -> str | None:
    from kvproof.conformance.monitor.monitor import Monitor

    monitor = Monitor(header)
    found = next((f for event in events if (f := monitor.feed(event))), None)
    return found.id if found else None


def _scripted(target: Any, options: dict[str, Any]) -> dict[str, Any] | None:
    from kvproof.conformance.engines.workload import scripted

    setup, moves = scripted(target, **options)
    if target.supports(setup) is not None:
        return None
    engine, events, _ = _play(target, setup, moves)
    _, again, _ = _play(target, setup, moves)
    launched = -1
    ahead = 0
    for event in events:
        if isinstance(event, ev.Launch):
            launched = max(launched, event.step)
        elif isinstance(event, ev.Scheduled):
            ahead += event.step - launched > 1
    digests = {
        hashlib.sha256(codec.dumps(engine.header, run)).hexdigest() for run in (events, again)
    }
    return {
        "counts": Counter(type(event).__struct_config__.tag for event in events),
        "frees": dict(sorted(Counter(e.why for e in events if isinstance(e, ev.Free)).items())),
        "raised": [e.exception for e in events if isinstance(e, ev.Raised)],
        "residues": [sum(e.residue.values()) for e in events if isinstance(e, ev.Drained)],
        "finding": _finding(engine.header, events),
        "repeats": len(digests) == 1,
        "ahead": ahead,
    }


def _external(target: Any) -> dict[str, Any]:
    """Tokens that the connector answers for a known prompt of 1000 tokens, blocks of 16."""
    groups = {
        "full": GroupSetup("full", 16),
        "window": GroupSetup("window", 16, window=32),
        "recurrent": GroupSetup("recurrent", 16),
    }
    add = Add("r", tuple(token % 250 for token in range(1000)), 1)
    answers: dict[str, Any] = {}
    for kinds in ("full", "full+window", "full+recurrent", "full+window+recurrent"):
        setup = Setup(
            groups=tuple(groups[kind] for kind in kinds.split("+")),
            num_gpu_blocks=400,
            num_slots=400,
            max_batch_tokens=1024,
        )
        reason = target.supports(setup)
        if reason is not None:
            answers[kinds] = reason
            continue
        moves: list[Move] = [add, Drain(), ResetCache(connector=False), add, Step(), Drain()]
        _, events, _ = _play(target, setup, moves)
        answers[kinds] = [e.tokens for e in events if isinstance(e, ev.Answer)][-1]
    return answers


def _tier_unused(target: Any) -> dict[str, Any]:
    """Copies never end, so nothing is ever ready to load; the GPU prefix cache does all."""
    setup = Setup(
        groups=(GroupSetup("full", 4), GroupSetup("window", 4, window=6)), num_gpu_blocks=30
    )
    moves: list[Move] = [
        Add("a", PROMPT, 9),
        *[Step("none")] * 4,
        Add("b", PROMPT[:21], 30),
        Add("c", PROMPT[5:30], 30),
        *[Step("none")] * 50,
    ]
    engine, events, _ = _play(target, setup, moves)
    loads = sum(isinstance(e, ev.Issue) and e.kind == "load" for e in events)
    return {"finding": _finding(engine.header, events), "loads": loads}


def _abort_during_load(target: Any) -> list[str]:
    setup = Setup(groups=(GroupSetup("full", 4),))
    before: list[Move] = [
        Add("a", PROMPT, 1),
        Drain(),
        ResetCache(connector=False),
        Add("a", PROMPT, 1),
        Step("none"),
        Abort("a"),
        Step("none"),
        Drain(),
    ]
    _, events, _ = _play(target, setup, before)
    start = next(n for n, e in enumerate(events) if isinstance(e, ev.Finish) and e.req == "a#1")
    kinds = (ev.Finish, ev.Done, ev.Report, ev.Received, ev.Free)
    tags = [str(type(e).__struct_config__.tag) for e in events[start:] if isinstance(e, kinds)]
    return list(dict.fromkeys(tags))


def _refused(target: Any) -> list[bool]:
    """An idle step, a stranger's abort, an endless request, an empty one, a twin, a busy reset."""
    setup = Setup(groups=(GroupSetup("full", 4),), num_gpu_blocks=20)
    moves: list[Move] = [
        Step(),
        Abort("nobody"),
        Add("long", PROMPT * 3, 1),
        Add("empty", (), 1),
        Add("a", PROMPT, 4),
        Add("a", PROMPT, 4),
        Step(),
        ResetCache(connector=False),
    ]
    _, _, taken = _play(target, setup, moves)
    return [taken[n] for n in (0, 1, 2, 3, 5, 7)]


def _double_reset(target: Any) -> list[Any] | None:
    setup = Setup(groups=(GroupSetup("full", 4),))
    moves: list[Move] = [Add("a", PROMPT, 4), Step("none"), ResetCache(), ResetCache(), Step()]
    engine, events, taken = _play(target, setup, moves)
    raised = [e for e in events if isinstance(e, ev.Raised)]
    if not raised:
        return None
    (event,) = raised
    return [event.call, event.exception, event.where, engine.crashed, taken[-1]]


def _recurrent(target: Any) -> list[list[str]] | None:
    setup = Setup(groups=(GroupSetup("full", 4), GroupSetup("recurrent", 4)), prompt_only=True)
    if target.supports(setup) is not None:
        return None
    _, events, _ = _play(target, setup, [Add("a", PROMPT[:9], 5), *[Step()] * 7])
    told: list[list[str]] = []
    window: list[str] = []
    recurrent: set[int] = set()
    for event in events:
        if isinstance(event, ev.Lease) and event.group == 1:
            recurrent.add(event.lease)
            window.append(f"lease {event.position}")
        elif isinstance(event, ev.Free) and event.lease in recurrent and event.why == "advance":
            window.append("advance")
        elif isinstance(event, ev.Scheduled):
            told += [[f"{c.start}:{c.end}", *window] for c in event.computing]
            window = []
    return [step for step in told if step[0] != "0:8"]


if __name__ == "__main__":
    print(json.dumps(_look()))
