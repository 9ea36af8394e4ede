"""Promises about slots, keys and what the tier is told."""

from __future__ import annotations

from kvproof.model.contract import Job, Lease, Residency
from tests.conformance.promises.begins import failed_store, pinned
from tests.conformance.promises.table import Move, breaks
from tests.model.scene import R, Scene


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
