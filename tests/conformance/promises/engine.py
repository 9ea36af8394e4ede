"""Promises about requests and leases."""

from __future__ import annotations

from kvproof.model.contract import Lease
from tests.conformance.promises.table import Move, breaks, holds
from tests.model.scene import OTHER, R, Scene


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


@breaks("P13")
def an_answer_is_given_for_nobody(s: Scene) -> Move:
    return s.answer, R, 0, 0, 0, 0


@breaks("P13")
def an_answer_is_put_off_for_nobody(s: Scene) -> Move:
    return s.defer, R, 1, 0, 1, 0


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


# --- what is computed ----------------------------------------------------------------------------


@breaks("A-schedule_to")
def a_request_is_scheduled_that_is_not_there(s: Scene) -> Move:
    return s.schedule_to, R, 4


@breaks("P7")
def a_chunk_is_offered_that_no_step_computes(s: Scene) -> Move:
    s.arrive(R)
    s.schedule_to(R, 4)
    return s.offer_is_computed, R, 8


@holds
def a_chunk_is_offered_that_a_later_step_computes(s: Scene) -> None:
    s.arrive(R)
    s.schedule_to(R, 4)
    s.schedule_to(R, 8)
    s.offer_is_computed(R, 8)


@holds
def a_chunk_is_offered_that_an_earlier_step_computed(s: Scene) -> None:
    s.arrive(R)
    s.schedule_to(R, 8)
    s.schedule_to(R, 4)
    s.offer_is_computed(R, 8)
