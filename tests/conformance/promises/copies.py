"""Promises of workers and their copiers."""

from __future__ import annotations

from kvproof.model.contract import Job, Lease, Place, Position, Residency, Worker
from tests.conformance.promises.begins import next_lease_stored, pinned, two_copies
from tests.conformance.promises.table import D, Move, breaks, holds
from tests.model.scene import C, R, Scene, W


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
def a_piece_of_a_load_starts_that_was_not_planned(s: Scene) -> Move:
    s.stored()
    s.issued_load()
    return s.start_load, W, s.piece(102, 101, 11, 1)


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


@breaks("P2")
def a_piece_of_a_store_starts_after_its_job_is_submitted(s: Scene) -> Move:
    s.computed()
    p = s.issued_store()
    s.step()
    s.start_store(W, p)
    s.submit(W, Job(1))
    return s.start_store, W, p


@breaks("P2")
def a_piece_of_a_load_starts_after_its_job_is_submitted(s: Scene) -> Move:
    s.stored()
    p = s.issued_load()
    s.start_load(W, p)
    s.submit(W, Job(101))
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
def a_dead_load_starts_before_the_next_store_of_its_slot(s: Scene) -> None:
    s.reference.lease_position[Lease(2)] = Position(1)
    s.stored()
    s.lease(R, Lease(2))
    dead = s.issued_load()
    s.reset()
    s.issued_store(2, 2, 11)
    s.start_load(W, dead)


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
