"""Promises about loads: how they are prepared, planned, and end."""

from __future__ import annotations

from kvproof.model.contract import Job, Lease, Place, Position, Residency
from tests.conformance.promises.begins import failed_load, looked_up, pinned
from tests.conformance.promises.table import Move, breaks
from tests.model.scene import OTHER, R, Scene, W


@breaks("A-open_load")
def a_load_is_prepared_twice(s: Scene) -> Move:
    s.arrive(R)
    s.open_load(Job(101))
    return s.open_load, Job(101)


@breaks("P13")
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
    looked_up(s)
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
def a_piece_is_planned_when_its_load_is_submitted(s: Scene) -> Move:
    pinned(s)
    s.issue_load(Job(101))
    s.submit(W, Job(101))
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
    looked_up(s)
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
