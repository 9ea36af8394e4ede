"""A history for every action of the contract: no guard is vacuous, every phase is reached."""

from __future__ import annotations

import inspect

import pytest

from kvproof.model.broken import Broken
from kvproof.model.contract import (
    Block,
    Content,
    Job,
    Key,
    Lease,
    Position,
    Residency,
    Slot,
    Worker,
)
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
    assert set(s.reference.spoiled) == {(R, Residency(1))}
    s.step()
    s.compute(W, Lease(11), C)
    s.drained(0)


def test_where_a_load_failed_it_is_not_tried_again() -> None:
    s = Scene()
    s.stored()
    p = s.issued_load()
    s.start_load(W, p)
    s.submit(W, Job(101))
    s.fail(W, Job(101))
    s.report(W, Job(101))
    s.unpin(Job(101), Residency(1))
    s.release(p)
    s.ask(R)
    s.hit(R, Residency(1))
    s.answer(R, 0, 4, 8, 8)
    s.open_load(Job(102))
    with pytest.raises(Broken) as again:
        s.pin(Job(102), Residency(1))
    assert again.value.id == "L5"


def test_a_load_that_failed_may_change_the_next_answer() -> None:
    s = Scene()
    s.stored()
    p = s.issued_load()
    s.start_load(W, p)
    s.submit(W, Job(101))
    s.fail(W, Job(101))
    s.report(W, Job(101))
    s.release(p)
    s.ask(R)
    s.answer(R, 0, 0, 8, 8)
    assert s.reference.told == {R: 0}


def test_a_load_that_ended_well_is_not_given_up() -> None:
    s = Scene()
    s.stored()
    p = s.issued_load()
    s.carried_out(p)
    with pytest.raises(Broken) as given_up:
        s.release(p)
    assert given_up.value.id == "P14"


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
    s.offer(R, Position(1), 4, 8)
    s.answer(R, 4, 4, 8, 8)
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
        s.answer(R, 4, tokens, 8, 8)
        return
    with pytest.raises(Broken) as broken:
        s.answer(R, 4, tokens, 8, 8)
    assert broken.value.id == "P16"


def test_the_same_question_has_the_same_answer_until_something_changes() -> None:
    s = Scene()
    s.stored()
    s.answer(R, 0, 4, 8, 8)
    s.answer(R, 0, 4, 8, 8)
    s.answer(R, 4, 0, 8, 8)
    assert (s.reference.told, s.reference.told_from) == ({R: 0}, {R: 4})
    s.evict(Residency(1))
    assert s.reference.told == {}
    s.answer(R, 4, 4, 8, 8)
    with pytest.raises(Broken) as other:
        s.answer(R, 4, 3, 8, 8)
    assert other.value.id == "P16"


@pytest.mark.parametrize(("most", "holds"), [(4, True), (3, False), (0, False)])
def test_a_cap_bounds_answers_and_offers(most: int, holds: bool) -> None:
    s = Scene()
    s.computed()
    for action, params in (("answer", (R, 0, 4, 8, most)), ("offer", (R, Position(1), 4, most))):
        if holds:
            getattr(s, action)(*params)
            continue
        with pytest.raises(Broken) as beyond:
            getattr(s, action)(*params)
        assert beyond.value.id == "P15"


def test_what_was_never_allocated_or_is_not_computed_is_not_offered() -> None:
    s = Scene()
    s.computed()
    s.schedule_to(R, 4)
    s.schedule_to(R, 3)
    assert s.reference.computed_to == {R: 4}
    s.offer_is_computed(R, 4)
    with pytest.raises(Broken) as early:
        s.offer_is_computed(R, 5)
    assert early.value.id == "P7"
    with pytest.raises(Broken) as nowhere:
        s.offer(R, Position(2), 4, 8)
    assert nowhere.value.id == "P7"


def test_a_lookup_is_put_off_and_asked_again() -> None:
    s = Scene()
    s.stored()
    s.defer(R, 1, 0, 4, 0)
    assert set(s.reference.deferred) == {(R, 3)}
    s.ask(R)
    assert set(s.reference.deferred) == set()


def test_a_lookup_waits_for_the_jobs_of_its_first_deferral_and_a_few_polls() -> None:
    s = Scene()
    s.computed()
    s.arrive(OTHER)
    p = s.issued_store()
    s.await_key(OTHER, Residency(1))
    for _ in range(3):
        s.ask(OTHER)
        s.defer(OTHER, 1, 0, 4, 0)
    assert (s.reference.putting_off, s.reference.polls) == ({OTHER: 1}, {OTHER: 0})
    s.step()
    s.carried_out(p)
    # A later job does not lengthen the wait.
    s.issue_store(Job(2))
    s.defer(OTHER, 1, 0, 4, 0)
    assert s.reference.polls == {OTHER: 1}
    with pytest.raises(Broken) as patience:
        s.defer(OTHER, 1, 0, 4, 0)
    assert patience.value.id == "L1"
    with pytest.raises(Broken) as stuck:
        s.await_key(OTHER, Residency(1))
    assert stuck.value.id == "L4"
    s.answer(OTHER, 0, 0, 8, 8)
    assert (s.reference.putting_off, s.reference.polls) == ({}, {})


def test_a_lookup_is_not_put_off_for_nothing() -> None:
    s = Scene()
    s.stored()
    s.defer(R, 1, 4, 4, 1)
    with pytest.raises(Broken) as idle:
        s.defer(R, 1, 4, 4, 0)
    assert idle.value.id == "L3"
    s.judge_own_wait(R, 0, 4, 0)
    with pytest.raises(Broken) as own:
        s.judge_own_wait(R, 4, 4, 0)
    assert own.value.id == "L3.1"


def test_asking_pins_nothing() -> None:
    s = Scene()
    s.stored()
    s.ask(R)
    with pytest.raises(Broken) as pinned:
        s.open_load(Job(101))
    assert pinned.value.id == "P16"


def test_a_session_that_goes_on_forgets_what_it_was_answered() -> None:
    s = Scene()
    s.stored()
    s.answer(R, 0, 4, 8, 8)
    s.extend(R)
    assert s.reference.told == {}
    s.answer(R, 0, 0, 8, 8)


def test_a_block_hash_names_one_prefix() -> None:
    s = Scene()
    s.name_prefix(C, C)
    with pytest.raises(Broken) as two:
        s.name_prefix(C, Content(8))
    assert two.value.kind == "assume"


def test_a_lookup_for_a_life_that_has_ended_confuses_incarnations() -> None:
    s = Scene()
    s.stored()
    s.finish(R)
    for action, params in (("look", (R,)), ("await_key", (R, Residency(1)))):
        with pytest.raises(Broken) as dead:
            getattr(s, action)(*params)
        assert dead.value.id == "P13"


def test_a_flush_waits_only_for_blocks_that_are_handed_out_again() -> None:
    s = Scene()
    s.computed()
    s.issued_store()
    with pytest.raises(Broken) as idle:
        s.judge_flush(Job(1))
    assert idle.value.id == "L6"
    s.free(R, Lease(1))
    s.lease(R, Lease(11))
    s.judge_flush(Job(1))


def test_a_loaded_state_is_the_one_that_the_engine_is_told_of() -> None:
    s = Scene()
    s.stored()
    p = s.issued_load()
    s.load_state(p, C)
    with pytest.raises(Broken) as other:
        s.load_state(p, Content(8))
    assert other.value.id == "S9"


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
        getattr(s, action)(*{"step": [], "defer": [R, 1, 0, 1, 0]}.get(action, [R]))
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


def test_a_call_that_raises_breaks_p11_and_a_refused_reset_p10() -> None:
    for action, id in (("crash", "P11"), ("refuse_reset", "P10")):
        with pytest.raises(Broken) as broken:
            getattr(Scene(), action)()
        assert broken.value.id == id


def test_every_action_was_played() -> None:
    """Runs last in this file: the histories above leave no action of the contract out."""
    for name, history in list(globals().items()):
        wanted = name.startswith("test_") and not inspect.signature(history).parameters
        if wanted and name != "test_every_action_was_played":
            history()
    # What these say is only ever a finding.
    assert set(Scene.played) == set(contract().actions) - {"crash", "stall", "refuse_reset"}


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
