"""A history for every action of the contract: no guard is vacuous, every phase is reached."""

from __future__ import annotations

import inspect

import pytest

from kvproof.model.broken import Broken
from kvproof.model.contract import Block, Job, Key, Lease, Residency, Slot, Worker
from kvproof.spec.contract import contract
from tests.model.scene import OTHER, C, R, Scene, W


def test_a_request_arrives_computes_is_preempted_and_ends() -> None:
    s = Scene()
    s.computed()
    assert s.reference.current == {Block(1): Lease(1)}
    assert s.reference.owner == {(Block(1), W): Lease(1)}
    assert (Lease(1), W, C) in s.reference.settled
    s.attend(W, Lease(1), C)
    s.preempt(R)
    s.free(R, Lease(1))
    assert s.reference.given_up_at == {(R, Lease(1)): 2}
    s.finish(R)
    assert (s.reference.alive, s.reference.ended) == (set(), {R})


def test_a_lease_is_shared_and_its_block_handed_out_again() -> None:
    s = Scene()
    s.computed()
    s.arrive(OTHER)
    s.share(OTHER, Lease(1))
    s.free(R, Lease(1))
    s.free(OTHER, Lease(1))
    s.lease(R, Lease(11))
    assert s.reference.superseded_at == {Lease(1): 2}
    s.step()
    s.zero(W, Lease(11))
    assert s.reference.owner == {(Block(1), W): Lease(11)}


def test_a_block_is_copied_onto_another() -> None:
    s = Scene()
    s.computed()
    s.lease(R, Lease(2))
    s.step()
    s.copy_slot(W, Lease(1), Lease(2), C)
    s.attend(W, Lease(2), C)
    assert (Lease(2), W, C) in s.reference.written


def test_a_chunk_is_stored_on_two_workers() -> None:
    s = Scene(workers=2)
    s.computed()
    p = s.issued_store()
    assert s.reference.where == {Key(1): Residency(1)}
    assert set(s.reference.reading) == {(1, 0, 1, 1), (1, 1, 1, 1)}
    s.step()
    s.carried_out(p)
    assert set(s.reference.reading) == set()
    assert s.reference.ready == set()
    s.publish(Job(1), Residency(1))
    assert s.reference.ready == {Residency(1)}
    assert set(s.reference.placed) == {(1, 0), (1, 1)}


def test_a_flushed_store_frees_its_blocks_when_the_worker_has_waited() -> None:
    s = Scene()
    s.computed()
    p = s.issued_store()
    s.flush(Job(1))
    s.step()
    s.start_store(W, p)
    s.submit(W, Job(1))
    s.land(W, p)
    s.end(W, Job(1))
    assert len(s.reference.reading) == 1
    s.waited(W, Job(1))
    assert len(s.reference.reading) == 0


def test_a_wait_that_no_flush_asked_for_frees_nothing() -> None:
    s = Scene()
    s.computed()
    p = s.issued_store()
    s.step()
    s.start_store(W, p)
    s.submit(W, Job(1))
    s.land(W, p)
    s.end(W, Job(1))
    s.waited(W, Job(1))
    assert len(s.reference.reading) == 1


def test_a_chunk_is_loaded_and_its_pin_goes() -> None:
    s = Scene()
    s.stored()
    p = s.issued_load()
    s.expect(Lease(11))
    assert s.reference.expected == {Lease(11)}
    assert set(s.reference.pinned) == {(1, 101)}
    assert set(s.reference.incoming) == {(11, 101)}
    s.carried_out(p)
    s.unpin(Job(101), Residency(1))
    s.settle(p)
    assert (len(s.reference.pinned), len(s.reference.incoming)) == (0, 0)
    s.attend(W, Lease(11), C)
    s.drained(0)


def test_a_failed_load_gives_its_blocks_back_to_be_computed() -> None:
    s = Scene()
    s.stored()
    p = s.issued_load()
    s.start_load(W, p)
    s.submit(W, Job(101))
    s.fail(W, Job(101))
    s.report(W, Job(101))
    s.unpin(Job(101), Residency(1))
    s.release(p)
    s.step()
    s.compute(W, Lease(11), C)
    s.drained(0)


def test_a_failed_store_drops_its_chunk_alone() -> None:
    s = Scene()
    s.computed()
    p = s.issued_store()
    s.step()
    s.start_store(W, p)
    s.submit(W, Job(1))
    s.fail(W, Job(1))
    s.report(W, Job(1))
    s.drop(Job(1), Residency(1))
    assert (s.reference.where, s.reference.occupant) == ({}, {})
    s.admit(Residency(11))
    assert s.reference.where == {Key(1): Residency(11)}


def test_a_chunk_is_evicted_and_its_slot_used_again() -> None:
    s = Scene()
    s.stored()
    s.evict(Residency(1))
    assert (s.reference.resident, s.reference.ready) == (set(), set())
    s.admit(Residency(11))
    assert s.reference.latest == {Slot(1): Residency(11)}


def test_a_reset_forgets_stores_in_flight_and_comes_twice() -> None:
    s = Scene()
    s.computed()
    p = s.issued_store()
    s.step()
    s.start_store(W, p)
    s.reset()
    s.reset()
    assert s.reference.epoch == 2
    assert (s.reference.storing, len(s.reference.reading)) == (set(), 0)
    s.submit(W, Job(1))
    s.land(W, p)
    s.end(W, Job(1))
    s.report(W, Job(1))
    assert len(s.reference.placed) == 0
    s.drained(0)


def test_step_n_plus_1_is_scheduled_before_step_n_reports() -> None:
    s = Scene()
    s.computed()
    s.issued_store()
    s.close_window()
    s.close_window()
    assert (s.reference.now, s.reference.at[W]) == (4, 1)
    s.launch(W)
    s.launch(W)
    with pytest.raises(Broken):
        s.launch(W)


def test_the_tier_hears_of_a_request_uses_its_keys_and_hears_of_its_end() -> None:
    s = Scene()
    s.computed()
    s.tier_new(R)
    s.tier_call(R)
    s.use_key(C, C)
    s.answer(R, 4, 4, 8)
    with pytest.raises(Broken) as early:
        s.drained(0)
    assert early.value.id == "P6"
    s.tier_finished(R)
    assert (s.reference.announced, s.reference.concluded) == ({R}, {R})
    s.drained(0)


@pytest.mark.parametrize(("tokens", "holds"), [(0, True), (4, True), (5, False), (-1, False)])
def test_an_answer_lies_within_the_request(tokens: int, holds: bool) -> None:
    s = Scene()
    s.computed()
    if holds:
        s.answer(R, 4, tokens, 8)
        return
    with pytest.raises(Broken) as broken:
        s.answer(R, 4, tokens, 8)
    assert broken.value.id == "P16"


def test_a_lookup_is_put_off_and_asked_again() -> None:
    s = Scene()
    s.stored()
    s.defer(R)
    assert set(s.reference.deferred) == {(R, 3)}
    s.ask(R)
    assert set(s.reference.deferred) == set()


@pytest.mark.parametrize(
    ("before", "id", "kind"),
    [
        (("arrive", "defer", "step"), "L1", "oblige"),
        ((), "L2", "oblige"),
        (("arrive",), "", "assume"),
        # Not asked about for two windows: the scheduler puts nothing off.
        (("arrive", "defer", "step", "step"), "", "assume"),
    ],
)
def test_who_is_at_fault_when_the_engine_does_not_come_to_rest(
    before: tuple[str, ...], id: str, kind: str
) -> None:
    s = Scene()
    for action in before:
        getattr(s, action)(*([] if action == "step" else [R]))
    with pytest.raises(Broken) as broken:
        s.stall()
    assert (broken.value.id, broken.value.kind) == (id, kind)


def test_economy_is_judged_and_changes_nothing() -> None:
    s = Scene()
    s.stored()
    s.judge_answer(R, 8, 8)
    s.judge_need(R, Key(1), 8, 1)
    s.judge_repeat(R, 9, 8)
    s.judge_chunk(R, Key(1), 0, 0)
    s.judge_chunk(R, Key(1), 2, 1)
    s.judge_again(R, 1, 0)
    s.judge_twice(R, Key(1), 0)
    s.judge_tail(R, OTHER, Key(1), 1, 1)
    s.judge_events(Key(1), 1, 1)
    s.judge_age(Residency(1), Residency(2), 3, 3)
    s.judge_order(Residency(2), Residency(1), 2, 1)
    assert s.reference.where == {Key(1): Residency(1)}


def test_a_call_that_raises_breaks_p11() -> None:
    with pytest.raises(Broken) as broken:
        Scene().crash()
    assert broken.value.id == "P11"


def test_every_action_was_played() -> None:
    """Runs last in this file: the histories above leave no action of the contract out."""
    for name, history in list(globals().items()):
        wanted = name.startswith("test_") and not inspect.signature(history).parameters
        if wanted and name != "test_every_action_was_played":
            history()
    # What these two say is only ever a finding.
    assert set(Scene.played) == set(contract().actions) - {"crash", "stall"}


def test_workers_are_independent() -> None:
    s = Scene(workers=2)
    s.computed()
    p = s.issued_store()
    s.step()
    s.start_store(Worker(0), p)
    s.submit(Worker(0), Job(1))
    s.land(Worker(0), p)
    s.end(Worker(0), Job(1))
    s.report(Worker(0), Job(1))
    with pytest.raises(Broken) as broken:
        s.publish(Job(1), Residency(1))
    assert (broken.value.id, broken.value.kind) == ("P4", "oblige")
