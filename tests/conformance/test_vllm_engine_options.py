"""Each option of a setup and of a request changes what a real release does, and this is how.

This file runs itself once inside every release and prints what it saw; the tests read that. A
release that is not installed is skipped.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kvproof.conformance.engines.base import (
    Add,
    Drain,
    Extend,
    GroupSetup,
    Move,
    ResetCache,
    Setup,
    Step,
    Unsupported,
)
from kvproof.conformance.errors import UsageError
from kvproof.conformance.releases import child_environment
from kvproof.conformance.trace import events as ev

pytestmark = pytest.mark.vllm

PROMPT = tuple(range(100, 141))
FULL = Setup(groups=(GroupSetup("full", 4),))
HYBRID = Setup(groups=(GroupSetup("full", 4), GroupSetup("window", 4, window=8)))
FORGET = ResetCache(connector=False)
FAILING = f"{Path(__file__).with_name('failing_connector.py')}:FailingConnector"


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


def refused(text: str) -> dict[str, str]:
    return {"refused": text}


# --- what clients ask for --------------------------------------------------------------------


@pytest.mark.parametrize("release", ["0.31.0", "0.32.0", "0.33.0"])
def test_a_cap_on_loads_is_kept_and_0_is_a_cap(release: str) -> None:
    """40 tokens of the prompt lie in the tier; blocks of 4."""
    assert facts(release)["max_load"] == {"none": 40, "0": 0, "9": 8, "40": 40}


@pytest.mark.parametrize("release", ["0.21.0", "0.26.0"])
def test_a_cap_on_loads_is_not_taken_where_it_does_not_exist(release: str) -> None:
    assert facts(release)["max_load"] == {"none": 40, "0": None, "9": None, "40": None}


@pytest.mark.parametrize("release", ["0.26.0", "0.32.0", "0.33.0"])
def test_a_cap_on_offers_is_kept_and_0_is_a_cap(release: str) -> None:
    assert facts(release)["max_offload"] == {"none": 40, "0": 0, "9": 8, "40": 40}


def test_a_cap_on_offers_is_not_taken_where_it_does_not_exist() -> None:
    assert facts("0.21.0")["max_offload"] == {"none": 40, "0": None, "9": None, "40": None}


def test_caps_and_skipping_are_told_by_the_arrival() -> None:
    assert facts("0.32.0")["arrival"] == [9, 0, True]


@pytest.mark.parametrize(("release", "hit"), [("0.21.0", 40), ("0.26.0", 0), ("0.32.0", 0)])
def test_skipping_is_honoured_from_the_release_on_that_knows_it(release: str, hit: int) -> None:
    assert facts(release)["skip_reading"] == hit


@pytest.mark.parametrize("release", ["0.21.0", "0.26.0", "0.32.0", "0.33.0"])
def test_a_stop_token_comes_unforeseen_where_a_limit_does_not(release: str) -> None:
    """Two tokens are generated either way; scheduling ahead, a third was begun before the stop."""
    assert facts(release)["stop"] == {
        "limit": [["length_capped"], 42],
        "stop": [["stopped"], 42],
        "limit ahead": [["length_capped"], 42],
        "stop ahead": [["stopped"], 43],
    }


@pytest.mark.parametrize(
    ("release", "finding"),
    [
        # The hash of a block that a dropped token was in names another prefix now.
        ("0.21.0", ["S12", "scheduler"]),
        ("0.26.0", ["S12", "scheduler"]),
        # The connector takes the session for a new request and appends all its blocks once more.
        ("0.32.0", ["S4", "scheduler"]),
        ("0.33.0", None),
    ],
)
@pytest.mark.parametrize("way", ["session", "session ahead"])
def test_a_session_keeps_what_is_computed_and_goes_on_with_the_input(
    release: str, way: str, finding: list[str] | None
) -> None:
    """41 tokens and 3: the last one sampled is not computed, so 43 are kept; then 5 and 3 more."""
    assert facts(release)[way] == {
        "extended": [[43, 5], [50, 2]],
        "finding": finding,
        "residue": 0,
    }


@pytest.mark.parametrize(("release", "first"), [("0.21.0", []), ("0.32.0", [10])])
def test_a_session_that_drops_a_token_has_its_block_hashed_again(
    release: str, first: list[int]
) -> None:
    """44 tokens had 11 hashes; 43 are kept. Early cores keep the hash of what was dropped."""
    assert facts(release)["rehashed"] == first


def test_a_session_is_not_taken_together_with_a_stop_token_scheduling_ahead() -> None:
    assert facts("0.32.0")["session with a stop"] == {"synchronous": True, "ahead": False}


# --- options of the setup ------------------------------------------------------------------------


def test_a_threshold_stores_what_was_asked_for_often_enough() -> None:
    """Hits of three equal prompts; from 2 on, the first ones only count how often it is asked."""
    assert facts("0.32.0")["store_threshold"] == {"0": [0, 40, 40], "2": [0, 0, 40]}


def test_the_two_eviction_policies_evict_differently() -> None:
    """Two slots: a is stored and loaded again, then b and c are stored."""
    assert facts("0.32.0")["eviction"] == {"lru": ["a"], "arc": ["b"]}


def test_retention_keeps_window_blocks_at_its_multiples() -> None:
    """Chunks of 4; windows of 8; an interval must be a multiple of a chunk."""
    chunks = facts("0.32.0")["retention"]
    assert [chunks[interval] for interval in ("None", "0", "16")] == [10, 2, 6]
    assert chunks["6"]["refused"].startswith("this release refuses the setup: ")
    missing = refused("sparse retention of the prefix cache does not exist here")
    assert facts("0.21.0")["retention"]["16"] == missing


def test_a_draft_that_only_pads_a_step_is_no_token() -> None:
    assert facts("0.32.0")["padded"] == [[[0, 1]], None]


def test_a_drafters_last_block_is_not_counted_on() -> None:
    """The window group reaches 40; a drafter's last block is dropped."""
    assert facts("0.32.0")["draft"] == {"plain": 40, "draft": 36}
    assert facts("0.21.0")["draft"]["draft"] == refused(
        "the connector of this release knows no draft groups"
    )


def test_chunks_that_do_not_divide_each_other_are_loaded_up_to_a_common_boundary() -> None:
    """Chunks of 8 and of 12 tokens; windows of 7."""
    assert facts("0.32.0")["uneven"] == 36


def test_synchronous_loads_end_before_their_steps_forward() -> None:
    assert facts("0.33.0")["sync"] == {
        "0": [[40, True], ["submit", "done", "received", "forward"]],
        "163840": [[40, False], ["submit", "done", "wait", "forward"]],
    }
    assert facts("0.32.0")["sync"]["163840"] == refused("synchronous loads do not exist here")


# --- failures ------------------------------------------------------------------------------------

FAILURES = ("loads", "stores", "all")


@pytest.mark.parametrize("release", ["0.21.0", "0.26.0", "0.32.0", "0.33.0"])
def test_no_release_has_a_way_to_report_a_failed_copy(release: str) -> None:
    assert facts(release)["failures of the stock worker"] == [False] * len(FAILURES)


@pytest.mark.parametrize("release", ["0.32.0", "0.33.0"])
def test_a_failed_load_is_told_to_the_core_and_the_request_computes(release: str) -> None:
    assert facts(release)["failed load"] == {
        "recompute": {
            "events": [["done", False], ["report", False], ["received", False]],
            "starts": [0],
            "ends": ["length_capped"],
        },
        "fail": {
            "events": [["done", False], ["report", False], ["received", False]],
            "starts": [],
            "ends": ["error"],
        },
    }


def test_only_the_copies_that_are_named_fail() -> None:
    assert facts("0.32.0")["who fails"] == {
        "loads": [["store", True], ["load", False]],
        "stores": [["store", False], ["load", True]],
        "all": [["store", False], ["load", False]],
    }


def test_a_scheduler_that_takes_a_failed_store_for_a_good_one_is_convicted() -> None:
    assert facts("0.32.0")["failed store"] == ["S6", "scheduler"]


# --- inside a release ----------------------------------------------------------------------------


def _look() -> dict[str, Any]:
    from kvproof.conformance.engines.vllm import VllmTarget

    target = VllmTarget()
    seen = {
        "max_load": _loaded_with(target, "max_load"),
        "max_offload": _loaded_with(target, "max_offload", first=True),
        "arrival": _arrival(target),
        "skip_reading": _hits(target, FULL, [*_stored(), Add("b", PROMPT, 1, skip_reading=True)])[
            -1
        ],
        "stop": _stop(target),
        "session": _session(target, FULL),
        "session ahead": _session(target, _with(FULL, asynchronous=True)),
        "rehashed": _rehashed(target),
        "session with a stop": _session_with_a_stop(target),
        "store_threshold": _threshold(target),
        "eviction": _eviction(target),
        "retention": {
            str(n): _tried(functools.partial(_retained, target, n)) for n in (None, 0, 16, 6)
        },
        "draft": _draft(target),
        "padded": _tried(lambda: _padded(target)),
        "uneven": _tried(lambda: _uneven(target)),
        "sync": {str(n): _tried(functools.partial(_sync, target, n)) for n in (0, 163840)},
        "failures of the stock worker": _stock_failures(target),
    }
    if hasattr(_base(), "KVConnectorTransferResults"):
        forked = VllmTarget(FAILING)
        seen["failed load"] = {p: _failed_load(forked, p) for p in ("recompute", "fail")}
        seen["who fails"] = {fail: _who_fails(forked, fail) for fail in FAILURES}
        seen["failed store"] = _failed_store(forked)
    return seen


def _base() -> Any:
    import importlib

    return importlib.import_module("vllm.distributed.kv_transfer.kv_connector.v1.base")


def _with(setup: Setup, **options: Any) -> Setup:
    return msgspec.structs.replace(setup, **options)


def _stored(req: str = "a", **asked: Any) -> list[Move]:
    """The prompt is in the tier, and not on the GPU."""
    return [Add(req, PROMPT, 1, **asked), Drain(), FORGET]


def _play(target: Any, setup: Setup, moves: Iterable[Move]) -> tuple[Any, list[Any], list[bool]]:
    reason = target.supports(setup)
    if reason is not None:
        raise Unsupported(reason)
    events: list[Any] = []
    engine = target.start(setup, events.append)
    taken = [engine.play(move) for move in moves]
    engine.close()
    assert not [event for event in events if isinstance(event, ev.Raised | ev.Stalled)]
    return engine, events, taken


def _tried(look: Any) -> Any:
    try:
        return look()
    except Unsupported as reason:
        return refused(str(reason))


def _finding(header: ev.Header, events: list[Any]) -> list[str] | None:
    from kvproof.conformance.monitor.monitor import Monitor

    monitor = Monitor(header)
    found = next((f for event in events if (f := monitor.feed(event))), None)
    return [found.id, found.culprit] if found else None


def _hits(target: Any, setup: Setup, moves: list[Move]) -> list[int | None]:
    _, events, _ = _play(target, setup, [*moves, Step(), Drain()])
    return [event.tokens for event in events if isinstance(event, ev.Answer)]


def _loaded_with(target: Any, cap: str, *, first: bool = False) -> dict[str, int | None]:
    """Tokens that are loaded, by cap; on the first request (which stores) or on the second."""
    seen: dict[str, int | None] = {}
    for name, value in (("none", None), ("0", 0), ("9", 9), ("40", 40)):
        capped: dict[str, Any] = {cap: value}
        plain: dict[str, Any] = {}
        moves: list[Move] = [
            *_stored(**(capped if first else plain)),
            Add("b", PROMPT, 1, **(plain if first else capped)),
            Step(),
            Drain(),
        ]
        _, events, taken = _play(target, FULL, moves)
        answers = [event.tokens for event in events if isinstance(event, ev.Answer)]
        seen[name] = answers[-1] if taken[0 if first else 3] else None
    return seen


def _arrival(target: Any) -> list[Any] | None:
    add = Add("a", PROMPT, 1, max_load=9, max_offload=0, skip_reading=True)
    _, events, taken = _play(target, FULL, [add])
    if not taken[0]:
        return None
    (arrival,) = (event for event in events if isinstance(event, ev.Arrive))
    return [arrival.max_load, arrival.max_offload, arrival.skip_reading]


def _stop(target: Any) -> dict[str, Any]:
    """How the request ended, and up to which token it was computed."""
    seen = {}
    for name, add in (
        ("limit", Add("a", PROMPT, 2)),
        ("stop", Add("a", PROMPT, 9, stop_after=2)),
    ):
        for mode, ahead in (("", False), (" ahead", True)):
            _, events, _ = _play(target, _with(FULL, asynchronous=ahead), [add, Drain()])
            ends = [event.status for event in events if isinstance(event, ev.Finish)]
            reached = [
                c.end for event in events if isinstance(event, ev.Forward) for c in event.computing
            ]
            seen[name + mode] = [ends, max(reached)]
    return seen


def _session(target: Any, setup: Setup) -> dict[str, Any]:
    moves: list[Move] = [
        Add("a", PROMPT, 3, session=True),
        *[Step()] * 6,
        Extend("a", (1, 2, 3, 4, 5), 3),
        Step(),
        # Taken up when the session stops, and closed by the drain.
        Extend("a", (6, 7), 3),
        Drain(),
    ]
    engine, events, _ = _play(target, setup, moves)
    return {
        "extended": [[e.kept, len(e.tokens)] for e in events if isinstance(e, ev.Extended)],
        "finding": _finding(engine.header, events),
        "residue": sum(sum(e.residue.values()) for e in events if isinstance(e, ev.Drained)),
    }


def _rehashed(target: Any) -> list[int]:
    """First hashes that were told again or anew once a session went on within its last block."""
    moves: list[Move] = [Add("a", PROMPT, 3, session=True), *[Step()] * 4, Extend("a", (1,), 1)]
    _, events, _ = _play(target, FULL, moves)
    at = next(n for n, event in enumerate(events) if isinstance(event, ev.Extended))
    return [event.first for event in events[at:] if isinstance(event, ev.Hashed)]


def _session_with_a_stop(target: Any) -> dict[str, bool]:
    add = Add("a", PROMPT, 9, stop_after=2, session=True)
    return {
        name: _play(target, _with(FULL, asynchronous=ahead), [add])[2][0]
        for name, ahead in (("synchronous", False), ("ahead", True))
    }


def _threshold(target: Any) -> dict[str, list[int | None]]:
    moves = [*_stored("a"), *_stored("b"), Add("c", PROMPT, 1)]
    return {
        str(times): _hits(target, _with(FULL, store_threshold=times), moves) for times in (0, 2)
    }


def _eviction(target: Any) -> dict[str, list[str]]:
    """Whose chunk goes."""
    seen: dict[str, list[str]] = {}
    prompts = {"a": (1, 1, 1, 1, 9), "b": (2, 2, 2, 2, 9), "c": (3, 3, 3, 3, 9)}
    moves: list[Move] = []
    for req in ("a", "a", "b", "c"):
        moves += [Add(req, prompts[req], 1), Drain(), FORGET]
    for policy in ("lru", "arc"):
        _, events, _ = _play(target, _with(FULL, eviction=policy, num_slots=2), moves)
        owner: dict[str, str] = {}
        seen[policy] = []
        for event in events:
            if isinstance(event, ev.PrepareStore):
                owner |= {key: event.req.split("#")[0] for key, _ in event.accepted}
                seen[policy] += [owner[key] for key in event.evicted]
    return seen


def _retained(target: Any, interval: int | None) -> int:
    """Chunks of the window group that one prompt leaves in the tier."""
    setup = _with(HYBRID, retention_interval=interval)
    _, events, _ = _play(target, setup, [Add("a", PROMPT, 1), Drain()])
    stored = [key for e in events if isinstance(e, ev.PrepareStore) for key, _ in e.accepted]
    return sum(key.endswith(":1") for key in stored)


def _draft(target: Any) -> dict[str, Any]:
    full, window = HYBRID.groups
    drafted = _with(HYBRID, groups=(full, msgspec.structs.replace(window, draft=True)))
    moves = [*_stored(), Add("b", PROMPT, 1)]
    return {
        name: _tried(lambda setup=setup: _hits(target, setup, moves)[-1])
        for name, setup in (("plain", HYBRID), ("draft", drafted))
    }


def _padded(target: Any) -> list[Any]:
    """What is computed of a one-token prompt beside a running request, and what the monitor says.

    The core schedules a draft for it that nobody has drafted.
    """
    setup = _with(FULL, groups=tuple(msgspec.structs.replace(g, draft=True) for g in FULL.groups))
    moves: list[Move] = [Add("a", PROMPT[:5], 2), Step(), Add("b", PROMPT[:1], 1), Drain()]
    engine, events, _ = _play(target, setup, moves)
    computed = [c for e in events if isinstance(e, ev.Scheduled) for c in e.computing]
    spans = [[c.start, c.end] for c in computed if c.req == "b#0"]
    return [spans, _finding(engine.header, events)]


def _uneven(target: Any) -> int | None:
    groups = (GroupSetup("full", 4), GroupSetup("window", 6, window=7))
    setup = _with(FULL, groups=groups, blocks_per_chunk=2)
    return _hits(target, setup, [*_stored(), Add("b", PROMPT, 1)])[-1]


def _sync(target: Any, budget: int) -> list[Any]:
    """The answer to the second request, and what happened to its load up to its first forward."""
    setup = _with(FULL, sync_load_bytes=budget)
    _, events, _ = _play(target, setup, [*_stored(), Add("b", PROMPT, 1), Step(), Drain()])
    answer = [e for e in events if isinstance(e, ev.Answer)][-1]
    kinds = (ev.Submit, ev.Done, ev.Wait, ev.Received, ev.Forward)
    rest = events[events.index(answer) :]
    tags = [str(type(e).__struct_config__.tag) for e in rest if isinstance(e, kinds)]
    return [[answer.tokens, answer.asynchronous], tags[: tags.index("forward") + 1]]


def _stock_failures(target: Any) -> list[bool]:
    _, _, taken = _play(
        target, FULL, [Add("a", PROMPT, 4), Step(), *[Step("all", fail) for fail in FAILURES]]
    )
    return taken[2:]


def _failed_load(target: Any, policy: str) -> dict[str, Any]:
    setup = _with(FULL, load_failure=policy)
    # Nothing is left to load when the request is looked up again.
    moves = [*_stored(), Add("b", PROMPT, 1), Step("all", "loads"), ResetCache(), Drain()]
    _, events, _ = _play(target, setup, moves)
    rest = events[next(n for n, e in enumerate(events) if isinstance(e, ev.Issue) and e.job) :]
    load = next(e.job for e in rest if isinstance(e, ev.Issue))
    told = [
        [str(type(e).__struct_config__.tag), e.ok]
        for e in rest
        if isinstance(e, ev.Received) or (isinstance(e, ev.Done | ev.Report) and e.job == load)
    ]
    return {
        "events": told,
        "starts": [c.start for e in rest if isinstance(e, ev.Forward) for c in e.computing],
        "ends": [e.status for e in rest if isinstance(e, ev.Finish)],
    }


def _who_fails(target: Any, fail: str) -> list[list[Any]]:
    """Kinds of the copies of a step in which a store and a load end, and whether they end well."""
    other = tuple(range(200, 220))
    moves = [
        *_stored(),
        Add("c", other, 9),
        Step("none"),
        Add("b", PROMPT, 1),
        Step("none"),
        Step("none"),
        Step("all", fail),
    ]
    _, events, _ = _play(target, FULL, moves)
    kinds = {e.job: e.kind for e in events if isinstance(e, ev.Issue)}
    last = max(e.step for e in events if isinstance(e, ev.Done))
    return [[kinds[e.job], e.ok] for e in events if isinstance(e, ev.Done) and e.step == last]


def _failed_store(target: Any) -> list[str] | None:
    moves: list[Move] = [
        Add("a", PROMPT, 3),
        Step("none"),
        Step("none"),
        Step("all", "stores"),
        Drain(),
    ]
    engine, events, _ = _play(target, FULL, moves)
    return _finding(engine.header, events)


if __name__ == "__main__":
    print(json.dumps(_look()))
