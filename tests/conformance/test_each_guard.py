"""Each guard of the reference, and each part of one, broken by the smallest history that does.

Most of what a trace can break stands in ``test_monitor``. Here are the promises of engine, workers
and tier, and the parts of conditions that hide behind others: a guard that no history needs is one
that nobody would miss. ``kvproof prove --mutants`` and ``scripts/guards`` look for such.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kvproof.model.broken import Broken
from kvproof.model.contract import Content, Job, Lease, Place, Position, Residency, Worker
from tests.model.scene import OTHER, C, R, Scene, W

Move = tuple[Callable[..., None], *tuple[int, ...]]
Bad = Callable[[Scene], Move]
Good = Callable[[Scene], None]

BAD: dict[str, tuple[str, Bad]] = {}
GOOD: dict[str, Good] = {}
D = Content(8)
"""A content that no key of the scene names."""


def breaks(id: str) -> Callable[[Bad], Bad]:
    """All moves of the history hold but the one that it returns, which breaks ``id``."""

    def register(history: Bad) -> Bad:
        BAD[history.__name__] = (id, history)
        return history

    return register


def holds(history: Good) -> Good:
    GOOD[history.__name__] = history
    return history


@pytest.mark.parametrize("name", BAD)
def test_the_last_move_breaks_its_promise(name: str) -> None:
    id, history = BAD[name]
    move, *params = history(Scene())
    with pytest.raises(Broken) as broken:
        move(*params)
    assert (broken.value.id or f"A-{broken.value.action}") == id


@pytest.mark.parametrize("name", GOOD)
def test_every_move_holds(name: str) -> None:
    GOOD[name](Scene())


# --- requests ------------------------------------------------------------------------------------


@breaks("A-arrive")
def a_request_arrives_that_is_there(s: Scene) -> Move:
    s.arrive(R)
    return s.arrive, R


@breaks("A-finish")
def a_request_ends_twice(s: Scene) -> Move:
    s.arrive(R)
    s.finish(R)
    return s.finish, R


@breaks("A-preempt")
def a_request_is_preempted_that_has_ended(s: Scene) -> Move:
    s.arrive(R)
    s.finish(R)
    return s.preempt, R


@breaks("A-ask")
def the_scheduler_is_asked_about_nobody(s: Scene) -> Move:
    return s.ask, R


@breaks("A-answer")
def an_answer_is_given_for_nobody(s: Scene) -> Move:
    return s.answer, R, 0, 0, 0


@breaks("A-defer")
def an_answer_is_put_off_for_nobody(s: Scene) -> Move:
    return s.defer, R


# --- leases --------------------------------------------------------------------------------------


@breaks("A-lease")
def a_block_is_handed_to_nobody(s: Scene) -> Move:
    return s.lease, R, Lease(1)


@breaks("A-lease")
def a_block_is_handed_out_that_a_load_fills(s: Scene) -> Move:
    s.stored()
    s.issued_load()
    return s.lease, R, Lease(21)


@breaks("A-share")
def a_lease_is_shared_with_nobody(s: Scene) -> Move:
    s.computed()
    return s.share, OTHER, Lease(1)


@breaks("A-share")
def a_lease_is_shared_with_who_holds_it(s: Scene) -> Move:
    s.computed()
    return s.share, R, Lease(1)


@breaks("A-share")
def a_lease_is_shared_whose_block_was_handed_out_again(s: Scene) -> Move:
    s.computed()
    s.arrive(OTHER)
    s.free(R, Lease(1))
    s.lease(R, Lease(11))
    return s.share, OTHER, Lease(1)


@breaks("A-share")
def a_lease_is_shared_that_a_load_fills(s: Scene) -> Move:
    s.stored()
    s.issued_load()
    s.arrive(OTHER)
    return s.share, OTHER, Lease(11)


@breaks("A-free")
def a_lease_is_given_up_twice(s: Scene) -> Move:
    s.computed()
    s.free(R, Lease(1))
    return s.free, R, Lease(1)


@breaks("A-free")
def a_lease_is_given_up_that_a_load_fills(s: Scene) -> Move:
    s.stored()
    s.issued_load()
    return s.free, R, Lease(11)


@breaks("A-expect")
def a_load_is_expected_in_no_lease(s: Scene) -> Move:
    return s.expect, Lease(1)


# --- changes of blocks ---------------------------------------------------------------------------


@breaks("A-launch")
def a_worker_begins_a_step_that_is_not_scheduled(s: Scene) -> Move:
    return s.launch, W


@breaks("A-compute")
def a_forward_writes_a_block_that_is_handed_out_later(s: Scene) -> Move:
    s.arrive(R)
    s.lease(R, Lease(1))
    return s.compute, W, Lease(1), C


@breaks("A-compute")
def a_forward_writes_a_block_that_was_handed_out_again(s: Scene) -> Move:
    s.computed()
    s.free(R, Lease(1))
    s.lease(R, Lease(11))
    s.step()
    return s.compute, W, Lease(1), C


@breaks("A-compute")
def a_forward_writes_a_block_that_a_load_fills(s: Scene) -> Move:
    s.stored()
    s.issued_load()
    return s.compute, W, Lease(11), C


@breaks("A-zero")
def a_block_is_cleared_before_its_step(s: Scene) -> Move:
    s.arrive(R)
    s.lease(R, Lease(1))
    return s.zero, W, Lease(1)


@breaks("A-zero")
def a_block_is_cleared_for_a_lease_that_is_over(s: Scene) -> Move:
    s.arrive(R)
    s.lease(R, Lease(1))
    s.step()
    s.free(R, Lease(1))
    s.lease(R, Lease(11))
    s.step()
    return s.zero, W, Lease(1)


@breaks("A-zero")
def a_block_is_cleared_that_a_load_fills(s: Scene) -> Move:
    s.stored()
    s.issued_load()
    return s.zero, W, Lease(11)


@breaks("A-zero")
def a_block_is_cleared_that_was_computed(s: Scene) -> Move:
    s.computed()
    return s.zero, W, Lease(1)


@breaks("S1")
def a_store_reads_a_lease_whose_block_was_cleared(s: Scene) -> Move:
    s.computed()
    s.free(R, Lease(1))
    s.lease(R, Lease(11))
    s.step()
    s.zero(W, Lease(11))
    return stored_from(s, 1)


@holds
def a_block_is_computed_whose_next_hand_out_comes_in_a_later_step(s: Scene) -> None:
    leased_twice_ahead(s)
    s.compute(W, Lease(1), C)


@holds
def a_block_is_cleared_whose_next_hand_out_comes_in_a_later_step(s: Scene) -> None:
    leased_twice_ahead(s)
    s.zero(W, Lease(1))


@holds
def a_block_is_copied_onto_one_whose_next_hand_out_comes_in_a_later_step(s: Scene) -> None:
    s.computed(2)
    leased_twice_ahead(s, arrive=False)
    s.copy_slot(W, Lease(2), Lease(1), C)


@holds
def a_block_is_copied_from_one_whose_next_hand_out_comes_in_a_later_step(s: Scene) -> None:
    s.computed()
    s.lease(R, Lease(2))
    s.close_window()
    s.free(R, Lease(1))
    s.lease(R, Lease(11))
    s.close_window()
    s.launch(W)
    s.copy_slot(W, Lease(1), Lease(2), C)


@holds
def a_block_is_cleared_before_a_store_of_its_own_lease(s: Scene) -> None:
    s.arrive(R)
    s.lease(R, Lease(1))
    s.issued_store()
    s.step()
    s.zero(W, Lease(1))


@holds
def a_block_is_copied_onto_one_before_a_store_of_its_own_lease(s: Scene) -> None:
    s.computed(2)
    s.lease(R, Lease(1))
    s.issued_store()
    s.step()
    s.copy_slot(W, Lease(2), Lease(1), C)


@breaks("A-copy_slot")
def a_block_is_copied_onto_one_that_a_load_fills(s: Scene) -> Move:
    s.stored()
    s.lease(R, Lease(2))
    s.step()
    s.compute(W, Lease(2), C)
    s.issued_load()
    return s.copy_slot, W, Lease(2), Lease(11), C


@breaks("A-copy_slot")
def a_block_is_copied_onto_one_that_is_handed_out_later(s: Scene) -> Move:
    s.computed()
    s.lease(R, Lease(2))
    return s.copy_slot, W, Lease(1), Lease(2), C


@breaks("A-copy_slot")
def a_block_is_copied_onto_one_that_was_handed_out_again(s: Scene) -> Move:
    s.computed()
    s.lease(R, Lease(2))
    s.step()
    s.free(R, Lease(2))
    s.lease(R, Lease(12))
    s.step()
    return s.copy_slot, W, Lease(1), Lease(2), C


@breaks("A-copy_slot")
def a_block_is_copied_that_was_handed_out_again(s: Scene) -> Move:
    s.computed()
    s.free(R, Lease(1))
    s.lease(R, Lease(11))
    s.lease(R, Lease(2))
    s.step()
    return s.copy_slot, W, Lease(1), Lease(2), C


@breaks("A-copy_slot")
def a_block_is_copied_that_nobody_computed(s: Scene) -> Move:
    two_leases(s)
    return s.copy_slot, W, Lease(1), Lease(2), C


@breaks("S14")
def a_block_is_copied_before_its_load_has_ended(s: Scene) -> Move:
    two_leases(s)
    s.expect(Lease(1))
    return s.copy_slot, W, Lease(1), Lease(2), C


@breaks("A-copy_slot")
def a_block_is_copied_onto_itself(s: Scene) -> Move:
    s.computed()
    return s.copy_slot, W, Lease(1), Lease(1), C


@breaks("S3")
def a_block_is_copied_onto_one_that_a_store_reads(s: Scene) -> Move:
    s.computed()
    s.issued_store()
    s.free(R, Lease(1))
    s.lease(R, Lease(11))
    s.lease(R, Lease(2))
    s.step()
    s.compute(W, Lease(2), C)
    return s.copy_slot, W, Lease(2), Lease(11), C


@breaks("S3")
def a_block_is_cleared_that_a_store_reads(s: Scene) -> Move:
    s.computed()
    s.issued_store()
    s.free(R, Lease(1))
    s.lease(R, Lease(11))
    s.step()
    return s.zero, W, Lease(11)


@breaks("A-attend")
def a_forward_reads_what_nobody_computed(s: Scene) -> Move:
    two_leases(s)
    return s.attend, W, Lease(1), C


@breaks("S14")
def a_forward_reads_what_was_answered_for_and_did_not_come(s: Scene) -> Move:
    two_leases(s)
    s.expect(Lease(1))
    return s.attend, W, Lease(1), C


@breaks("A-attend")
def a_forward_reads_a_lease_that_an_earlier_step_replaced(s: Scene) -> Move:
    s.computed()
    s.free(R, Lease(1))
    s.lease(R, Lease(11))
    s.step()
    s.step()
    return s.attend, W, Lease(1), C


@breaks("S14")
def a_forward_reads_a_state_after_it_was_advanced(s: Scene) -> Move:
    s.computed()
    s.free(R, Lease(1))
    s.lease(R, Lease(11))
    s.step()
    s.compute(W, Lease(11), D)
    return s.attend, W, Lease(1), C


# --- the tier ------------------------------------------------------------------------------------


@breaks("A-admit")
def a_slot_is_handed_out_before_its_last_hand_out(s: Scene) -> Move:
    s.admit(Residency(11))
    s.reset()
    return s.admit, Residency(1)


@breaks("S8")
def a_key_gets_a_second_slot(s: Scene) -> Move:
    s.admit(Residency(1))
    s.reference.residency_slot[Residency(11)] = s.reference.residency_slot[Residency(2)]
    return s.admit, Residency(11)


@breaks("S8")
def a_chunk_is_evicted_twice(s: Scene) -> Move:
    s.stored()
    s.evict(Residency(1))
    return s.evict, Residency(1)


@breaks("S7")
def a_chunk_is_evicted_that_is_being_stored(s: Scene) -> Move:
    s.admit(Residency(1))
    return s.evict, Residency(1)


@breaks("P5")
def a_failed_store_of_before_a_reset_is_dropped(s: Scene) -> Move:
    failed_store(s)
    s.reset()
    return s.drop, Job(1), Residency(1)


@breaks("P4")
def a_chunk_is_dropped_for_the_store_of_another(s: Scene) -> Move:
    s.computed()
    p = s.issued_store()
    s.lease(R, Lease(2))
    s.issued_store(2, 2, 2)
    s.step()
    s.carried_out(p)
    return s.drop, Job(1), Residency(2)


@breaks("P4")
def a_chunk_is_dropped_twice(s: Scene) -> Move:
    failed_store(s)
    s.drop(Job(1), Residency(1))
    return s.drop, Job(1), Residency(1)


@breaks("P4")
def a_failed_store_is_dropped_before_its_report(s: Scene) -> Move:
    failed_store(s, reported=False)
    return s.drop, Job(1), Residency(1)


@breaks("P5")
def a_load_of_before_a_reset_is_completed(s: Scene) -> Move:
    s.stored()
    s.carried_out(s.issued_load())
    s.reset()
    return s.unpin, Job(101), Residency(1)


@breaks("P4")
def a_load_is_completed_twice(s: Scene) -> Move:
    s.stored()
    s.carried_out(s.issued_load())
    s.unpin(Job(101), Residency(1))
    return s.unpin, Job(101), Residency(1)


@breaks("P4")
def a_load_is_completed_before_it_is_issued(s: Scene) -> Move:
    pinned(s)
    return s.unpin, Job(101), Residency(1)


@breaks("P4")
def a_load_is_completed_before_its_report(s: Scene) -> Move:
    s.stored()
    s.issued_load()
    return s.unpin, Job(101), Residency(1)


@breaks("P6")
def the_tier_is_called_before_it_is_told(s: Scene) -> Move:
    s.arrive(R)
    return s.tier_call, R


@breaks("P6")
def the_tier_is_called_after_the_end(s: Scene) -> Move:
    s.arrive(R)
    s.tier_new(R)
    s.tier_finished(R)
    return s.tier_call, R


@breaks("P6")
def the_tier_is_told_twice_of_the_end(s: Scene) -> Move:
    s.arrive(R)
    s.tier_new(R)
    s.tier_finished(R)
    return s.tier_finished, R


@breaks("P6")
def the_tier_is_not_told_of_the_end(s: Scene) -> Move:
    s.arrive(R)
    s.tier_new(R)
    return s.drained, 0


# --- lookups and loads ---------------------------------------------------------------------------


@breaks("S5")
def an_answer_of_an_earlier_lookup_is_loaded(s: Scene) -> Move:
    s.stored()
    s.ask(R)
    s.hit(R, Residency(1))
    s.ask(R)
    s.open_load(Job(101))
    return s.pin, Job(101), Residency(1)


@breaks("S5")
def an_answer_of_before_a_preemption_is_loaded(s: Scene) -> Move:
    s.stored()
    s.ask(R)
    s.hit(R, Residency(1))
    s.preempt(R)
    s.open_load(Job(101))
    return s.pin, Job(101), Residency(1)


@breaks("S5")
def an_answer_is_loaded_after_the_request_has_ended(s: Scene) -> Move:
    s.stored()
    s.ask(R)
    s.hit(R, Residency(1))
    s.open_load(Job(101))
    s.finish(R)
    return s.pin, Job(101), Residency(1)


@breaks("A-stall")
def a_lookup_that_was_asked_again_puts_nothing_off(s: Scene) -> Move:
    s.arrive(R)
    s.defer(R)
    s.ask(R)
    return (s.stall,)


@breaks("A-stall")
def a_lookup_of_before_a_preemption_puts_nothing_off(s: Scene) -> Move:
    s.arrive(R)
    s.defer(R)
    s.preempt(R)
    return (s.stall,)


@breaks("L2")
def a_lookup_of_a_request_that_has_ended_puts_nothing_off(s: Scene) -> Move:
    s.arrive(R)
    s.defer(R)
    s.finish(R)
    return (s.stall,)


@breaks("A-stall")
def the_engine_stalls_while_a_copy_goes_on(s: Scene) -> Move:
    s.computed()
    s.issued_store()
    s.finish(R)
    return (s.stall,)


@breaks("A-drained")
def nothing_is_left_to_do_but_a_report(s: Scene) -> Move:
    s.computed()
    s.issued_store()
    return s.drained, 0


@breaks("P12")
def a_store_is_left_uncompleted(s: Scene) -> Move:
    s.computed()
    p = s.issued_store()
    s.step()
    s.carried_out(p)
    return s.drained, 0


@breaks("P12")
def a_pin_is_left(s: Scene) -> Move:
    s.stored()
    s.carried_out(s.issued_load())
    return s.drained, 0


@breaks("P12")
def the_scheduler_keeps_something(s: Scene) -> Move:
    return s.drained, 1


@breaks("A-open_load")
def a_load_is_prepared_twice(s: Scene) -> Move:
    s.arrive(R)
    s.open_load(Job(101))
    return s.open_load, Job(101)


@breaks("A-open_load")
def a_load_is_prepared_for_nobody(s: Scene) -> Move:
    return s.open_load, Job(101)


@breaks("A-pin")
def a_load_is_promised_a_chunk_that_was_not_prepared(s: Scene) -> Move:
    s.stored()
    return s.pin, Job(101), Residency(1)


@breaks("A-pin")
def a_load_of_before_a_reset_is_promised_a_chunk(s: Scene) -> Move:
    s.arrive(R)
    s.open_load(Job(101))
    s.reset()
    return s.pin, Job(101), Residency(1)


@breaks("A-pin")
def a_load_is_promised_a_chunk_when_it_is_under_way(s: Scene) -> Move:
    s.stored()
    s.ask(R)
    s.hit(R, Residency(1))
    s.open_load(Job(101))
    s.issue_load(Job(101))
    return s.pin, Job(101), Residency(1)


@breaks("A-issue_load")
def a_load_is_issued_that_was_not_prepared(s: Scene) -> Move:
    return s.issue_load, Job(101)


@breaks("A-issue_load")
def a_load_is_issued_twice(s: Scene) -> Move:
    s.arrive(R)
    s.open_load(Job(101))
    s.issue_load(Job(101))
    return s.issue_load, Job(101)


@breaks("A-issue_load")
def a_load_of_before_a_reset_is_issued(s: Scene) -> Move:
    s.arrive(R)
    s.open_load(Job(101))
    s.reset()
    return s.issue_load, Job(101)


@breaks("A-plan_load")
def a_piece_of_a_store_is_planned_as_a_load(s: Scene) -> Move:
    s.computed()
    s.issued_store()
    return s.plan_load, s.piece(2, 1, 1, 1)


@breaks("A-plan_load")
def a_piece_is_planned_before_its_load_is_issued(s: Scene) -> Move:
    pinned(s)
    return s.plan_load, s.piece(101, 101, 11, 1)


@breaks("A-plan_load")
def a_piece_of_a_load_is_planned_a_step_too_late(s: Scene) -> Move:
    pinned(s)
    s.issue_load(Job(101))
    s.step()
    return s.plan_load, s.piece(101, 101, 11, 1)


@breaks("A-plan_load")
def a_piece_of_a_load_of_before_a_reset_is_planned(s: Scene) -> Move:
    pinned(s)
    s.issue_load(Job(101))
    s.reset()
    return s.plan_load, s.piece(101, 101, 11, 1)


@breaks("S5")
def a_piece_is_loaded_from_a_chunk_that_is_not_pinned(s: Scene) -> Move:
    s.stored()
    s.ask(R)
    s.open_load(Job(101))
    s.issue_load(Job(101))
    return s.plan_load, s.piece(101, 101, 1, 1)


@breaks("S4")
def a_piece_is_loaded_to_another_position(s: Scene) -> Move:
    pinned(s)
    s.lease(R, Lease(2))
    s.issue_load(Job(101))
    return s.plan_load, s.piece(101, 101, 2, 1)


@breaks("S4")
def a_piece_is_loaded_that_was_never_stored(s: Scene) -> Move:
    pinned(s)
    s.reference.place_residency[Place(30)] = Residency(1)
    s.reference.place_position[Place(30)] = Position(1)
    s.issue_load(Job(101))
    return s.plan_load, s.piece(130, 101, 11, 30)


@breaks("S11")
def a_piece_is_loaded_into_a_lease_that_was_given_up(s: Scene) -> Move:
    pinned(s)
    s.issue_load(Job(101))
    s.free(R, Lease(11))
    return s.plan_load, s.piece(101, 101, 11, 1)


@breaks("S11")
def a_piece_is_loaded_into_a_lease_that_two_hold(s: Scene) -> Move:
    pinned(s)
    s.arrive(OTHER)
    s.share(OTHER, Lease(11))
    s.issue_load(Job(101))
    return s.plan_load, s.piece(101, 101, 11, 1)


@breaks("S11")
def a_piece_is_loaded_over_what_was_computed(s: Scene) -> Move:
    s.stored()
    s.ask(R)
    s.hit(R, Residency(1))
    s.open_load(Job(101))
    s.pin(Job(101), Residency(1))
    s.issue_load(Job(101))
    return s.plan_load, s.piece(101, 101, 1, 1)


@breaks("S11")
def a_piece_is_loaded_twice(s: Scene) -> Move:
    pinned(s)
    s.issue_load(Job(101))
    p = s.piece(101, 101, 11, 1)
    s.plan_load(p)
    return s.plan_load, p


# --- stores --------------------------------------------------------------------------------------


@breaks("A-issue_store")
def a_store_is_issued_twice(s: Scene) -> Move:
    s.issue_store(Job(1))
    return s.issue_store, Job(1)


@breaks("A-issue_store")
def a_load_is_issued_as_a_store(s: Scene) -> Move:
    s.arrive(R)
    s.open_load(Job(101))
    return s.issue_store, Job(101)


@breaks("A-make")
def a_load_takes_a_chunk_to_store(s: Scene) -> Move:
    s.arrive(R)
    s.admit(Residency(1))
    s.open_load(Job(101))
    s.issue_load(Job(101))
    return s.make, Job(101), Residency(1)


@breaks("A-make")
def a_store_of_before_a_reset_takes_a_chunk(s: Scene) -> Move:
    s.issue_store(Job(1))
    s.reset()
    s.admit(Residency(1))
    return s.make, Job(1), Residency(1)


@breaks("A-make")
def a_store_takes_a_chunk_a_step_too_late(s: Scene) -> Move:
    s.admit(Residency(1))
    s.issue_store(Job(1))
    s.step()
    return s.make, Job(1), Residency(1)


@breaks("S7")
def a_store_takes_a_chunk_that_was_not_handed_out(s: Scene) -> Move:
    s.issue_store(Job(1))
    return s.make, Job(1), Residency(1)


@breaks("S7")
def a_store_takes_a_chunk_that_another_stores(s: Scene) -> Move:
    s.admit(Residency(1))
    s.issue_store(Job(1))
    s.make(Job(1), Residency(1))
    s.issue_store(Job(2))
    return s.make, Job(2), Residency(1)


@breaks("A-plan_store")
def a_piece_of_a_load_is_planned_as_a_store(s: Scene) -> Move:
    pinned(s)
    s.issue_load(Job(101))
    return s.plan_store, s.piece(101, 101, 11, 1)


@breaks("A-plan_store")
def a_piece_of_a_store_is_planned_a_step_too_late(s: Scene) -> Move:
    s.computed()
    s.admit(Residency(1))
    s.issue_store(Job(1))
    s.make(Job(1), Residency(1))
    s.step()
    return s.plan_store, s.piece(1, 1, 1, 1)


@breaks("A-plan_store")
def a_piece_of_a_store_of_before_a_reset_is_planned(s: Scene) -> Move:
    s.computed()
    s.admit(Residency(1))
    s.issue_store(Job(1))
    s.make(Job(1), Residency(1))
    s.reset()
    return s.plan_store, s.piece(1, 1, 1, 1)


@breaks("S7")
def a_piece_is_stored_into_a_chunk_that_another_stores(s: Scene) -> Move:
    s.computed()
    s.issued_store()
    s.issue_store(Job(2))
    return s.plan_store, s.piece(2, 2, 1, 1)


@breaks("S1")
def a_store_reads_a_lease_of_another_request_with_other_bytes(s: Scene) -> Move:
    s.arrive(R)
    s.arrive(OTHER)
    s.lease(OTHER, Lease(1))
    s.step()
    s.compute(W, Lease(1), D)
    return stored_from(s, 1)


@breaks("S1")
def a_store_reads_a_lease_whose_block_holds_other_bytes_by_now(s: Scene) -> Move:
    s.computed()
    s.free(R, Lease(1))
    s.lease(R, Lease(11))
    s.step()
    s.compute(W, Lease(11), D)
    return stored_from(s, 1)


@breaks("S1")
def a_store_reads_a_block_that_was_never_handed_out(s: Scene) -> Move:
    s.arrive(R)
    return stored_from(s, 1)


@breaks("S4")
def a_store_reads_another_position(s: Scene) -> Move:
    s.arrive(R)
    s.lease(R, Lease(2))
    return stored_from(s, 2)


@breaks("S4")
def two_pieces_are_stored_in_one_place(s: Scene) -> Move:
    s.computed()
    s.issued_store()
    return s.plan_store, s.piece(2, 1, 1, 1)


@holds
def a_store_reads_another_position_with_the_same_bytes(s: Scene) -> None:
    s.computed(2)
    move, *params = stored_from(s, 2)
    move(*params)


@holds
def a_store_reads_what_is_given_up_in_this_step_and_computed_in_a_later_one(s: Scene) -> None:
    s.arrive(R)
    s.lease(R, Lease(1))
    s.close_window()
    s.free(R, Lease(1))
    p = s.issued_store()
    s.close_window()
    s.launch(W)
    s.compute(W, Lease(1), C)
    s.launch(W)
    s.start_store(W, p)


@breaks("S1")
def a_store_reads_what_was_given_up_in_an_earlier_step(s: Scene) -> Move:
    s.arrive(R)
    s.lease(R, Lease(1))
    s.free(R, Lease(1))
    s.step()
    return stored_from(s, 1)


# --- copies --------------------------------------------------------------------------------------


@breaks("A-start_store")
def a_piece_of_a_load_starts_as_a_store(s: Scene) -> Move:
    s.stored()
    return s.start_store, W, s.issued_load()


@breaks("A-start_store")
def a_piece_starts_that_was_not_planned(s: Scene) -> Move:
    s.computed()
    s.issued_store()
    s.step()
    return s.start_store, W, s.piece(2, 1, 1, 1)


@breaks("A-start_store")
def a_piece_of_a_store_starts_before_its_step(s: Scene) -> Move:
    s.computed()
    return s.start_store, W, s.issued_store()


@breaks("A-start_store")
def a_piece_of_a_store_starts_twice(s: Scene) -> Move:
    s.computed()
    p = s.issued_store()
    s.step()
    s.start_store(W, p)
    return s.start_store, W, p


@breaks("A-start_load")
def a_piece_of_a_store_starts_as_a_load(s: Scene) -> Move:
    s.computed()
    p = s.issued_store()
    s.step()
    return s.start_load, W, p


@breaks("A-start_load")
def a_piece_of_a_load_starts_before_its_step(s: Scene) -> Move:
    pinned(s)
    s.issue_load(Job(101))
    p = s.piece(101, 101, 11, 1)
    s.plan_load(p)
    return s.start_load, W, p


@breaks("A-start_load")
def a_piece_of_a_load_starts_twice(s: Scene) -> Move:
    s.stored()
    p = s.issued_load()
    s.start_load(W, p)
    return s.start_load, W, p


@breaks("S2")
def a_store_starts_before_its_lease_is_computed(s: Scene) -> Move:
    s.arrive(R)
    s.lease(R, Lease(1))
    p = s.issued_store()
    s.step()
    return s.start_store, W, p


@breaks("S7")
def a_store_starts_while_a_dead_load_reads_its_slot(s: Scene) -> Move:
    s.stored()
    s.start_load(W, s.issued_load())
    s.submit(W, Job(101))
    s.reset()
    p = s.issued_store(2, 11, 11)
    s.step()
    return s.start_store, W, p


@holds
def a_dead_store_starts_before_the_next_store_of_its_slot(s: Scene) -> None:
    s.computed()
    dead = s.issued_store()
    s.reset()
    live = s.issued_store(2, 1, 11)
    s.step()
    s.start_store(W, dead)
    s.submit(W, Job(1))
    s.start_store(W, live)


@breaks("S7")
def a_store_starts_before_a_dead_store_of_its_slot(s: Scene) -> Move:
    s.computed()
    s.issued_store()
    s.reset()
    p = s.issued_store(2, 1, 11)
    s.step()
    return s.start_store, W, p


@holds
def a_dead_store_reads_what_was_overwritten(s: Scene) -> None:
    s.computed()
    dead = s.issued_store()
    s.reset()
    s.free(R, Lease(1))
    s.lease(R, Lease(11))
    s.step()
    s.compute(W, Lease(11), D)
    s.start_store(W, dead)


@breaks("S2")
def what_a_dead_store_copied_is_not_thereby_right(s: Scene) -> Move:
    s.arrive(R)
    s.lease(R, Lease(1))
    s.step()
    s.compute(W, Lease(1), D)
    dead = s.issued_store()
    s.reset()
    s.step()
    s.carried_out(dead)
    p = s.issued_store(2, 1, 11)
    s.step()
    return s.start_store, W, p


@holds
def a_load_fills_a_lease_that_a_store_is_to_read(s: Scene) -> None:
    pinned(s)
    s.issue_load(Job(101))
    p = s.piece(101, 101, 11, 1)
    s.plan_load(p)
    s.reference.place_position[Place(30)] = Position(1)
    s.issued_store(3, 11, 30)
    s.step()
    s.start_load(W, p)


@breaks("S3")
def a_load_fills_a_block_that_a_store_reads(s: Scene) -> Move:
    s.stored()
    s.reference.place_position[Place(30)] = Position(1)
    s.issued_store(3, 1, 30)
    return s.start_load, W, s.issued_load()


@holds
def a_block_is_computed_whose_next_lease_a_store_is_to_read(s: Scene) -> None:
    next_lease_stored(s)
    s.compute(W, Lease(1), C)


@holds
def a_block_is_cleared_whose_next_lease_a_store_is_to_read(s: Scene) -> None:
    next_lease_stored(s)
    s.zero(W, Lease(1))


@holds
def a_block_is_copied_onto_one_whose_next_lease_a_store_is_to_read(s: Scene) -> None:
    s.computed(2)
    next_lease_stored(s, arrive=False)
    s.copy_slot(W, Lease(2), Lease(1), C)


@breaks("A-submit")
def a_job_is_submitted_twice(s: Scene) -> Move:
    s.computed()
    p = s.issued_store()
    s.step()
    s.start_store(W, p)
    s.submit(W, Job(1))
    return s.submit, W, Job(1)


@breaks("A-submit")
def a_job_is_submitted_that_was_not_issued(s: Scene) -> Move:
    return s.submit, W, Job(1)


@breaks("A-submit")
def a_job_is_submitted_without_a_piece(s: Scene) -> Move:
    s.computed()
    s.issued_store()
    s.step()
    return s.submit, W, Job(1)


@breaks("A-land")
def a_piece_ends_before_its_job_is_submitted(s: Scene) -> Move:
    s.computed()
    p = s.issued_store()
    s.step()
    s.start_store(W, p)
    return s.land, W, p


@breaks("A-land")
def a_piece_ends_after_its_job(s: Scene) -> Move:
    s.computed()
    p = s.issued_store()
    s.step()
    s.carried_out(p)
    return s.land, W, p


@breaks("A-end")
def a_job_ends_before_its_pieces(s: Scene) -> Move:
    s.computed()
    p = s.issued_store()
    s.step()
    s.start_store(W, p)
    s.submit(W, Job(1))
    return s.end, W, Job(1)


@breaks("A-end")
def a_job_ends_before_it_is_submitted(s: Scene) -> Move:
    s.issue_store(Job(1))
    s.step()
    return s.end, W, Job(1)


@breaks("A-end")
def a_job_ends_twice(s: Scene) -> Move:
    s.computed()
    p = s.issued_store()
    s.step()
    s.carried_out(p)
    return s.end, W, Job(1)


@breaks("A-end")
def a_job_ends_before_an_earlier_one_of_its_lane(s: Scene) -> Move:
    two_copies(s)
    return s.end, W, Job(2)


@breaks("A-fail")
def a_job_fails_before_an_earlier_one_of_its_lane_has_ended(s: Scene) -> Move:
    two_copies(s)
    return s.fail, W, Job(2)


@breaks("A-fail")
def a_job_fails_that_has_ended(s: Scene) -> Move:
    s.computed()
    p = s.issued_store()
    s.step()
    s.carried_out(p)
    return s.fail, W, Job(1)


@breaks("A-fail")
def a_job_fails_before_it_is_submitted(s: Scene) -> Move:
    s.issue_store(Job(1))
    s.step()
    return s.fail, W, Job(1)


@breaks("S3")
def a_wait_counts_for_no_flush_of_a_later_step(s: Scene) -> Move:
    s.computed()
    p = s.issued_store()
    s.step()
    s.start_store(W, p)
    s.submit(W, Job(1))
    s.land(W, p)
    s.end(W, Job(1))
    s.free(R, Lease(1))
    s.lease(R, Lease(11))
    s.flush(Job(1))
    s.waited(W, Job(1))
    s.step()
    return s.compute, W, Lease(11), D


@breaks("P4")
def a_report_comes_before_the_end(s: Scene) -> Move:
    s.computed()
    s.issued_store()
    return s.report, W, Job(1)


# --- ends of loads -------------------------------------------------------------------------------


@breaks("A-settle")
def a_load_is_taken_twice(s: Scene) -> Move:
    s.stored()
    p = s.issued_load()
    s.carried_out(p)
    s.settle(p)
    return s.settle, p


@breaks("A-settle")
def a_piece_is_taken_that_was_not_planned(s: Scene) -> Move:
    s.stored()
    s.carried_out(s.issued_load())
    return s.settle, s.piece(2, 101, 11, 1)


@breaks("S11")
def a_load_is_taken_before_it_has_ended(s: Scene) -> Move:
    s.stored()
    return s.settle, s.issued_load()


@breaks("S10")
def a_failed_load_is_taken(s: Scene) -> Move:
    p = failed_load(s)
    return s.settle, p


@breaks("A-release")
def a_failed_load_is_released_twice(s: Scene) -> Move:
    p = failed_load(s)
    s.release(p)
    return s.release, p


@breaks("A-release")
def a_piece_is_released_that_was_not_planned(s: Scene) -> Move:
    failed_load(s)
    return s.release, s.piece(2, 101, 11, 1)


@breaks("S11")
def a_load_is_released_before_it_has_ended(s: Scene) -> Move:
    s.stored()
    return s.release, s.issued_load()


@breaks("P4")
def a_worker_that_still_copies_completes_no_store(_: Scene) -> Move:
    s = Scene(workers=2)
    s.computed()
    p = s.issued_store()
    s.step()
    for w in (0, 1):
        s.start_store(Worker(w), p)
        s.submit(Worker(w), Job(1))
    s.land(W, p)
    s.end(W, Job(1))
    s.report(W, Job(1))
    return s.publish, Job(1), Residency(1)


# --- what several histories begin with -----------------------------------------------------------


def two_leases(s: Scene) -> None:
    s.arrive(R)
    s.lease(R, Lease(1))
    s.lease(R, Lease(2))
    s.step()


def leased_twice_ahead(s: Scene, arrive: bool = True) -> None:
    """Block 1 is handed out in two windows, of which the worker executes the first."""
    if arrive:
        s.arrive(R)
    s.lease(R, Lease(1))
    s.close_window()
    s.free(R, Lease(1))
    s.lease(R, Lease(11))
    s.close_window()
    s.launch(W)


def next_lease_stored(s: Scene, arrive: bool = True) -> None:
    """The same, and a store of the second hand-out is issued."""
    if arrive:
        s.arrive(R)
    s.lease(R, Lease(1))
    s.close_window()
    s.free(R, Lease(1))
    s.lease(R, Lease(11))
    s.issued_store(1, 11, 1)
    s.close_window()
    s.launch(W)


def stored_from(s: Scene, lease: int) -> Move:
    """The last move of a store of place 1 that reads a lease."""
    s.admit(Residency(1))
    s.issue_store(Job(1))
    s.make(Job(1), Residency(1))
    return s.plan_store, s.piece(1, 1, lease, 1)


def pinned(s: Scene) -> None:
    """Residency 1 is pinned for load 101, which is to fill lease 11."""
    s.stored()
    s.free(R, Lease(1))
    s.ask(R)
    s.hit(R, Residency(1))
    s.lease(R, Lease(11))
    s.open_load(Job(101))
    s.pin(Job(101), Residency(1))


def two_copies(s: Scene) -> None:
    """Stores 1 and 2 have been submitted in this order, and their pieces have ended."""
    s.computed()
    s.lease(R, Lease(2))
    pieces = [s.issued_store(), s.issued_store(2, 2, 2)]
    s.step()
    s.compute(W, Lease(2), C)
    for job, p in zip((1, 2), pieces, strict=True):
        s.start_store(W, p)
        s.submit(W, Job(job))
    for p in pieces:
        s.land(W, p)


def failed_store(s: Scene, reported: bool = True) -> None:
    s.computed()
    p = s.issued_store()
    s.step()
    s.start_store(W, p)
    s.submit(W, Job(1))
    s.fail(W, Job(1))
    if reported:
        s.report(W, Job(1))


def failed_load(s: Scene) -> int:
    s.stored()
    p = s.issued_load()
    s.start_load(W, p)
    s.submit(W, Job(101))
    s.fail(W, Job(101))
    s.report(W, Job(101))
    return p
