"""Promises about what changes a block, and what reads it."""

from __future__ import annotations

from kvproof.model.contract import Lease
from tests.conformance.promises.begins import leased_twice_ahead, stored_from, two_leases
from tests.conformance.promises.table import D, Move, breaks, holds
from tests.model.scene import C, R, Scene, W


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
