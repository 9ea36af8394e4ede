"""Judgements of work and room, and what waiting is worth."""

from __future__ import annotations

from kvproof.model.contract import Job, Key, Residency
from tests.conformance.promises.begins import pinned
from tests.conformance.promises.table import Move, breaks, holds
from tests.model.scene import OTHER, R, Scene


@breaks("E1")
def an_answer_falls_short_of_what_could_be_served(s: Scene) -> Move:
    return s.judge_answer, R, 3, 4


@breaks("E2")
def a_key_that_a_lookup_needs_was_never_offered(s: Scene) -> Move:
    return s.judge_need, R, Key(1), 4, 0


@breaks("E3")
def a_complete_chunk_was_never_offered(s: Scene) -> Move:
    return s.judge_chunk, R, Key(1), 1, 0


@breaks("E4")
def a_repeated_request_falls_short_of_what_was_stored(s: Scene) -> Move:
    return s.judge_repeat, R, 3, 4


@breaks("E5")
def the_events_tell_of_a_key_that_is_not_there(s: Scene) -> Move:
    return s.judge_events, Key(1), 1, 0


@breaks("E6")
def a_refused_offer_is_repeated_with_no_more_room(s: Scene) -> Move:
    return s.judge_again, R, 1, 1


@breaks("E6")
def a_key_is_offered_twice(s: Scene) -> Move:
    return s.judge_twice, R, Key(1), 1


@breaks("E7")
def a_younger_chunk_leaves_before_an_older(s: Scene) -> Move:
    return s.judge_age, Residency(1), Residency(2), 2, 1


@breaks("E7")
def the_head_of_a_prefix_leaves_before_its_tail(s: Scene) -> Move:
    return s.judge_order, Residency(1), Residency(2), 1, 2


@breaks("E8")
def two_requests_of_one_prompt_leave_different_keys(s: Scene) -> Move:
    return s.judge_tail, R, OTHER, Key(1), 1, 0


@breaks("L6")
def a_store_is_flushed_whose_blocks_nobody_else_got(s: Scene) -> Move:
    s.computed()
    s.issued_store()
    return s.judge_flush, Job(1)


@holds
def a_load_may_be_flushed(s: Scene) -> None:
    pinned(s)
    s.issue_load(Job(101))
    s.judge_flush(Job(101))


@holds
def a_store_of_before_a_reset_may_be_flushed(s: Scene) -> None:
    s.computed()
    s.issued_store()
    s.reset()
    s.judge_flush(Job(1))


@holds
def a_request_waits_for_its_own_job_while_a_key_moves(s: Scene) -> None:
    s.judge_own_wait(R, 0, 0, 1)
