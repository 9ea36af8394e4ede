"""E3, E6, E8: what is offered for storing, how often, and on what it depends."""

from __future__ import annotations

from itertools import pairwise

import pytest

from kvproof.conformance.trace import events as ev
from kvproof.conformance.trace.events import SCHEDULER_RANK as S
from tests.conformance.economy_story import Tale
from tests.conformance.story import RECURRENT, WINDOW, tokens

# --- E3 ---


def never_offered(key: str, chances: int, req: str = "a#0") -> dict[str, str]:
    return {"r": req, "k": key, "chances": str(chances), "offers": "0"}


def test_e3_a_complete_chunk_was_never_offered() -> None:
    s = Tale()
    blocks = s.compute_prompt("a#0", tokens(0, 8), first_block=1)
    s.offer(1, "a#0", blocks[:1])
    s.end("a#0", *blocks)
    # At the end of the step that computed it, and when the request ended.
    assert s.missed() == [("E3", s.last() - 1, never_offered(s.show("a#0", 1), 2))]


def test_e3_all_complete_chunks_were_offered() -> None:
    s = Tale()
    blocks = s.compute_prompt("a#0", tokens(0, 11), first_block=1)
    s.offer(1, "a#0", blocks[:2])
    s.end("a#0", *blocks)
    assert s.missed() == []


def test_e3_an_offer_after_the_end_is_in_time() -> None:
    s = Tale()
    blocks = s.compute_prompt("a#0", tokens(0, 8), first_block=1)
    s.finish("a#0", *blocks)
    s.offer(1, "a#0", blocks)
    s.idle()
    assert s.missed() == []


def test_e3_declined_is_offered() -> None:
    s = Tale()
    blocks = s.compute_prompt("a#0", tokens(0, 8), first_block=1)
    s.decline("a#0", s.key("a#0", 0), s.key("a#0", 1))
    s.end("a#0", *blocks)
    assert s.missed() == []


def test_e3_what_another_request_stored_is_present() -> None:
    s = Tale()
    s.stored("a#0", tokens(0, 8))
    blocks = s.compute_prompt("b#0", tokens(0, 8), first_block=5)
    s.end("b#0", *blocks)
    assert s.missed() == []


def test_e3_what_was_hit_is_present_though_it_leaves() -> None:
    """A load brings the first chunk, which is evicted for the next: nobody stores it again."""
    s = Tale(num_slots=1)
    (key,) = s.stored("a#0", tokens(0, 4))
    s.end("a#0", 1)
    s.arrive("b#0", tokens(0, 9))
    s.ask("b#0", key)
    s.lease("b#0", 0, 2)
    s.emit(ev.Allocated(s.step, S, "b#0", 4))
    s.prepare_load("b#0", key)
    s.issue(7, "load", "b#0", (0, 2, 0, 0))
    s.idle()
    s.submit(7)
    s.done(7)
    s.report(7)
    s.complete_load(key)
    s.received("b#0")
    s.lease("b#0", 1, 3)
    s.lease("b#0", 2, 4)
    s.accept("b#0", (s.key("b#0", 1), 0), evicted=(key,))
    s.issue(8, "store", "b#0", (0, 3, 0, 0))
    s.run(("b#0", 4, 9, [999]))
    s.end("b#0", 2, 3, 4)
    assert s.missed() == []


def test_e3_a_chunk_that_was_hit_in_part_is_present() -> None:
    """Seven of eight tokens are answered: the second chunk is in the tier, and leaves it then."""
    s = Tale(num_slots=2)
    keys = s.stored("a#0", tokens(0, 8))
    s.end("a#0", 1, 2)
    s.arrive("b#0", tokens(0, 8))
    s.ask("b#0", *keys)
    s.events.pop()
    s.answer("b#0", 7)
    s.displace(keys[1], slot=1)
    s.lease("b#0", 0, 3)
    s.lease("b#0", 1, 4)
    s.run(("b#0", 0, 8, [999]))
    s.end("b#0", 3, 4)
    assert s.missed() == []


@pytest.mark.parametrize("room", [True, False])
def test_e3_a_refused_chunk_is_owed_once_there_is_room(room: bool) -> None:
    s = Tale()
    keys = s.stored("a#0", tokens(50, 4), first_block=9)
    blocks = s.compute_prompt("b#0", tokens(0, 4), first_block=1)
    s.refuse("b#0", s.key("b#0", 0))
    s.idle()
    if room:
        s.displace(keys[0], slot=0)
    s.end("b#0", *blocks)
    found = [("E3", s.last() - 1, never_offered(s.show("b#0", 0), 1, "b#0"))]
    assert s.missed() == (found if room else [])


def test_e3_what_a_tier_moves_by_itself_is_room_that_nobody_is_told_of() -> None:
    s = Tale(options={"tier": "tiering"})
    keys = s.stored("a#0", tokens(50, 4), first_block=9)
    blocks = s.compute_prompt("b#0", tokens(0, 4), first_block=1)
    s.refuse("b#0", s.key("b#0", 0))
    s.compute_prompt("x#0", tokens(70, 4), first_block=8)
    s.emit(ev.Promote(s.step, S, "x#0", [keys[0]], [(s.key("x#0", 0), 0)]))
    s.idle()
    # Trying all the same is nobody's fault.
    s.refuse("b#0", s.key("b#0", 0))
    s.idle()
    s.emit(ev.Promoted(s.step, S, [s.key("x#0", 0)], False))
    s.idle()
    s.end("b#0", *blocks)
    assert s.missed() == []


@pytest.mark.parametrize("later", [True, False])
def test_e3_room_that_changes_after_a_refusal_helps_from_the_next_window_on(later: bool) -> None:
    """Another request's turn comes after it, and takes the place of something."""
    s = Tale(groups=(WINDOW,))
    keys = s.stored("a#0", tokens(50, 4), first_block=9)
    s.arrive("b#0", tokens(0, 5))
    s.lease("b#0", 0, 1)
    s.refuse("b#0", s.key("b#0", 0))
    s.arrive("x#0", tokens(70, 4))
    s.lease("x#0", 0, 8)
    s.accept("x#0", (s.key("x#0", 0), 0), evicted=(keys[0],))
    s.run(("b#0", 0, 4, []), ("x#0", 0, 4, [998]))
    if later:
        s.lease("b#0", 1, 2)
        s.run(("b#0", 4, 5, [999]))
    s.free("b#0", 1, why="slide")
    s.idle()
    s.end("b#0", *([2] if later else []))
    found = [("E3", s.last() - 1, never_offered(s.show("b#0", 0), 1, "b#0"))]
    assert s.missed() == (found if later else [])


@pytest.mark.parametrize("again", [True, False])
def test_e3_a_reset_starts_from_token_0(again: bool) -> None:
    s = Tale()
    s.stored("a#0", tokens(0, 4))
    s.reset()
    s.lease("a#0", 1, 2)
    if again:
        s.offer(2, "a#0", [1])
    s.run(("a#0", 4, 5, [998]))
    s.end("a#0", 1, 2)
    found = [("E3", s.last() - 1, never_offered(s.show("a#0", 0), 2))]
    assert s.missed() == ([] if again else found)


def test_e3_what_was_given_up_before_it_could_be_offered_is_excused() -> None:
    """The scheduler runs ahead: a chunk's key is known when its block has slid away."""
    s = Tale(groups=(ev.GroupGeometry("window", 4, 2),))
    s.arrive("a#0", tokens(0, 3))
    s.lease("a#0", 0, 1)
    s.lease("a#0", 1, 2)
    for start, end, token in ((0, 3, 10), (3, 4, 11), (4, 5, 12)):
        plan = s.schedule(("a#0", start, end, [token]))
        s.launch()
        s.forward(plan)
    s.free("a#0", 1, why="slide")
    s.run(("a#0", 5, 6, [13]))
    s.end("a#0", 2)
    assert s.missed() == []


def test_e3_nobody_need_race_the_next_owner_of_a_block() -> None:
    s = Tale()
    s.arrive("a#0", tokens(0, 3))
    s.lease("a#0", 0, 1)
    plan = s.schedule(("a#0", 0, 3, [10]))
    s.launch()
    s.forward(plan)
    plan = s.schedule(("a#0", 3, 4, [11]))
    s.launch()
    s.forward(plan)
    s.rehash("a#0")
    s.finish("a#0", 1)
    s.arrive("b#0", tokens(50, 3))
    s.lease("b#0", 0, 1)
    s.idle()
    assert s.missed() == []


@pytest.mark.parametrize(
    ("caps", "options"),
    [({"max_offload": 4}, {}), ({"max_offload": 0}, {}), ({}, {"prompt_only": True})],
)
def test_e3_what_may_not_be_stored_is_not_owed(
    caps: dict[str, int], options: dict[str, bool | int | str | None]
) -> None:
    s = Tale(options=options)
    prompt = tokens(0, 4)
    s.known["a#0"] = list(prompt)
    s.emit(ev.Arrive(s.step, S, "a#0", prompt, **caps))  # type: ignore[arg-type]
    s.rehash("a#0")
    s.lease("a#0", 0, 1)
    s.lease("a#0", 1, 2)
    if caps.get("max_offload") != 0:
        s.accept("a#0", (s.key("a#0", 0), 0))
        s.issue(1, "store", "a#0", (0, 1, 0, 0))
    s.run(("a#0", 0, 4, [10]))
    for n in range(4, 8):
        s.run(("a#0", n, n + 1, [n + 7]))
    s.end("a#0", 1, 2)
    assert s.missed() == []


@pytest.mark.parametrize(("interval", "owed"), [(None, [0, 1]), (0, [1]), (4, [0, 1])])
def test_e3_sparse_retention_owes_the_end_of_the_prompt(
    interval: int | None, owed: list[int]
) -> None:
    """Nine tokens: a state after four of them, and one after eight, where a repeat starts."""
    s = Tale(groups=(RECURRENT,), options={"retention_interval": interval})
    s.arrive("a#0", tokens(0, 9))
    for n in (0, 1):
        s.lease("a#0", n, n + 1)
        s.run(("a#0", 4 * n, 4 * n + 4, []))
    s.lease("a#0", 2, 3)
    s.run(("a#0", 8, 9, [999]))
    s.end("a#0", 1, 2, 3)
    (first, *_) = s.missed()
    assert first[2]["k"] == s.show("a#0", owed[0], 0)


def test_e3_an_inner_window_block_serves_no_aligned_boundary() -> None:
    """Full chunks of eight tokens: the window's first block of each serves none of their ends."""
    s = Tale(groups=(ev.GroupGeometry("full", 8), ev.GroupGeometry("window", 4, 4)))
    s.arrive("a#0", tokens(0, 8))
    s.lease("a#0", 0, 1)
    s.lease("a#0", 0, 2, 1)
    s.lease("a#0", 1, 3, 1)
    s.run(("a#0", 0, 8, [999]))
    s.accept("a#0", (s.key("a#0", 1), 0), (s.key("a#0", 1, 1), 1))
    s.issue(1, "store", "a#0", (0, 1, 0, 0), (1, 3, 1, 0))
    s.end("a#0", 1, 2, 3)
    assert s.missed() == []


def test_e3_a_state_that_no_step_ended_with_does_not_exist() -> None:
    s = Tale(groups=(RECURRENT,))
    s.arrive("a#0", tokens(0, 9))
    for n in range(3):
        s.lease("a#0", n, n + 1)
    s.run(("a#0", 0, 9, [999]))
    s.end("a#0", 1, 2, 3)
    assert s.missed() == []


@pytest.mark.parametrize("draft", [True, False])
def test_e3_a_drafters_chunk_is_not_there_to_store_before_the_token_after_it(draft: bool) -> None:
    """By then the first of its blocks has slid away; without a drafter there was one window."""
    s = Tale(groups=(ev.GroupGeometry("window", 4, 5, draft),), blocks_per_chunk=2)
    s.arrive("a#0", tokens(0, 17))
    s.lease("a#0", 0, 1)
    s.lease("a#0", 1, 2)
    s.run(("a#0", 0, 8, []))
    s.free("a#0", 1, why="slide")
    s.lease("a#0", 2, 3)
    s.lease("a#0", 3, 4)
    s.run(("a#0", 8, 16, []))
    s.free("a#0", 2, 3, why="slide")
    s.lease("a#0", 4, 5)
    s.run(("a#0", 16, 17, [999]))
    s.end("a#0", 4, 5)
    # The first chunk's key is the hash at its end.
    found = [never_offered(s.show("a#0", 1), 1)]
    assert [facts for _, _, facts in s.missed()] == ([] if draft else found)


def test_e3_a_drafters_last_chunk_may_yet_change() -> None:
    s = Tale(groups=(ev.GroupGeometry("full", 4, draft=True),))
    blocks = s.compute_prompt("a#0", tokens(0, 8), first_block=1)
    s.offer(1, "a#0", blocks[:1])
    s.end("a#0", *blocks)
    assert s.missed() == []


@pytest.mark.parametrize("asynchronous", [True, False])
def test_e3_a_step_under_way_counts_for_nothing(asynchronous: bool) -> None:
    """Three tokens were prompted and one was sampled, and a step that computes it was executed."""
    s = Tale(options={"asynchronous": asynchronous})
    s.arrive("a#0", tokens(0, 3))
    s.lease("a#0", 0, 1)
    s.run(("a#0", 0, 3, [10]))
    s.run(("a#0", 3, 4, [11]))
    s.end("a#0", 1)
    found = [("E3", s.last() - 1, never_offered(s.show("a#0", 0), 2))]
    assert s.missed() == ([] if asynchronous else found)


def test_e3_a_step_from_before_it_was_put_back_counts_for_nothing() -> None:
    """A worker that lags executes it when the request has lost its blocks already."""
    s = Tale(options={"asynchronous": True})
    s.arrive("a#0", tokens(0, 5))
    for position in (0, 1):
        s.lease("a#0", position, 1 + position)
    plan = s.schedule(("a#0", 0, 5, []))
    s.emit(ev.Preempt(s.step, S, "a#0"))
    s.free("a#0", 1, 2, why="preempt")
    s.launch(0)
    s.forward(plan, 0)
    s.lease("a#0", 0, 3)
    s.run(("a#0", 0, 3, []))
    s.end("a#0", 3)
    assert s.missed() == []


def test_e3_a_reset_takes_back_what_an_ended_request_owed() -> None:
    s = Tale()
    blocks = s.compute_prompt("a#0", tokens(0, 8), first_block=1)
    s.finish("a#0", *blocks)
    s.reset()
    s.idle()
    assert s.missed() == []


# --- E6 ---


def refused_and_offered_again(between: str) -> Tale:
    s = Tale()
    (other,) = s.stored("a#0", tokens(50, 4), first_block=9)
    s.compute_prompt("b#0", tokens(0, 8), first_block=1)
    keys = [s.key("b#0", 0), s.key("b#0", 1)]
    s.refuse("b#0", *keys)
    if between == "an eviction":
        s.displace(other, slot=0)
    if between == "a reset":
        s.reset()
    s.idle()
    s.refuse("b#0", *(keys[:1] if between == "less is asked for" else keys))
    return s


def test_e6_a_refused_offer_is_repeated_though_nothing_has_changed() -> None:
    s = refused_and_offered_again("nothing")
    assert s.missed() == [("E6", s.last(), {"r": "b#0", "room": "1", "refused_at": "1"})]


@pytest.mark.parametrize("between", ["an eviction", "a reset", "less is asked for"])
def test_e6_a_refused_offer_is_repeated_when_it_may_be_taken(between: str) -> None:
    assert refused_and_offered_again(between).missed() == []


def test_e6_a_reset_makes_room_for_a_request_that_has_ended_too() -> None:
    s = Tale()
    blocks = s.compute_prompt("a#0", tokens(0, 4), first_block=1)
    s.finish("a#0", *blocks)
    s.refuse("a#0", s.key("a#0", 0))
    s.reset()
    s.refuse("a#0", s.key("a#0", 0))
    assert s.missed() == []


def test_e6_a_key_is_offered_twice() -> None:
    s = Tale()
    keys = s.stored("a#0", tokens(0, 8))
    s.decline("a#0", keys[1])
    assert s.missed() == [("E6", s.last(), {"r": "a#0", "k": s.show("a#0", 1), "offers": "1"})]


def test_e6_a_key_that_has_left_is_offered_again() -> None:
    s = Tale()
    keys = s.stored("a#0", tokens(0, 8))
    s.displace(keys[1], slot=1)
    s.decline("a#0", keys[1])
    assert s.missed() == []


def test_e6_a_request_that_starts_again_offers_again() -> None:
    s = Tale()
    keys = s.stored("a#0", tokens(0, 8))
    s.emit(ev.Preempt(s.step, S, "a#0"))
    s.free("a#0", 1, 2, why="preempt")
    s.lease("a#0", 0, 1)
    s.lease("a#0", 1, 2)
    s.run(("a#0", 0, 8, []))
    s.decline("a#0", *keys)
    assert s.missed() == []


# --- E8 ---


def the_same_twice(
    second: list[int],
    cut: int,
    has: tuple[int, ...] = (0, 1),
    on_gpu: int = 0,
    interval: int | None = None,
) -> Tale:
    """Two requests of eight tokens, one after the other; the second one in two steps.

    The first offers everything, the second those blocks of the window that are named, of those that
    it ``has``; it found ``on_gpu`` tokens on the GPU. Only the last block of the window serves a
    boundary, so that E3 owes no other.
    """
    s = Tale(
        groups=(ev.GroupGeometry("full", 8), ev.GroupGeometry("window", 4, 4)),
        options={"retention_interval": interval},
    )
    prompt = 8
    for req, first, chunks, steps in (
        ("a#0", 1, [0, 1], [0, prompt]),
        ("b#0", 4, second, [0, cut, prompt]),
    ):
        s.arrive(req, tokens(0, prompt))
        s.lease(req, 0, first)
        for chunk in has if req == "b#0" else (0, 1):
            s.lease(req, chunk, first + 1 + chunk, 1)
        if req == "b#0" and on_gpu:
            s.question(req, on_gpu)
            s.answer(req, 0)
        for start, end in pairwise(steps):
            s.run((req, start, end, [999] if end == prompt else []))
        s.decline(req, s.key(req, 1), *(s.key(req, chunk, 1) for chunk in chunks))
        s.end(req, first, *(first + 1 + n for n in (has if req == "b#0" else (0, 1))))
    return s


def test_e8_what_is_left_depends_on_how_the_prefill_was_cut() -> None:
    s = the_same_twice([1], cut=5)
    facts = {"r": "b#0", "other": "a#0", "k": s.show("b#0", 0, 1), "left": "0", "left_before": "1"}
    assert s.missed() == [("E8", s.last() - 1, facts)]


def test_e8_the_same_is_left_however_the_prefill_was_cut() -> None:
    assert the_same_twice([0, 1], cut=5).missed() == []


def test_e8_what_a_request_never_had_it_cannot_leave() -> None:
    assert the_same_twice([1], cut=7, has=(1,)).missed() == []


def test_e8_requests_that_found_something_else_are_not_the_same() -> None:
    assert the_same_twice([1], cut=5, on_gpu=4).missed() == []


def test_e8_sparse_retention_keeps_some_chunks_for_the_sake_of_others() -> None:
    """Where prompts of the engine have parted, which depends on who else is there."""
    assert the_same_twice([1], cut=5, interval=0).missed() == []


def test_e3_a_block_that_leaves_a_window_with_the_end_can_still_be_offered() -> None:
    """What is given up in the window in which a request ends may be read by a store of its end."""
    s = Tale(groups=(WINDOW,))
    s.stored("a#0", tokens(0, 4))
    s.lease("a#0", 1, 2)
    s.run(("a#0", 4, 5, [998]))
    s.reset()
    s.emit(ev.Finish(s.step, S, "a#0", "stopped"))
    s.free("a#0", 1, why="slide")
    s.free("a#0", 2)
    s.idle()
    assert s.missed() == [("E3", s.last() - 1, never_offered(s.show("a#0", 0), 1))]


@pytest.mark.parametrize("prompt_only", [True, False])
def test_e3_what_belongs_to_the_prompt_when_its_block_is_gone_is_not_owed(
    prompt_only: bool,
) -> None:
    """A session goes on: what it had generated is part of its prompt from then on."""
    s = Tale(groups=(ev.GroupGeometry("window", 4, 2),), options={"prompt_only": prompt_only})
    s.arrive("a#0", tokens(0, 3))
    s.lease("a#0", 0, 1)
    s.run(("a#0", 0, 3, [10]))
    s.run(("a#0", 3, 4, [11]))
    s.lease("a#0", 1, 2)
    s.run(("a#0", 4, 5, [12]))
    s.free("a#0", 1, why="slide")
    s.run(("a#0", 5, 6, [13]))
    s.emit(ev.Extended(s.step, S, "a#0", 6, [14]))
    s.known["a#0"][6:] = [14]
    s.run(("a#0", 6, 7, [15]))
    s.end("a#0", 2)
    assert [found[0] for found in s.missed()] == ([] if prompt_only else ["E3"])
