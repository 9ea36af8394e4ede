"""From events to the reference: chunks that come back from a tier behind the one that is judged.

The contract knows one tier. A chunk that a manager of several tiers brings back into it is admitted
like any other, slot and evictions judged (S7, S8); but no job of the scheduler fills it, so no
action of the contract makes it readable. It becomes so here, by this file's own word: the
reference is put into the state that it would have if a store had brought those pieces that the
chunk had when it was copied to the tier behind. That is what is *assumed* of the tier behind: it
gives back what it was given. All invariants hold in that state, as a test sees to.

What is not judged of it: what its own copies read and write meanwhile (the trace has no word of
them; that part of S7 is between the manager and its tiers), and that it forgets at a reset (S13):
a tier of files outlives resets by its own design.
"""

from __future__ import annotations

from kvproof.conformance.monitor.world import World
from kvproof.model.contract import Job, Key, Piece, Request, Residency, Worker


class Promotions:
    """What is on its way back, and what the tier behind was given.

    Attributes:
        moving: residencies on their way back, with the requests that they are for.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self.judges_tier_behind = world.header.options.get("tier", "cpu") != "cpu"
        self.moving: dict[Residency, Request] = {}
        # A file that exists is not written again, so what was given first counts.
        self._given: dict[Key, dict[int, Piece]] = {}

    def stored(self, x: Residency) -> None:
        """A store has been completed: the tier behind is given the chunk, too."""
        if not self.judges_tier_behind:
            return
        reference, world = self._world.reference, self._world
        places = ((o, world.place(x, o)) for o in range(world.header.blocks_per_chunk))
        covered = {o: reference.cover[y] for o, y in places if y in reference.cover}
        self._given.setdefault(reference.residency_key[x], covered)

    def begin(self, r: Request, x: Residency) -> None:
        """A chunk that was admitted is on its way back, for a request."""
        self.moving[x] = r

    def end(self, x: Residency, ok: bool) -> None:
        """It is back, or it is not. After a reset it is neither: its slot is free again."""
        r = self.moving.pop(x, None)
        if r is None:
            return
        reference = self._world.reference
        reference.storing.discard(x)
        reference.told.clear()
        if ok:
            self._bring(x, r)
            reference.ready.add(x)
            return
        reference.resident.discard(x)
        reference.where.pop(reference.residency_key[x], None)
        reference.occupant.pop(reference.residency_slot[x], None)

    def forget(self) -> None:
        """A reset: nothing is on its way any more. The tier behind keeps what it has."""
        self.moving.clear()

    def _bring(self, x: Residency, r: Request) -> None:
        """The pieces are there, as if a store had ended well on every worker."""
        world, reference = self._world, self._world.reference
        job = world.new_job(("back", x), r, "store")
        reference.store.add(job)
        reference.job_epoch[job] = reference.epoch
        reference.job_step[job] = reference.now
        reference.issued += 1
        reference.job_number[job] = reference.issued
        reference.maker[x] = job
        workers = [Worker(w) for w in reference.workers]
        for w in workers:
            reference.submissions += 1
            reference.submitted.add(job, w)
            reference.submit_seq[job, w] = reference.submissions
            reference.slot_owner[reference.residency_slot[x], w] = x
        for offset, given in self._given[reference.residency_key[x]].items():
            self._place(job, x, offset, given, workers)

    def _place(
        self, job: Job, x: Residency, offset: int, given: Piece, workers: list[Worker]
    ) -> None:
        reference, y = self._world.reference, self._world.place(x, offset)
        piece = self._world.new_piece(job, reference.piece_lease[given], y)
        reference.pieces.add(job, piece)
        reference.cover[y] = piece
        for w in workers:
            reference.started.add(piece, w)
            reference.landed.add(piece, w)
            reference.placed.add(y, w)
