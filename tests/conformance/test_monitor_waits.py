"""Lookups that are put off, flushes, failures, limits: broken promises and their kept twins."""

from __future__ import annotations

import pytest

from kvproof.conformance.monitor.lookup_readers import MOST_POLLS
from kvproof.conformance.monitor.monitor import Monitor
from kvproof.conformance.trace import events as ev
from kvproof.conformance.trace.events import SCHEDULER_RANK as S
from tests.conformance.story import FULL, RECURRENT, WINDOW, Story, tokens


def missed(s: Story) -> list[tuple[str, int]]:
    """(id, event index) of all that is merely missed, of a story that breaks nothing else."""
    monitor = Monitor(s.header)
    assert [found for event in s.events if (found := monitor.feed(event))] == []
    return [(found.id, found.index) for found in monitor.missed]


def being_stored() -> Story:
    """Request a computed two chunks; their store is in flight, and b has the same prompt."""
    s = Story()
    blocks = s.compute_prompt("a#0", tokens(0, 8), 1)
    s.offer(1, "a#0", blocks)
    s.idle()
    s.arrive("b#0", tokens(0, 9))
    return s


def test_l1_waiting_for_a_store_is_fine_until_it_has_ended() -> None:
    s = being_stored()
    for _ in range(2 * MOST_POLLS):
        s.question("b#0")
        s.probe("b#0", s.key("b#0", 0), "pending")
        s.answer("b#0", None)
        s.idle()
    assert s.verdict() is None
    s.carry_out(1, *(s.key("a#0", i) for i in range(2)))
    s.ask("b#0", *(s.key("b#0", i) for i in range(2)))
    assert s.verdict() is None


def test_l1_a_tier_that_never_knows_is_asked_a_bounded_number_of_times() -> None:
    s = Story()
    s.arrive("a#0", tokens(0, 9))
    for _ in range(1 + MOST_POLLS):
        s.question("a#0")
        s.probe("a#0", s.key("a#0", 0), "retry")
        s.answer("a#0", None)
        s.idle()
    assert s.verdict() is None
    s.question("a#0")
    s.probe("a#0", s.key("a#0", 0), "retry")
    s.answer("a#0", None)
    assert s.verdict() == ("L1", s.last())


def test_l2_the_engine_stops_while_a_store_is_in_flight() -> None:
    s = being_stored()
    s.finish("a#0", 1, 2)
    s.finish("b#0")
    s.drained()
    assert s.verdict() == ("L2", s.last())


def test_l3_nothing_is_stored_and_nothing_moves_and_still_it_waits() -> None:
    s = Story()
    s.stored("a#0", tokens(0, 8))
    s.arrive("b#0", tokens(0, 9))
    s.question("b#0")
    s.answer("b#0", None)
    assert s.verdict() == ("L3", s.last())
    finding = s.finding()
    assert finding is not None
    assert finding.facts == {
        "r": "b#0",
        "most": "128",
        "now_best": "8",
        "could_be": "8",
        "moving": "0",
    }


def test_l3_a_gap_makes_waiting_useless_for_a_window() -> None:
    """Ready, ready, absent, being stored: two chunks serve a window of two, the last never will."""
    s = Story(groups=(WINDOW,))
    s.arrive("a#0", tokens(0, 16))
    for position in range(4):
        s.lease("a#0", position, 1 + position)
    s.run(("a#0", 0, 16, [99]))
    keys = [s.key("a#0", i) for i in range(4)]
    s.accept("a#0", (keys[0], 0), (keys[1], 1))
    s.issue(1, "store", "a#0", (0, 1, 0, 0), (0, 2, 1, 0))
    s.idle()
    s.carry_out(1, keys[0], keys[1])
    s.accept("a#0", (keys[3], 3))
    s.issue(2, "store", "a#0", (0, 4, 3, 0))
    s.idle()
    s.arrive("b#0", tokens(0, 17))
    s.question("b#0")
    s.probe("b#0", keys[3], "pending")
    s.answer("b#0", None)
    assert s.verdict() == ("L3", s.last())
    # With the third chunk on its way too, waiting pays.
    s.events = s.events[:-3]
    s.accept("a#0", (keys[2], 2))
    s.issue(3, "store", "a#0", (0, 3, 2, 0))
    s.question("b#0")
    s.probe("b#0", keys[3], "pending")
    s.answer("b#0", None)
    assert s.verdict() is None


def test_l3_a_chunk_that_another_request_is_loading_may_be_waited_for() -> None:
    s = Story()
    keys = s.stored("a#0", tokens(0, 8))
    s.finish("a#0", 1, 2)
    s.arrive("b#0", tokens(0, 9))
    s.ask("b#0", *keys)
    s.lease("b#0", 0, 3)
    s.lease("b#0", 1, 4)
    s.prepare_load("b#0", *keys)
    s.issue(2, "load", "b#0", (0, 3, 0, 0), (0, 4, 1, 0))
    s.idle()
    s.arrive("c#0", tokens(0, 9))
    s.question("c#0")
    s.answer("c#0", None)
    assert s.verdict() is None


def test_l3_1_waiting_for_a_store_of_its_own_is_missed_not_unsafe() -> None:
    s = being_stored()
    s.emit(ev.Preempt(s.step, S, "a#0"))
    s.free("a#0", 1, 2, why="preempt")
    s.question("a#0")
    s.answer("a#0", None)
    assert missed(s) == []
    # Both chunks are being stored: waiting pays. Once they are there and only another store of
    # its own is in flight, it does not.
    s = Story()
    s.stored("a#0", tokens(0, 8))
    s.lease("a#0", 2, 3)
    s.run(("a#0", 8, 9, [9]))
    s.issue(2, "store", "a#0")
    s.idle()
    s.emit(ev.Preempt(s.step, S, "a#0"))
    s.free("a#0", 1, 2, 3, why="preempt")
    s.question("a#0")
    s.answer("a#0", None)
    assert missed(s) == [("L3.1", s.last())]


def test_l4_a_key_that_no_job_makes_is_not_worth_waiting_for() -> None:
    s = Story()
    s.compute_prompt("a#0", tokens(0, 8), 1)
    s.accept("a#0", (s.key("a#0", 0), 0))
    s.idle()
    s.arrive("b#0", tokens(0, 9))
    s.question("b#0")
    s.probe("b#0", s.key("b#0", 0), "pending")
    assert s.verdict() == ("L4", s.last())


def failed_load() -> Story:
    """Request b's load of a's two chunks failed; b is told so and computes."""
    s = Story()
    keys = s.stored("a#0", tokens(0, 8))
    s.finish("a#0", 1, 2)
    s.arrive("b#0", tokens(0, 9))
    s.ask("b#0", *keys)
    for position in range(2):
        s.lease("b#0", position, 3 + position)
    s.prepare_load("b#0", *keys)
    s.issue(2, "load", "b#0", (0, 3, 0, 0), (0, 4, 1, 0))
    s.idle()
    s.submit(2)
    s.done(2, ok=False)
    s.report(2, ok=False)
    s.complete_load(*keys)
    s.received("b#0", ok=False)
    return s


def test_l5_a_load_that_failed_is_not_offered_again() -> None:
    s = failed_load()
    assert s.verdict() is None
    keys = [s.key("b#0", i) for i in range(2)]
    s.ask("b#0", *keys)
    s.prepare_load("b#0", *keys)
    assert s.verdict() == ("L5", s.last())


def test_p14_a_failed_load_is_computed_instead() -> None:
    s = failed_load()
    s.lease("b#0", 2, 5)
    s.run(("b#0", 0, 9, [77]))
    s.finish("b#0", 3, 4, 5)
    s.drained()
    assert s.verdict() is None


def test_p14_a_load_that_ended_well_is_called_failed() -> None:
    s = failed_load()
    where = next(i for i, e in enumerate(s.events) if isinstance(e, ev.Done) and not e.ok)
    s.events[where] = ev.Done(s.events[where].step, 0, 2, True)
    assert s.verdict() == ("P14", s.last())


@pytest.mark.parametrize("ok", [True, False])
def test_p14_only_a_failed_store_drops_its_keys(ok: bool) -> None:
    s = being_stored()
    s.submit(1)
    s.done(1, ok=ok)
    s.report(1, ok=ok)
    s.complete_store(*(s.key("a#0", i) for i in range(2)), ok=False)
    assert s.verdict() == (("P14", s.last()) if ok else None)


def test_l6_a_flush_of_blocks_that_nobody_takes_is_missed() -> None:
    s = being_stored()
    s.flush(1)
    s.lease("b#0", 0, 9)
    s.schedule(("b#0", 0, 4, []))
    assert missed(s) == [("L6", s.last())]


def test_l6_a_flush_that_delays_no_forward_is_none() -> None:
    """Early releases flush everything when the last request has gone: nobody waits for it."""
    s = being_stored()
    s.flush(1)
    s.schedule()
    assert missed(s) == []


def test_l6_a_flush_for_a_block_that_is_handed_out_again() -> None:
    s = being_stored()
    s.finish("a#0", 1, 2)
    s.lease("b#0", 0, 2)
    s.flush(1)
    s.schedule(("b#0", 0, 4, []))
    assert missed(s) == []


def test_s9_a_hit_that_was_clipped_after_it_was_aligned() -> None:
    """The state after eight tokens is loaded, and the engine is told of seven."""
    s = Story(groups=(FULL, RECURRENT))
    s.arrive("a#0", tokens(0, 8))
    for position in range(2):
        s.lease("a#0", position, 1 + position)
    s.lease("a#0", 1, 9, group=1)
    s.run(("a#0", 0, 8, [99]))
    full = [s.key("a#0", i) for i in range(2)]
    state = s.key("a#0", 1, group=1)
    s.accept("a#0", (full[0], 0), (full[1], 1), (state, 2))
    s.issue(1, "store", "a#0", (0, 1, 0, 0), (0, 2, 1, 0), (1, 9, 2, 0))
    s.idle()
    s.carry_out(1, *full, state)
    s.arrive("b#0", tokens(0, 12))
    s.ask("b#0", *full, state)
    for position in range(2):
        s.lease("b#0", position, 3 + position)
    s.lease("b#0", 1, 10, group=1)
    s.emit(ev.Allocated(s.step, S, "b#0", 8))
    told = s.last()
    s.prepare_load("b#0", *full, state)
    s.issue(2, "load", "b#0", (0, 3, 0, 0), (0, 4, 1, 0), (1, 10, 2, 0))
    assert s.verdict() is None
    s.events[told] = ev.Allocated(s.step, S, "b#0", 7)
    assert s.verdict() == ("S9", s.last())


def test_p2_a_flushed_job_is_not_copied_twice() -> None:
    s = being_stored()
    s.flush(1)
    s.idle()
    s.submit(1)
    s.done(1)
    s.wait(1)
    assert s.verdict() is None
    s.submit(1)
    assert s.verdict() == ("P2", s.last())


def test_p2_a_flush_of_a_job_that_nobody_knows_changes_nothing() -> None:
    s = being_stored()
    s.flush(7)
    s.idle()
    s.wait(7)
    s.carry_out(1, *(s.key("a#0", i) for i in range(2)))
    assert s.verdict() is None


def offer(s: Story, req: str, *indices: int) -> None:
    """Offer chunks of group 0; the tier takes none."""
    keys = [s.key(req, i) for i in indices]
    s.emit(ev.PrepareStore(s.step, S, req, keys, False, [], []))


def test_p7_a_request_that_never_ran_offers_what_it_has_no_blocks_for() -> None:
    s = Story()
    s.arrive("a#0", tokens(0, 8))
    offer(s, "a#0", 0)
    assert s.verdict() == ("P7", s.last())


def test_p7_what_this_step_computes_may_be_offered_and_no_more() -> None:
    for end, verdict in ((8, None), (7, "P7")):
        s = Story()
        s.arrive("a#0", tokens(0, 8))
        for position in range(2):
            s.lease("a#0", position, 1 + position)
        offer(s, "a#0", 0, 1)
        s.schedule(("a#0", 0, end, [99] if end == 8 else []))
        assert s.verdict() == ((verdict, s.last()) if verdict else None)


def test_p10_a_reset_is_refused() -> None:
    s = Story()
    s.reset()
    assert s.verdict() is None
    s.emit(ev.ResetRefused(s.step, S))
    assert s.verdict() == ("P10", s.last())


@pytest.mark.parametrize(
    ("limits", "id"),
    [
        ({}, None),
        ({"max_load": 8}, None),
        ({"max_load": 4}, "P15"),
        ({"max_load": 0}, "P15"),
        ({"skip_reading": True}, "P15"),
    ],
)
def test_p15_caps_bound_what_is_answered(limits: dict[str, int], id: str | None) -> None:
    s = Story()
    keys = s.stored("a#0", tokens(0, 8))
    s.known["b#0"] = tokens(0, 9)
    s.emit(ev.Arrive(s.step, S, "b#0", tokens(0, 9), **limits))  # type: ignore[arg-type]
    s.rehash("b#0")
    s.ask("b#0", *keys)
    assert s.verdict() == ((id, s.last()) if id else None)


@pytest.mark.parametrize(("cap", "id"), [(None, None), (8, None), (7, "P15"), (0, "P15")])
def test_p15_caps_bound_what_is_offered(cap: int | None, id: str | None) -> None:
    s = Story()
    s.known["a#0"] = tokens(0, 8)
    s.emit(ev.Arrive(s.step, S, "a#0", tokens(0, 8), max_offload=cap))
    s.rehash("a#0")
    for position in range(2):
        s.lease("a#0", position, 1 + position)
    offer(s, "a#0", 1)
    assert s.verdict() == ((id, s.last()) if id else None)


def test_p16_the_same_question_is_answered_differently() -> None:
    s = Story()
    keys = s.stored("a#0", tokens(0, 8))
    s.arrive("b#0", tokens(0, 9))
    s.ask("b#0", *keys)
    s.ask("b#0", *keys)
    assert s.verdict() is None
    s.ask("b#0", keys[0])
    assert s.verdict() == ("P16", s.last())


def test_p16_the_answer_may_change_with_the_tier() -> None:
    s = Story()
    keys = s.stored("a#0", tokens(0, 8))
    s.arrive("b#0", tokens(0, 9))
    s.ask("b#0", *keys)
    s.accept("a#0", (s.key("a#0", 0, group=0), 7), evicted=(keys[0],))
    s.ask("b#0")
    assert s.verdict() is None


@pytest.mark.parametrize("looks", range(3))
def test_s5_a_load_takes_what_the_latest_lookup_has_found(looks: int) -> None:
    """An earlier lookup found two chunks; the latest looked for ``looks`` of them only."""
    s = Story()
    keys = s.stored("a#0", tokens(0, 8))
    s.finish("a#0", 1, 2)
    s.arrive("b#0", tokens(0, 9))
    s.ask("b#0", *keys)
    s.question("b#0")
    for key in keys[:looks]:
        s.probe("b#0", key, "hit")
    s.answer("b#0", 8)
    for position in range(2):
        s.lease("b#0", position, 3 + position)
    s.prepare_load("b#0", *keys)
    assert s.verdict() == (None if looks == 2 else ("S5", s.last()))


def test_l1_polls_between_which_no_copy_ended_do_not_count() -> None:
    """A store that began after the first deferral is slow: that is the worker's affair."""
    s = Story()
    s.arrive("b#0", tokens(20, 9))
    s.question("b#0")
    s.probe("b#0", s.key("b#0", 0), "retry")
    s.answer("b#0", None)
    blocks = s.compute_prompt("a#0", tokens(0, 8), 1)
    s.offer(1, "a#0", blocks)
    for _ in range(2 * MOST_POLLS):
        s.question("b#0")
        s.probe("b#0", s.key("b#0", 0), "retry")
        s.answer("b#0", None)
        s.idle()
    assert s.verdict() is None


def test_m2_a_request_is_named_with_a_job_that_a_reset_killed() -> None:
    s = being_stored()
    s.reset()
    s.submit(1)
    s.done(1)
    s.report(1)
    s.emit(ev.Raised(s.step, S, "build_connector_meta", "KeyError: 1", "x.py:1"))
    finding = s.finding()
    assert finding is not None
    assert (finding.id, finding.explained_by, finding.index) == ("P11", "M2", s.last())


@pytest.mark.parametrize("again", range(3))
def test_s5_what_a_lookup_found_does_not_outlive_a_preemption(again: int) -> None:
    """The request is put back, and asks the same again; its load takes two chunks.

    ``again`` of them are looked up again, the rest is answered from memory.
    """
    s = Story()
    keys = s.stored("a#0", tokens(0, 8))
    s.finish("a#0", 1, 2)
    s.arrive("b#0", tokens(0, 9))
    s.ask("b#0", *keys)
    s.lease("b#0", 0, 3)
    s.schedule()
    s.emit(ev.Preempt(s.step, S, "b#0"))
    s.free("b#0", 3, why="preempt")
    s.question("b#0")
    s.answer("b#0", 8)
    for position in range(2):
        s.lease("b#0", position, 4 + position)
    for key in keys[:again]:
        s.probe("b#0", key, "hit")
    s.prepare_load("b#0", *keys)
    assert s.verdict() == (None if again == 2 else ("S5", s.last()))
