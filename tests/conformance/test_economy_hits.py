"""E1, E2, E4: what a lookup is answered, and what an ended request has left for it."""

from __future__ import annotations

import pytest

from kvproof.conformance.trace import events as ev
from kvproof.conformance.trace.events import SCHEDULER_RANK as S
from tests.conformance.economy_story import Tale
from tests.conformance.story import FULL, RECURRENT, WINDOW, tokens


def stored_by_one_asked_for_by_another(groups: tuple[ev.GroupGeometry, ...] = (FULL,)) -> Tale:
    """Eight tokens of a request that still runs are in the tier; another has twelve."""
    s = Tale(groups=groups)
    s.stored("a#0", tokens(0, 8))
    s.arrive("b#0", tokens(0, 12))
    s.question("b#0")
    return s


# --- E1 ---


@pytest.mark.parametrize("answered", [0, 4])
def test_e1_less_than_what_is_ready_is_answered(answered: int) -> None:
    s = stored_by_one_asked_for_by_another()
    s.answer("b#0", answered)
    facts = {"r": "b#0", "reached": str(answered), "greatest": "8"}
    assert s.missed() == [("E1", s.last(), facts)]


def test_e1_everything_that_is_ready_is_answered() -> None:
    s = stored_by_one_asked_for_by_another()
    s.probe("b#0", s.key("b#0", 0), "hit")
    s.probe("b#0", s.key("b#0", 1), "hit")
    s.answer("b#0", 8)
    assert s.missed() == []


def test_e1_what_is_on_the_gpu_counts() -> None:
    s = stored_by_one_asked_for_by_another()
    s.question("b#0", computed=4)
    s.answer("b#0", 4)
    assert s.missed() == []


@pytest.mark.parametrize("heard", [True, False])
def test_e1_a_chunk_counts_once_the_engine_has_hashed_it_for_the_request(heard: bool) -> None:
    """A worker has sampled the last token, which is on its way when the request is put back."""
    s = Tale()
    s.stored("a#0", tokens(0, 8))
    s.arrive("b#0", tokens(0, 7))
    for position, block in enumerate((11, 12)):
        s.lease("b#0", position, block)
    plan = s.schedule(("b#0", 0, 7, [7]))
    s.launch(0)
    s.forward(plan, 0)
    if heard:
        s.rehash("b#0")
    s.emit(ev.Preempt(s.step, S, "b#0"))
    for block in (12, 11):
        s.free("b#0", block, why="preempt")
    s.question("b#0")
    s.probe("b#0", s.key("b#0", 0), "hit")
    s.answer("b#0", 4)
    found = [("E1", s.last(), {"r": "b#0", "reached": "4", "greatest": "7"})]
    assert s.missed() == (found if heard else [])


def test_e1_a_load_of_less_than_a_chunk_is_nobodys_duty() -> None:
    """Seven of eight tokens may be answered, and four of them are there already."""
    s = Tale()
    s.stored("a#0", tokens(0, 8))
    s.arrive("b#0", tokens(0, 8))
    s.question("b#0", computed=4)
    s.answer("b#0", 0)
    assert s.missed() == []


def test_e1_the_last_token_is_always_computed() -> None:
    s = Tale()
    s.stored("a#0", tokens(0, 8))
    s.arrive("b#0", tokens(0, 8))
    s.question("b#0")
    s.answer("b#0", 7)
    assert s.missed() == []


def test_e1_all_but_the_last_token_could_be_answered() -> None:
    s = Tale()
    s.stored("a#0", tokens(0, 8))
    s.arrive("b#0", tokens(0, 8))
    s.question("b#0")
    s.answer("b#0", 0)
    assert s.missed() == [("E1", s.last(), {"r": "b#0", "reached": "0", "greatest": "7"})]


def test_e1_what_is_being_stored_is_not_ready() -> None:
    s = Tale()
    blocks = s.compute_prompt("a#0", tokens(0, 8), first_block=1)
    s.offer(1, "a#0", blocks)
    s.arrive("b#0", tokens(0, 12))
    s.question("b#0")
    s.answer("b#0", 0)
    assert s.missed() == []


@pytest.mark.parametrize(
    ("caps", "least"),
    [
        ({"max_load": 4}, 4),
        ({"max_load": 7}, 4),
        ({"max_load": 0}, 0),
        ({"skip_reading": True}, 0),
    ],
)
def test_e1_a_client_may_want_less(caps: dict[str, int | bool], least: int) -> None:
    s = Tale()
    s.stored("a#0", tokens(0, 8))
    s.known["b#0"] = tokens(0, 12)
    s.emit(ev.Arrive(s.step, S, "b#0", tokens(0, 12), **caps))  # type: ignore[arg-type]
    s.rehash("b#0")
    s.question("b#0")
    s.answer("b#0", least)
    assert s.missed() == []


@pytest.mark.parametrize(("cap", "missed"), [(None, ["E1"]), (24, [])])
def test_e1_under_a_cap_whole_chunks_of_all_groups_are_loaded(
    cap: int | None, missed: list[str]
) -> None:
    """Twelve tokens are there for both groups, which for one of them is a chunk and a half."""
    s = Tale(groups=(ev.GroupGeometry("full", 12), ev.GroupGeometry("full", 8)))
    s.arrive("a#0", tokens(0, 16))
    for group, position, block in ((0, 0, 1), (0, 1, 2), (1, 0, 3), (1, 1, 4)):
        s.lease("a#0", position, block, group)
    s.run(("a#0", 0, 16, [999]))
    keys = [s.key("a#0", 2, 0), s.key("a#0", 1, 1), s.key("a#0", 3, 1)]
    s.accept("a#0", *((key, slot) for slot, key in enumerate(keys)))
    s.issue(1, "store", "a#0", (0, 1, 0, 0), (1, 3, 1, 0), (1, 4, 2, 0))
    s.idle()
    s.carry_out(1, *keys)
    s.known["b#0"] = tokens(0, 25)
    s.emit(ev.Arrive(s.step, S, "b#0", tokens(0, 25), max_load=cap))
    s.rehash("b#0")
    s.question("b#0")
    s.answer("b#0", 8)
    assert [id for id, _, _ in s.missed()] == missed


def test_e1_every_group_must_serve_the_boundary() -> None:
    s = stored_by_one_asked_for_by_another(groups=(FULL, WINDOW))
    s.answer("b#0", 0)
    assert s.missed() == []


def test_e1_a_recurrent_group_starts_where_its_state_is() -> None:
    """States after four and after eight tokens were stored; the first one is as good as none."""
    s = Tale(groups=(RECURRENT,))
    s.arrive("a#0", tokens(0, 8))
    s.lease("a#0", 0, 1)
    s.run(("a#0", 0, 4, []))
    s.lease("a#0", 1, 2)
    s.run(("a#0", 4, 8, [999]))
    keys = s.offer(1, "a#0", [1, 2])
    s.idle()
    s.carry_out(1, *keys)
    s.arrive("b#0", tokens(0, 7))
    s.question("b#0")
    s.answer("b#0", 4)
    s.arrive("c#0", tokens(0, 9))
    s.question("c#0")
    s.answer("c#0", 4)
    assert s.missed() == [("E1", s.last(), {"r": "c#0", "reached": "4", "greatest": "8"})]


def test_e1_a_drafters_last_chunk_counts_for_nothing() -> None:
    s = stored_by_one_asked_for_by_another(groups=(ev.GroupGeometry("full", 4, draft=True),))
    s.answer("b#0", 4)
    assert s.missed() == []


# --- E2 and E4 ---


def windowed(offered: list[tuple[int, int]]) -> Tale:
    """Eight tokens in a full and a window group, computed; of which some chunks were stored.

    ``offered`` are (group, chunk). Then the request ends, and one that goes on asks.
    """
    s = Tale(groups=(FULL, WINDOW))
    s.arrive("a#0", tokens(0, 8))
    for group in (0, 1):
        for chunk in (0, 1):
            s.lease("a#0", chunk, 1 + 2 * group + chunk, group)
    s.run(("a#0", 0, 8, [999]))
    keys = [s.key("a#0", chunk, group) for group, chunk in offered]
    s.accept("a#0", *((key, slot) for slot, key in enumerate(keys)))
    pieces = [(g, 1 + 2 * g + c, slot, 0) for slot, (g, c) in enumerate(offered)]
    s.issue(1, "store", "a#0", *pieces)
    s.idle()
    s.carry_out(1, *keys)
    s.end("a#0", 1, 2, 3, 4)
    s.arrive("b#0", tokens(0, 12))
    s.question("b#0")
    return s


def test_e2_a_chunk_that_the_lookup_needs_was_never_offered() -> None:
    s = windowed([(0, 0), (0, 1), (1, 1)])
    s.answer("b#0", 0)
    key = s.show("b#0", 0, 1)
    never = {"r": "a#0", "k": key, "chances": "2", "offers": "0"}
    needed = {"r": "b#0", "k": key, "boundary": "8", "offers": "0"}
    assert [(id, facts) for id, _, facts in s.missed()] == [("E3", never), ("E2", needed)]
    assert s.missed()[1][1] == s.last()


def test_e2_all_that_the_lookup_needs_was_offered() -> None:
    s = windowed([(0, 0), (0, 1), (1, 0), (1, 1)])
    s.answer("b#0", 8)
    assert s.missed() == []


def test_e2_what_left_the_tier_is_not_asked_for() -> None:
    s = windowed([(0, 0), (0, 1), (1, 1)])
    s.reset()
    s.question("b#0")
    s.answer("b#0", 0)
    assert [id for id, _, _ in s.missed()] == ["E3"]


def test_e2_after_a_failed_copy_nothing_is_asked_for() -> None:
    s = windowed([(0, 0), (0, 1), (1, 1)])
    s.arrive("c#0", tokens(50, 4))
    s.lease("c#0", 0, 5)
    s.lease("c#0", 0, 6, 1)
    s.run(("c#0", 0, 4, [999]))
    keys = [s.key("c#0", 0), s.key("c#0", 0, 1)]
    s.accept("c#0", (keys[0], 3), (keys[1], 4))
    s.issue(2, "store", "c#0", (0, 5, 3, 0), (1, 6, 4, 0))
    s.idle()
    s.submit(2)
    s.done(2, ok=False)
    s.report(2, ok=False)
    s.question("b#0")
    s.answer("b#0", 0)
    assert [id for id, _, _ in s.missed()] == ["E3"]


def chunk_with_a_gap(answered: int) -> Tale:
    """A chunk of two blocks of which a store brought one: its key is there, and serves nobody."""
    s = Tale(blocks_per_chunk=2)
    blocks = s.compute_prompt("a#0", tokens(0, 8), first_block=1)
    key = s.key("a#0", 1)
    s.accept("a#0", (key, 0))
    s.issue(1, "store", "a#0", (0, blocks[1], 0, 1))
    s.idle()
    s.carry_out(1, key)
    s.end("a#0", *blocks)
    s.arrive("b#0", tokens(0, 12))
    s.question("b#0")
    s.answer("b#0", answered)
    return s


def test_e4_a_repeated_request_hits_less_than_was_stored() -> None:
    s = chunk_with_a_gap(0)
    assert s.missed() == [("E4", s.last(), {"r": "b#0", "reached": "0", "stored": "8"})]


def test_e4_is_about_the_hit_not_about_who_brings_it() -> None:
    s = Tale()
    s.left("a#0", tokens(0, 8))
    s.arrive("b#0", tokens(0, 12))
    s.question("b#0", computed=8)
    s.answer("b#0", 0)
    assert s.missed() == []


def test_e4_a_request_that_diverges_is_no_repeat() -> None:
    s = Tale()
    s.left("a#0", tokens(0, 8))
    s.arrive("b#0", [*tokens(0, 4), *tokens(90, 8)])
    s.question("b#0")
    s.answer("b#0", 4)
    assert s.missed() == []


# --- what a lookup cannot be blamed for ---


def test_e1_a_boundary_that_needs_nothing_of_the_tier_is_no_hit() -> None:
    s = Tale(groups=(ev.GroupGeometry("window", 4, 1),))
    s.arrive("a#0", tokens(0, 12))
    s.question("a#0")
    s.answer("a#0", 0)
    assert s.missed() == []


def test_e1_a_state_inside_a_chunk_has_no_key() -> None:
    s = Tale(groups=(RECURRENT,), blocks_per_chunk=2)
    s.arrive("a#0", tokens(0, 16))
    for n in range(4):
        s.lease("a#0", n, n + 1)
        s.run(("a#0", 4 * n, 4 * n + 4, [999] if n == 3 else []))
    keys = [s.key("a#0", 1), s.key("a#0", 3)]
    s.accept("a#0", (keys[0], 0), (keys[1], 1))
    s.issue(1, "store", "a#0", (0, 1, 0, 0), (0, 2, 0, 1), (0, 3, 1, 0), (0, 4, 1, 1))
    s.idle()
    s.carry_out(1, *keys)
    s.arrive("b#0", tokens(0, 16))
    s.question("b#0")
    s.answer("b#0", 8)
    assert s.missed() == []


@pytest.mark.parametrize("asynchronous", [True, False])
def test_e1_the_workers_may_know_more_than_the_scheduler(asynchronous: bool) -> None:
    """A request of eight tokens that the scheduler knows, with a ninth on its way, is put back."""
    s = Tale(options={"asynchronous": asynchronous})
    s.stored("a#0", tokens(0, 8))
    s.arrive("b#0", tokens(0, 7))
    s.lease("b#0", 0, 5)
    s.lease("b#0", 1, 6)
    s.run(("b#0", 0, 7, [7]))
    s.run(("b#0", 7, 8, [70]))
    s.emit(ev.Preempt(s.step, S, "b#0"))
    s.free("b#0", 5, 6, why="preempt")
    s.question("b#0")
    s.answer("b#0", 7)
    found = [("E1", s.last(), {"r": "b#0", "reached": "7", "greatest": "8"})]
    assert s.missed() == ([] if asynchronous else found)


def test_e1_what_failed_to_load_is_not_tried_again() -> None:
    s = Tale()
    (key,) = s.stored("a#0", tokens(0, 4))
    s.arrive("b#0", tokens(0, 9))
    s.ask("b#0", key)
    s.lease("b#0", 0, 2)
    s.emit(ev.Allocated(s.step, S, "b#0", 4))
    s.prepare_load("b#0", key)
    s.issue(7, "load", "b#0", (0, 2, 0, 0))
    s.idle()
    s.submit(7)
    s.done(7, ok=False)
    s.report(7, ok=False)
    s.complete_load(key)
    s.received("b#0", ok=False)
    s.free("b#0", 2, why="other")
    blocks = s.compute_prompt("c#0", tokens(50, 4), first_block=3)
    keys = s.offer(8, "c#0", blocks, first_slot=1)
    s.idle()
    s.carry_out(8, *keys)
    s.question("b#0")
    s.answer("b#0", 0)
    assert s.missed() == []


def test_e2_a_request_that_was_cut_short_promises_nothing() -> None:
    s = Tale(groups=(FULL, WINDOW))
    s.arrive("a#0", tokens(0, 8))
    for group in (0, 1):
        for chunk in (0, 1):
            s.lease("a#0", chunk, 1 + 2 * group + chunk, group)
    s.run(("a#0", 0, 8, [999]))
    s.emit(ev.Finish(s.step, S, "a#0", "aborted"))
    s.free("a#0", 1, 2, 3, 4)
    s.idle()
    s.arrive("b#0", tokens(0, 12))
    s.question("b#0")
    s.answer("b#0", 0)
    assert {id for id, _, _ in s.missed()} == {"E3"}


def test_e2_what_a_request_never_had_it_need_not_leave() -> None:
    """The prompt was computed in one step; the engine had no block for the window's start."""
    s = Tale(groups=(FULL, WINDOW))
    s.arrive("a#0", tokens(0, 8))
    s.lease("a#0", 0, 1)
    s.lease("a#0", 1, 2)
    s.lease("a#0", 1, 4, 1)
    s.run(("a#0", 0, 8, [999]))
    keys = [s.key("a#0", 0), s.key("a#0", 1), s.key("a#0", 1, 1)]
    s.accept("a#0", *((key, slot) for slot, key in enumerate(keys)))
    s.issue(1, "store", "a#0", (0, 1, 0, 0), (0, 2, 1, 0), (1, 4, 2, 0))
    s.idle()
    s.carry_out(1, *keys)
    s.end("a#0", 1, 2, 4)
    s.arrive("b#0", tokens(0, 12))
    s.question("b#0")
    s.answer("b#0", 0)
    assert s.missed() == []


def test_e2_a_drafter_needs_one_chunk_more() -> None:
    s = Tale(groups=(ev.GroupGeometry("full", 4, draft=True),))
    blocks = s.compute_prompt("a#0", tokens(0, 16), first_block=1)
    keys = s.offer(1, "a#0", blocks[:2])
    s.idle()
    s.carry_out(1, *keys)
    s.end("a#0", *blocks)
    s.arrive("b#0", tokens(0, 17))
    s.question("b#0")
    s.answer("b#0", 4)
    never = {"r": "a#0", "k": s.show("a#0", 2), "chances": "2", "offers": "0"}
    needed = {"r": "b#0", "k": s.show("a#0", 2), "boundary": "8", "offers": "0"}
    assert [(id, facts) for id, _, facts in s.missed()] == [("E3", never), ("E2", needed)]


def test_e4_what_failed_to_be_stored_is_not_asked_for() -> None:
    s = Tale()
    blocks = s.compute_prompt("a#0", tokens(0, 8), first_block=1)
    keys = s.offer(1, "a#0", blocks)
    s.idle()
    s.submit(1)
    s.done(1, ok=False)
    s.report(1, ok=False)
    s.complete_store(*keys, ok=False)
    s.end("a#0", *blocks)
    s.arrive("b#0", tokens(0, 12))
    s.question("b#0")
    s.answer("b#0", 0)
    assert s.missed() == []
