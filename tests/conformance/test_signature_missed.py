"""Circumstances of what is lost: causes that break one guard of class *missed* differ in kind."""

from __future__ import annotations

import pytest

from kvproof.conformance.monitor.monitor import Monitor
from kvproof.conformance.trace import events as ev
from kvproof.conformance.trace.events import SCHEDULER_RANK as S

from .economy_story import Tale
from .story import FULL, RECURRENT, tokens


def missed(s: Tale) -> list[str]:
    """The signatures of a run in which nothing unsafe happens."""
    monitor = Monitor(s.header)
    for event in s.events:
        assert monitor.feed(event) is None
    return [str(found.signature()) for found in monitor.missed]


@pytest.mark.parametrize(
    ("why", "told"), [("", ""), ("shared", " (shared)"), ("preempted", " (preempted)")]
)
def test_a_flush_in_vain_is_told_by_whose_the_block_is(why: str, told: str) -> None:
    """A store is waited for that reads a block which nobody is about to change."""
    s = Tale()
    (block,) = s.compute_prompt("a#0", tokens(0, 4), first_block=1)
    s.offer(1, "a#0", [block])
    s.idle()
    s.arrive("b#0", tokens(0, 5))
    if why == "shared":
        s.share("b#0", 0, block)
    if why == "preempted":
        s.emit(ev.Preempt(s.step, S, "a#0"))
        s.free("a#0", block, why="preempt")
    s.lease("b#0", 1, 9)
    s.flush(1)
    s.schedule(("b#0", 4, 5, []))
    assert missed(s) == [f"L6 judge_flush{told}"]


@pytest.mark.parametrize(("by", "told"), [("", ""), ("b#0", ", shared"), ("later", ", shared")])
def test_a_chunk_that_was_not_offered_is_told_by_who_shared_it(by: str, told: str) -> None:
    s = Tale()
    (block,) = s.compute_prompt("a#0", tokens(0, 4), first_block=1)
    if by == "b#0":
        s.arrive("b#0", tokens(0, 5))
        s.share("b#0", 0, block)
    s.finish("a#0", block)
    if by == "later":
        s.arrive("b#0", tokens(0, 5))
        s.share("b#0", 0, block)
    s.idle()
    assert missed(s) == [f"E3 judge_chunk (full{told})"]


def test_a_chunk_that_was_not_offered_again_is_told_by_its_refusal() -> None:
    s = Tale()
    keys = s.stored("a#0", tokens(50, 4), first_block=9)
    blocks = s.compute_prompt("b#0", tokens(0, 4), first_block=1)
    s.refuse("b#0", s.key("b#0", 0))
    s.idle()
    s.displace(keys[0], slot=0)
    s.end("b#0", *blocks)
    assert missed(s) == ["E3 judge_chunk (full, refused)"]


def test_a_chunk_that_was_not_offered_is_told_by_a_load_that_reached_further() -> None:
    """The first chunk has left the tier; the second one is loaded behind it."""
    s = Tale(options={"eviction": "arc"})
    keys = s.stored("a#0", tokens(0, 8))
    s.end("a#0", 1, 2)
    s.displace(keys[0], slot=0)
    s.arrive("b#0", tokens(0, 9))
    s.share("b#0", 0, 1)
    s.question("b#0", computed=4)
    s.probe("b#0", keys[1], "hit")
    s.answer("b#0", 4)
    s.lease("b#0", 1, 5)
    s.prepare_load("b#0", keys[1])
    s.issue(3, "load", "b#0", (0, 5, 1, 0))
    s.idle()
    s.carry_out(3)
    s.complete_load(keys[1])
    s.received("b#0")
    s.lease("b#0", 2, 6)
    s.run(("b#0", 8, 9, [999]))
    s.end("b#0", 1, 5, 6)
    assert missed(s) == ["E3 judge_chunk (full, behind a load, shared)"]


def test_a_chunk_that_was_not_offered_is_told_by_a_preemption() -> None:
    s = Tale()
    (block,) = s.compute_prompt("a#0", tokens(0, 4), first_block=1)
    s.emit(ev.Preempt(s.step, S, "a#0"))
    s.free("a#0", block, why="preempt")
    s.idle()
    s.question("a#0")
    s.answer("a#0", 0)
    s.lease("a#0", 0, 2)
    s.run(("a#0", 0, 5, [998]))
    s.end("a#0", 2)
    assert missed(s) == ["E3 judge_chunk (full, put back)"]


def test_a_chunk_that_was_not_offered_is_told_by_a_session_that_went_on() -> None:
    s = Tale()
    (block,) = s.compute_prompt("a#0", tokens(0, 3), first_block=1)
    s.emit(ev.Extended(s.step, S, "a#0", 3, [7]))
    s.known["a#0"][3:] = [7]
    s.hashed.pop("a#0", None)
    s.rehash("a#0")
    s.run(("a#0", 3, 4, [999]))
    s.end("a#0", block)
    assert missed(s) == ["E3 judge_chunk (full, extended)"]


@pytest.mark.parametrize(
    ("options", "told"),
    [({"retention_interval": 0}, "retained"), ({"asynchronous": True}, "ahead")],
)
def test_a_state_that_was_not_offered_is_told_by_the_run_s_settings(
    options: dict[str, bool | int | str | None], told: str
) -> None:
    s = Tale(groups=(RECURRENT,), options=options)
    s.arrive("a#0", tokens(0, 5))
    s.lease("a#0", 0, 1)
    s.run(("a#0", 0, 4, []))
    s.lease("a#0", 1, 2)
    s.run(("a#0", 4, 5, [999]))
    s.end("a#0", 1, 2)
    assert missed(s) == [f"E3 judge_chunk (recurrent, {told})"]


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (FULL, ""),
        (ev.GroupGeometry("window", 4, 4), ""),
        (ev.GroupGeometry("window", 4, 5), " (one more)"),
        (ev.GroupGeometry("chunked", 4, 8), " (local)"),
    ],
)
def test_a_lookup_that_wants_too_much_is_told_by_its_groups(
    other: ev.GroupGeometry, told: str
) -> None:
    """Eight tokens are in the tier for both groups, and the answer is nothing."""
    s = Tale(groups=(FULL, other))
    s.arrive("a#0", tokens(0, 8))
    for group in (0, 1):
        for position in (0, 1):
            s.lease("a#0", position, 1 + 2 * group + position, group)
    s.run(("a#0", 0, 8, [999]))
    keys = [s.key("a#0", index, group) for group in (0, 1) for index in (0, 1)]
    s.accept("a#0", *((key, slot) for slot, key in enumerate(keys)))
    pieces = [(g, 1 + 2 * g + n, 2 * g + n, 0) for g in (0, 1) for n in (0, 1)]
    s.issue(1, "store", "a#0", *pieces)
    s.idle()
    s.carry_out(1, *keys)
    s.arrive("b#0", tokens(0, 9))
    s.question("b#0")
    s.answer("b#0", 0)
    assert missed(s) == [f"E1 judge_answer{told}"]


def test_a_lookup_that_answers_too_little_is_told_by_its_cap() -> None:
    s = Tale()
    s.stored("a#0", tokens(0, 8))
    s.known["b#0"] = tokens(0, 9)
    s.emit(ev.Arrive(s.step, S, "b#0", tokens(0, 9), max_load=8))
    s.rehash("b#0")
    s.question("b#0")
    s.answer("b#0", 4)
    assert missed(s) == ["E1 judge_answer (capped)"]


def test_an_event_that_is_wrong_is_told_by_a_reset() -> None:
    for reset, told in ((False, ""), (True, ", after a reset")):
        s = Tale()
        (key,) = s.stored("a#0", tokens(0, 4))
        s.told(("stored", [key, key]))
        s.end("a#0", 1)
        if reset:
            s.reset()
            s.idle()
        s.drained()
        assert missed(s) == [f"E5 judge_events (full{told})"]
