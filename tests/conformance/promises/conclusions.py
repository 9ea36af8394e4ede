"""What is concluded at a move, each with what it is concluded from taken away by hand."""

from __future__ import annotations

from kvproof.model.contract import Job, Lease, Residency
from tests.conformance.promises.begins import looked_up, pinned
from tests.conformance.promises.table import Move, concludes
from tests.model.scene import C, R, Scene, W

NOT_STORED = (
    ("placed.discard", 1, 0),
    ("slot_owner.pop", 1, 0),
    ("slot_owner.put", 1, 0, 11),
)
"""Place 1 does not hold what residency 1 is to hold there."""

NOT_COMPUTED = (
    ("written.discard", 1, 0, 7),
    ("owner.pop", 1, 0),
    ("owner.put", 1, 0, 21),
)
"""Lease 1 of block 1 does not hold content 7."""


@concludes("S6", ("pending.add", 1, 0))
def a_store_is_published(s: Scene) -> Move:
    s.computed()
    p = s.issued_store()
    s.step()
    s.carried_out(p)
    return s.publish, Job(1), Residency(1)


@concludes("S5", ("resident.discard", 1), ("ready.discard", 1))
def a_chunk_is_pinned(s: Scene) -> Move:
    s.stored()
    looked_up(s)
    s.open_load(Job(101))
    return s.pin, Job(101), Residency(1)


@concludes("S10", *NOT_STORED)
def a_piece_of_a_load_is_planned(s: Scene) -> Move:
    pinned(s)
    s.issue_load(Job(101))
    return s.plan_load, s.piece(101, 101, 11, 1)


@concludes("S10", *NOT_STORED)
def a_piece_of_a_load_starts(s: Scene) -> Move:
    s.stored()
    return s.start_load, W, s.issued_load()


@concludes("S11", ("incoming.discard", 11, 101))
def a_piece_of_a_load_starts_for_the_engine(s: Scene) -> Move:
    s.stored()
    return s.start_load, W, s.issued_load()


@concludes("S10", *NOT_STORED, ("owner.pop", 1, 0), ("owner.put", 1, 0, 1))
def a_piece_of_a_load_lands(s: Scene) -> Move:
    s.stored()
    p = s.issued_load()
    s.start_load(W, p)
    s.submit(W, Job(101))
    return s.land, W, p


@concludes("S3", *NOT_COMPUTED)
def a_piece_of_a_store_lands(s: Scene) -> Move:
    s.computed()
    p = s.issued_store()
    s.step()
    s.start_store(W, p)
    s.submit(W, Job(1))
    return s.land, W, p


@concludes("S10", ("written.discard", 11, 0, 7), ("owner.pop", 1, 0), ("owner.put", 1, 0, 1))
def a_load_is_taken(s: Scene) -> Move:
    s.stored()
    p = s.issued_load()
    s.carried_out(p)
    return s.settle, p


@concludes("S14", *NOT_COMPUTED)
def a_block_is_copied(s: Scene) -> Move:
    s.computed()
    s.lease(R, Lease(2))
    s.step()
    return s.copy_slot, W, Lease(1), Lease(2), C


@concludes("S14", *NOT_COMPUTED)
def a_forward_reads_a_block(s: Scene) -> Move:
    s.computed()
    return s.attend, W, Lease(1), C
