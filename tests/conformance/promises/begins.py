"""What several histories begin with."""

from __future__ import annotations

from kvproof.model.contract import Job, Lease, Residency
from tests.conformance.promises.table import Move
from tests.model.scene import C, R, Scene, W


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


def looked_up(s: Scene) -> None:
    """Residency 1 is a hit of the latest lookup, which is answered."""
    s.ask(R)
    s.hit(R, Residency(1))
    s.answer(R, 0, 4, 8, 8)


def pinned(s: Scene) -> None:
    """Residency 1 is pinned for load 101, which is to fill lease 11."""
    s.stored()
    s.free(R, Lease(1))
    looked_up(s)
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
