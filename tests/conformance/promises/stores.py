"""Promises about stores: how they are issued and planned."""

from __future__ import annotations

from kvproof.model.contract import Job, Lease, Residency
from tests.conformance.promises.begins import pinned, stored_from
from tests.conformance.promises.table import D, Move, breaks, by_hand, holds
from tests.model.scene import OTHER, C, R, Scene, W


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


@breaks("A-make")
def a_store_takes_a_chunk_when_it_is_submitted(s: Scene) -> Move:
    s.admit(Residency(1))
    s.issue_store(Job(1))
    s.submit(W, Job(1))
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
def a_piece_is_planned_when_its_store_is_submitted(s: Scene) -> Move:
    s.computed()
    move = stored_from(s, 1)
    s.submit(W, Job(1))
    return move


@by_hand("S1", "handed_at.pop", 1)
def a_store_reads_what_is_right_in_a_lease_of_nobody(s: Scene) -> Move:
    s.computed()
    return stored_from(s, 1)


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
