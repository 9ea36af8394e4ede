"""Histories that look wrong and are not: a monitor that reports one of them is broken."""

from __future__ import annotations

from kvproof.conformance.trace import events as ev
from kvproof.conformance.trace.events import SCHEDULER_RANK as S
from tests.conformance.story import FULL, RECURRENT, WINDOW, Story, tokens


def test_a_store_may_complete_after_its_request_has_finished() -> None:
    s = Story()
    blocks = s.compute_prompt("a#0", tokens(0, 8), first_block=1)
    keys = s.offer(1, "a#0", blocks)
    s.idle()
    s.submit(1)
    s.finish("a#0", *blocks)
    s.done(1)
    s.report(1)
    s.complete_store(*keys)
    s.drained()
    assert s.verdict() is None


def test_a_flush_may_name_dead_jobs_in_the_step_after_a_reset() -> None:
    s = Story()
    blocks = s.compute_prompt("a#0", tokens(0, 8), first_block=1)
    s.offer(1, "a#0", blocks)
    s.idle()
    s.submit(1)
    s.reset()
    s.flush(1)
    s.idle()
    s.done(1)
    s.wait(1)
    s.report(1)
    assert s.verdict() is None


def test_a_flush_may_name_a_job_that_nobody_knows() -> None:
    s = Story()
    s.compute_prompt("a#0", tokens(0, 8), first_block=1)
    s.flush(77)
    s.idle()
    s.wait(77)
    assert s.verdict() is None


def finish_time_store(flushed: bool) -> Story:
    """A store made after its request gave its blocks up, which another request gets at once."""
    s = Story()
    blocks = s.compute_prompt("a#0", tokens(0, 8), first_block=1)
    s.finish("a#0", *blocks)
    s.arrive("b#0", tokens(50, 8))
    s.lease("b#0", 0, blocks[0])
    s.lease("b#0", 1, blocks[1])
    keys = s.offer(1, "a#0", blocks)
    if flushed:
        s.flush(1)
    plan = s.schedule(("b#0", 0, 8, [999]))
    s.launch()
    s.submit(1)
    s.done(1)
    s.wait(1)
    s.forward(plan)
    s.report(1)
    s.complete_store(*keys)
    return s


def test_a_store_at_finish_may_read_blocks_handed_out_in_the_same_step_when_it_is_flushed() -> None:
    assert finish_time_store(flushed=True).verdict() is None


def test_the_same_store_without_the_flush_is_overwritten() -> None:
    s = finish_time_store(flushed=False)
    forward = max(i for i, e in enumerate(s.events) if isinstance(e, ev.Forward))
    assert s.verdict() == ("S3", forward)


def test_a_store_may_be_flushed_again_before_the_worker_has_come_to_the_first_flush() -> None:
    """Asynchronous scheduling: two steps flush the store, and the first one waits for it."""
    s = Story()
    blocks = s.compute_prompt("a#0", tokens(0, 8), first_block=1)
    keys = s.offer(1, "a#0", blocks)
    s.idle()
    s.finish("a#0", *blocks)
    s.arrive("b#0", tokens(50, 8))
    s.lease("b#0", 0, blocks[0])
    s.flush(1)
    first = s.schedule(("b#0", 0, 4, []))
    s.lease("b#0", 1, blocks[1])
    s.flush(1)
    second = s.schedule(("b#0", 4, 8, [300]))
    for step, plan in ((3, first), (4, second)):
        s.launch(step=step)
        if step == 3:
            s.submit(1)
            s.done(1)
        s.wait(1)
        s.forward(plan, step=step)
    s.report(1)
    s.complete_store(*keys)
    assert s.verdict() is None


def test_a_store_may_be_made_before_the_forward_that_computes_its_last_tokens() -> None:
    s = Story()
    s.arrive("a#0", tokens(0, 8))
    s.lease("a#0", 0, 1)
    s.lease("a#0", 1, 2)
    keys = s.offer(1, "a#0", [1, 2])
    s.run(("a#0", 0, 8, [999]))
    s.idle()
    s.carry_out(1, *keys)
    assert s.verdict() is None


def test_but_it_may_not_be_submitted_before_that_forward() -> None:
    s = Story()
    s.arrive("a#0", tokens(0, 8))
    s.lease("a#0", 0, 1)
    s.lease("a#0", 1, 2)
    s.offer(1, "a#0", [1, 2])
    s.schedule(("a#0", 0, 8, [999]))
    s.launch()
    s.submit(1)
    assert s.verdict() == ("S2", s.last())


def test_two_requests_may_share_a_block_through_the_prefix_cache() -> None:
    s = Story()
    blocks = s.compute_prompt("a#0", tokens(0, 8), first_block=1)
    s.arrive("b#0", [*tokens(0, 8), 70, 71])
    s.share("b#0", 0, blocks[0])
    s.share("b#0", 1, blocks[1])
    s.lease("b#0", 2, 9)
    keys = s.offer(1, "b#0", blocks)
    s.run(("b#0", 8, 10, [999]))
    s.finish("a#0", *blocks)
    s.idle()
    s.carry_out(1, *keys)
    assert s.verdict() is None


def test_a_store_may_read_another_request_s_block_with_the_same_bytes() -> None:
    s = Story()
    s.compute_prompt("a#0", tokens(0, 8), first_block=1)
    s.compute_prompt("b#0", tokens(0, 8), first_block=5)
    keys = s.offer(1, "b#0", [1, 2])
    s.idle()
    s.carry_out(1, *keys)
    assert s.verdict() is None


def test_null_blocks_of_slid_windows_are_passed_over() -> None:
    s = Story(groups=(FULL, WINDOW))
    s.arrive("a#0", tokens(0, 16))
    for position in range(4):
        s.lease("a#0", position, 1 + position)
        s.lease("a#0", position, 11 + position, group=1)
    s.run(("a#0", 0, 16, [999]))
    s.free("a#0", 11, 12, why="slide")
    s.lease("a#0", 4, 5)
    s.lease("a#0", 4, 15, group=1)
    accepted = [(s.key("a#0", i), i) for i in range(4)]
    accepted += [(s.key("a#0", i, 1), 2 + i) for i in (2, 3)]
    s.accept("a#0", *accepted)
    pieces = [(0, 1 + i, i, 0) for i in range(4)] + [(1, 11 + i, 2 + i, 0) for i in (2, 3)]
    s.issue(1, "store", "a#0", *pieces)
    s.run(("a#0", 16, 17, [998]))
    s.idle()
    s.carry_out(1, *(key for key, _ in accepted))
    assert s.verdict() is None


def test_the_tier_may_decline_chunks() -> None:
    s = Story()
    s.compute_prompt("a#0", tokens(0, 8), first_block=1)
    keys = [s.key("a#0", i) for i in range(2)]
    s.emit(ev.PrepareStore(s.step, S, "a#0", keys, False, [], [(keys[1], 3)]))
    s.issue(1, "store", "a#0", (0, 2, 3, 0))
    s.idle()
    s.carry_out(1, keys[1])
    s.drained()
    assert s.verdict() is None


def test_the_engine_may_drop_an_answer() -> None:
    s = Story()
    keys = s.stored("a#0", tokens(0, 8))
    s.arrive("b#0", [*tokens(0, 8), 70])
    s.ask("b#0", *keys)
    s.emit(ev.Answer(s.step, S, "b#0", 8, True))
    s.idle()
    s.ask("b#0", *keys)
    s.emit(ev.Finish(s.step, S, "b#0", "aborted"))
    s.idle()
    assert s.verdict() is None


def test_an_asynchronous_step_computes_a_token_that_the_scheduler_does_not_know_yet() -> None:
    s = Story()
    s.arrive("a#0", tokens(0, 7))
    s.lease("a#0", 0, 1)
    s.lease("a#0", 1, 2)
    first = s.schedule(("a#0", 0, 7, [300]))
    keys = [s.key("a#0", 0)]
    s.launch(step=1)
    # Step 2 is scheduled before the output of step 1 is processed: position 7 is a placeholder.
    s.accept("a#0", (keys[0], 0))
    s.issue(1, "store", "a#0", (0, 1, 0, 0))
    second = s.schedule(("a#0", 7, 8, [301]))
    s.forward(first, step=1)
    s.launch(step=2)
    s.forward(second, step=2)
    s.rehash("a#0")
    s.idle()
    s.carry_out(1, *keys)
    assert s.known["a#0"] == [*tokens(0, 7), 300, 301]
    assert s.verdict() is None


def test_stores_go_on_after_blocks_that_were_stored_have_slid_away() -> None:
    s = Story(groups=(FULL, WINDOW))
    s.arrive("a#0", tokens(0, 20))
    for position in range(3):
        s.lease("a#0", position, 1 + position)
        s.lease("a#0", position, 11 + position, group=1)
    first = [(s.key("a#0", i, 1), i) for i in range(3)]
    s.accept("a#0", *first)
    s.issue(1, "store", "a#0", *((1, 11 + i, i, 0) for i in range(3)))
    s.run(("a#0", 0, 12, []))
    s.lease("a#0", 3, 4)
    s.lease("a#0", 3, 14, group=1)
    plan = s.schedule(("a#0", 12, 16, []))
    s.launch()
    s.submit(1)
    s.forward(plan)
    s.done(1)
    s.report(1)
    s.complete_store(*(key for key, _ in first))
    s.free("a#0", 11, 12, why="slide")
    s.accept("a#0", (s.key("a#0", 3, 1), 7))
    s.issue(2, "store", "a#0", (1, 14, 7, 0))
    # Block 11 comes back as the request's own tail; the finished store does not mind.
    s.lease("a#0", 4, 5)
    s.lease("a#0", 4, 11, group=1)
    s.run(("a#0", 16, 20, [100]))
    s.idle()
    s.carry_out(2, s.key("a#0", 3, 1))
    assert s.verdict() is None


def test_a_recurrent_state_may_be_advanced_in_place() -> None:
    s = Story(groups=(RECURRENT,))
    s.arrive("a#0", tokens(0, 6))
    s.lease("a#0", 1, 1)
    s.run(("a#0", 0, 6, [300]))
    s.free("a#0", 1, why="advance")
    s.lease("a#0", 1, 1)
    s.run(("a#0", 6, 7, [301]))
    assert s.verdict() is None


def test_but_not_under_a_store_that_reads_it() -> None:
    s = Story(groups=(RECURRENT,))
    s.arrive("a#0", tokens(0, 4))
    s.lease("a#0", 0, 1)
    s.run(("a#0", 0, 4, [300]))
    s.offer(1, "a#0", [1])
    s.free("a#0", 1, why="advance")
    s.lease("a#0", 0, 1)
    s.run(("a#0", 4, 4, []))
    assert s.verdict() is None
    plan = s.schedule(("a#0", 0, 4, []))
    s.launch()
    s.forward(plan)
    assert s.verdict() == ("S3", s.last())


def test_a_load_brings_whole_blocks_so_the_last_token_can_be_computed_again() -> None:
    s = Story()
    keys = s.stored("a#0", tokens(0, 8))
    s.arrive("b#0", tokens(0, 8))
    s.ask("b#0", *keys)
    s.lease("b#0", 0, 8)
    s.lease("b#0", 1, 9)
    s.prepare_load("b#0", *keys)
    s.issue(2, "load", "b#0", (0, 8, 0, 0), (0, 9, 1, 0))
    s.idle()
    s.submit(2)
    s.done(2)
    s.report(2)
    s.complete_load(*keys)
    s.received("b#0")
    s.run(("b#0", 7, 8, [300]))
    assert s.verdict() is None
