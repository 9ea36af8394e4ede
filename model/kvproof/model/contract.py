"""The contract, executable. Generated from the spec by ``kvproof generate``: do not edit.

Each method is one action. Its guards raise ``Broken``; its updates change the fields. Attributes
of a thing (``lease_block`` and the like) must be set before the thing is first used.
"""

from __future__ import annotations

from typing import NewType

from kvproof.model.broken import Broken
from kvproof.model.relation import ANY, EACH, Relation

Block = NewType("Block", int)
Content = NewType("Content", int)
Job = NewType("Job", int)
Key = NewType("Key", int)
Lane = NewType("Lane", int)
Lease = NewType("Lease", int)
Piece = NewType("Piece", int)
Place = NewType("Place", int)
Position = NewType("Position", int)
Request = NewType("Request", int)
Residency = NewType("Residency", int)
Slot = NewType("Slot", int)
Worker = NewType("Worker", int)


class Contract:
    """State and moves; ``workers`` are all ranks."""

    def __init__(self, workers: list[Worker]) -> None:
        self.workers = workers
        # the block that was handed out
        self.lease_block: dict[Lease, Block] = {}
        # where in its request's table it lies
        self.lease_position: dict[Lease, Position] = {}
        # order of the hand-outs
        self.lease_seq: dict[Lease, int] = {}
        # the job that it belongs to
        self.piece_job: dict[Piece, Job] = {}
        # its GPU side
        self.piece_lease: dict[Piece, Lease] = {}
        # its tier side
        self.piece_place: dict[Piece, Place] = {}
        # the residency that it is part of
        self.place_residency: dict[Place, Residency] = {}
        # the table position that its key and offset name
        self.place_position: dict[Place, Position] = {}
        # the content that its key and offset name
        self.place_content: dict[Place, Content] = {}
        # the slot that was handed out
        self.residency_slot: dict[Residency, Slot] = {}
        # the key that it was handed to
        self.residency_key: dict[Residency, Key] = {}
        # order of the hand-outs
        self.residency_seq: dict[Residency, int] = {}
        # whether the tier has this slot at all
        self.slot_exists: dict[Slot, bool] = {}
        # the request that it serves
        self.job_request: dict[Job, Request] = {}
        # its lane in the copier
        self.job_lane: dict[Job, Lane] = {}
        # the scheduling window that is open (S1)
        self.now = 1
        # the step that a worker executes (S3)
        self.at: dict[Worker, int] = dict.fromkeys(workers, 0)
        # how many resets there have been (S13)
        self.epoch = 0
        # arrived and not ended (S5)
        self.alive: set[Request] = set()
        # ended: this incarnation never comes back (P13)
        self.ended: set[Request] = set()
        # the window in which a lease was handed out (S3)
        self.handed_at: dict[Lease, int] = {}
        # the window in which its block was handed out again (S3)
        self.superseded_at: dict[Lease, int] = {}
        # the latest hand-out of a block (S1)
        self.current: dict[Block, Lease] = {}
        # the request's table lists the lease (S1)
        self.holds: Relation[Request, Lease] = Relation()
        # the window in which the request let go of it (S1)
        self.given_up_at: dict[tuple[Request, Lease], int] = {}
        # its table has listed a block there (P7)
        self.had: Relation[Request, Position] = Relation()
        # the tokens that its forwards so far leave computed (P7)
        self.computed_to: dict[Request, int] = {}
        # lies in the range that the scheduler answered for and the engine took (S14)
        self.expected: set[Lease] = set()
        # the engine may let a forward read this content there (S14)
        self.settled: Relation[Lease, Worker, Content] = Relation()
        # the lease's slots up to this content's last token hold it (S2)
        self.written: Relation[Lease, Worker, Content] = Relation()
        # the lease that last changed the block (S3)
        self.owner: dict[tuple[Block, Worker], Lease] = {}
        # is a store (S2)
        self.store: set[Job] = set()
        # is a load (S10)
        self.load: set[Job] = set()
        # the epoch in which it was prepared (P5)
        self.job_epoch: dict[Job, int] = {}
        # the step whose metadata carries it (S2)
        self.job_step: dict[Job, int] = {}
        # how many jobs there have been (L1)
        self.issued = 0
        # order of the jobs (L1)
        self.job_number: dict[Job, int] = {}
        # the first step that flushes it (S3)
        self.flush_at: dict[Job, int] = {}
        # what it copies (S4)
        self.pieces: Relation[Job, Piece] = Relation()
        # issued, and the worker's copy has not ended (S6)
        self.pending: Relation[Job, Worker] = Relation()
        # issued, and the worker has not reported its end (P4)
        self.unreported: Relation[Job, Worker] = Relation()
        # handed to the worker's copier (S7)
        self.submitted: Relation[Job, Worker] = Relation()
        # the worker's copy failed (S6)
        self.failed: Relation[Job, Worker] = Relation()
        # the copier may touch both its ends (S10)
        self.started: Relation[Piece, Worker] = Relation()
        # its copy has ended well (S10)
        self.landed: Relation[Piece, Worker] = Relation()
        # order of submissions (S7)
        self.submit_seq: dict[tuple[Job, Worker], int] = {}
        # how many submissions there have been (S7)
        self.submissions = 0
        # submitted and not ended (S7)
        self.in_flight: Relation[Worker, Lane, Job] = Relation()
        # a store of this epoch may still read the lease there (S3)
        self.reading: Relation[Block, Worker, Job, Lease] = Relation()
        # a copy of this residency has yet to end there (S7)
        self.using: Relation[Slot, Worker, Job, Residency] = Relation()
        # a load fills the lease; the engine was not told its end (S11)
        self.incoming: Relation[Lease, Job] = Relation()
        # the tier was told of the request (P6)
        self.announced: set[Request] = set()
        # the tier was told of the request's end (P6)
        self.concluded: set[Request] = set()
        # its key is in the tier (S8)
        self.resident: set[Residency] = set()
        # resident, its store has not been completed (S6)
        self.storing: set[Residency] = set()
        # resident and readable (S6)
        self.ready: set[Residency] = set()
        # the residency of a key (S8)
        self.where: dict[Key, Residency] = {}
        # the residency in a slot (S8)
        self.occupant: dict[Slot, Residency] = {}
        # the last residency that the slot was handed to (S7)
        self.latest: dict[Slot, Residency] = {}
        # the epoch in which it was handed out (S13)
        self.admitted_in: dict[Residency, int] = {}
        # the store that fills it (S6)
        self.maker: dict[Residency, Job] = {}
        # the maker's piece that fills it (S4)
        self.cover: dict[Place, Piece] = {}
        # holds the bytes that its key and offset name (S10)
        self.placed: Relation[Place, Worker] = Relation()
        # the residency whose store last wrote it (S7)
        self.slot_owner: dict[tuple[Slot, Worker], Residency] = {}
        # a load reads it: it must stay (S7)
        self.pinned: Relation[Residency, Job] = Relation()
        # its latest lookup was put off, in this window (L1)
        self.deferred: Relation[Request, int] = Relation()
        # how many jobs had been issued when its lookup was first put off (L1)
        self.putting_off: dict[Request, int] = {}
        # how often it was put off since with none of those in flight (L1)
        self.polls: dict[Request, int] = {}
        # its lookup has begun and is not answered (P16)
        self.asking: set[Request] = set()
        # its latest answer, while nothing that it rests on changed (P16)
        self.told: dict[Request, int] = {}
        # how many tokens were computed when it was answered (P16)
        self.told_from: dict[Request, int] = {}
        # a load of it failed for the request (L5)
        self.spoiled: Relation[Request, Residency] = Relation()
        # a hit of the request's latest lookup (S5)
        self.answered: Relation[Request, Residency] = Relation()

    def judge_answer(self, r: Request, reached: int, greatest: int) -> None:
        """[scheduler] An answer reaches up to ``reached`` tokens; ``greatest`` could be served."""
        if not (greatest <= reached):
            raise Broken("oblige", "E1", "judge_answer", 0, (r, reached, greatest))

    def judge_need(self, r: Request, k: Key, boundary: int, offers: int) -> None:
        """[scheduler] A lookup needs a key at a boundary that an ended request had computed and
        could keep.
        """
        if not (0 < offers):
            raise Broken("oblige", "E2", "judge_need", 0, (r, k, boundary, offers))

    def judge_repeat(self, r: Request, reached: int, stored: int) -> None:
        """[scheduler] A request repeats one that ended, of which all of ``stored`` tokens was
        stored.
        """
        if not (stored <= reached):
            raise Broken("oblige", "E4", "judge_repeat", 0, (r, reached, stored))

    def judge_chunk(self, r: Request, k: Key, chances: int, offers: int) -> None:
        """[scheduler] A request has ended; in ``chances`` windows a chunk was complete and its
        blocks there.
        """
        if not ((chances == 0) or (0 < offers)):
            raise Broken("oblige", "E3", "judge_chunk", 0, (r, k, chances, offers))

    def judge_again(self, r: Request, room: int, refused_at: int) -> None:
        """[scheduler] A refused offer is repeated: room has changed ``room`` times so far."""
        if not (refused_at < room):
            raise Broken("oblige", "E6", "judge_again", 0, (r, room, refused_at))

    def judge_twice(self, r: Request, k: Key, offers: int) -> None:
        """[scheduler] A resident key is offered that its request has offered ``offers`` times
        already.
        """
        if not (offers == 0):
            raise Broken("oblige", "E6", "judge_twice", 0, (r, k, offers))

    def judge_tail(self, r: Request, other: Request, k: Key, left: int, left_before: int) -> None:
        """[scheduler] Two requests of the same tokens could both leave a key: either both did, or
        neither.
        """
        if not (left == left_before):
            raise Broken("oblige", "E8", "judge_tail", 0, (r, other, k, left, left_before))

    def judge_events(self, k: Key, said: int, there: int) -> None:
        """[tier] By the emitted events a key is in the tier ``said`` times."""
        if not (said == there):
            raise Broken("oblige", "E5", "judge_events", 0, (k, said, there))

    def judge_age(self, x: Residency, other: Residency, used: int, older: int) -> None:
        """[tier] One residency leaves, another could have: the last requests to use them, by
        arrival.
        """
        if not (used <= older):
            raise Broken("oblige", "E7", "judge_age", 0, (x, other, used, older))

    def judge_order(self, x: Residency, other: Residency, chunk: int, tail: int) -> None:
        """[tier] Chunk ``chunk`` of a prefix leaves; ``tail``, beyond reach without it, stays."""
        if not (tail <= chunk):
            raise Broken("oblige", "E7", "judge_order", 0, (x, other, chunk, tail))

    def admit(self, x: Residency) -> None:
        """[tier] The tier hands a free slot to a key that it does not have."""
        x_slot = self.residency_slot[x]
        x_key = self.residency_key[x]
        if not (not (x in self.admitted_in)):
            raise Broken("assume", "", "admit", 0, (x,))
        if not (
            (self.residency_seq[self.latest[x_slot]] < self.residency_seq[x])
            if (x_slot in self.latest)
            else True
        ):
            raise Broken("assume", "", "admit", 1, (x,))
        if not self.slot_exists[x_slot]:
            raise Broken("oblige", "S8", "admit", 2, (x,))
        if not (not (x_key in self.where)):
            raise Broken("oblige", "S8", "admit", 3, (x,))
        if not (not (x_slot in self.occupant)):
            raise Broken("oblige", "S8", "admit", 4, (x,))
        self.admitted_in[x] = self.epoch
        self.resident.add(x)
        self.storing.add(x)
        self.where[x_key] = x
        self.occupant[x_slot] = x
        self.latest[x_slot] = x
        self.told.clear()

    def evict(self, x: Residency) -> None:
        """[tier] The tier takes a slot back: nobody writes it, nobody reads it."""
        if not (x in self.resident):
            raise Broken("oblige", "S8", "evict", 0, (x,))
        if not (not (x in self.storing)):
            raise Broken("oblige", "S7", "evict", 1, (x,))
        if not self.pinned.none(x, EACH):
            raise Broken("oblige", "S7", "evict", 2, (x,))
        self.resident.discard(x)
        self.where.pop(self.residency_key[x], None)
        self.occupant.pop(self.residency_slot[x], None)
        self.ready.discard(x)
        self.answered.discard(ANY, x)
        self.told.clear()

    def publish(self, j: Job, x: Residency) -> None:
        """[scheduler] A store is completed: a key of it becomes readable."""
        if not ((j in self.job_epoch) and (self.job_epoch[j] == self.epoch)):
            raise Broken("oblige", "P5", "publish", 0, (j, x))
        if not ((x in self.storing) and (x in self.maker) and (self.maker[x] == j)):
            raise Broken("oblige", "P4", "publish", 1, (j, x))
        if not self.unreported.none(j, EACH):
            raise Broken("oblige", "P4", "publish", 2, (j, x))
        if not self.pending.none(j, EACH):
            raise Broken("conclude", "S6", "publish", 3, (j, x))
        if not self.failed.none(j, EACH):
            raise Broken("oblige", "S6", "publish", 4, (j, x))
        self.storing.discard(x)
        self.ready.add(x)
        self.told.clear()

    def drop(self, j: Job, x: Residency) -> None:
        """[scheduler] A store has failed: a key of it goes."""
        if not ((j in self.job_epoch) and (self.job_epoch[j] == self.epoch)):
            raise Broken("oblige", "P5", "drop", 0, (j, x))
        if not ((x in self.storing) and (x in self.maker) and (self.maker[x] == j)):
            raise Broken("oblige", "P4", "drop", 1, (j, x))
        if not self.unreported.none(j, EACH):
            raise Broken("oblige", "P4", "drop", 2, (j, x))
        if not (not self.failed.none(j, EACH)):
            raise Broken("oblige", "P14", "drop", 3, (j, x))
        self.storing.discard(x)
        self.resident.discard(x)
        self.where.pop(self.residency_key[x], None)
        self.occupant.pop(self.residency_slot[x], None)
        self.told.clear()

    def unpin(self, j: Job, x: Residency) -> None:
        """[scheduler] A load is completed: a key of it may go again."""
        if not ((j in self.job_epoch) and (self.job_epoch[j] == self.epoch)):
            raise Broken("oblige", "P5", "unpin", 0, (j, x))
        if not ((x, j) in self.pinned):
            raise Broken("oblige", "P4", "unpin", 1, (j, x))
        if not ((j in self.job_step) and self.unreported.none(j, EACH)):
            raise Broken("oblige", "P4", "unpin", 2, (j, x))
        self.pinned.discard(x, j)

    def tier_new(self, r: Request) -> None:
        """[scheduler] The tier is told of a request, once."""
        if not (not (r in self.announced)):
            raise Broken("oblige", "P6", "tier_new", 0, (r,))
        self.announced.add(r)

    def tier_call(self, r: Request) -> None:
        """[scheduler] The scheduler looks up, prepares or touches for a request: between its two
        ends.
        """
        if not ((r in self.announced) and (not (r in self.concluded))):
            raise Broken("oblige", "P6", "tier_call", 0, (r,))

    def tier_finished(self, r: Request) -> None:
        """[scheduler] The tier is told that a request has ended, once."""
        if not ((r in self.announced) and (not (r in self.concluded))):
            raise Broken("oblige", "P6", "tier_finished", 0, (r,))
        self.concluded.add(r)

    def reset(self) -> None:
        """[engine] Everything stored, or issued to be stored, is forgotten."""
        self.epoch = self.epoch + 1
        self.resident.clear()
        self.storing.clear()
        self.ready.clear()
        self.where.clear()
        self.occupant.clear()
        self.pinned.discard(ANY, ANY)
        self.answered.discard(ANY, ANY)
        self.told.clear()
        self.reading.discard(ANY, ANY, ANY, ANY)

    def start_store(self, w: Worker, p: Piece) -> None:
        """[worker] One piece of a store may be read from now on.

        What a store of before a reset reads is nobody's business: its residency is gone.
        """
        p_job = self.piece_job[p]
        p_place = self.piece_place[p]
        p_lease = self.piece_lease[p]
        p_place_residency = self.place_residency[p_place]
        p_lease_block = self.lease_block[p_lease]
        p_place_residency_slot = self.residency_slot[p_place_residency]
        if not (p_job in self.store):
            raise Broken("assume", "", "start_store", 0, (w, p))
        if not ((p_job, p) in self.pieces):
            raise Broken("assume", "", "start_store", 1, (w, p))
        if not (((p_job, w) in self.pending) and (not ((p_job, w) in self.submitted))):
            raise Broken("oblige", "P2", "start_store", 2, (w, p))
        if not ((self.job_step[p_job] <= self.at[w]) and (not ((p, w) in self.started))):
            raise Broken("assume", "", "start_store", 3, (w, p))
        if not all(
            (
                (other == p_place_residency)
                or (self.residency_seq[p_place_residency] < self.residency_seq[other])
                or (
                    (i in self.store)
                    and (p_job in self.store)
                    and ((i, w) in self.submitted)
                    and (self.job_lane[i] == self.job_lane[p_job])
                )
            )
            for _, _, i, other in self.using.match(p_place_residency_slot, w, EACH, EACH)
        ):
            raise Broken("oblige", "S7", "start_store", 4, (w, p))
        if not (
            (
                ((p_lease, w, self.place_content[p_place]) in self.written)
                and (
                    ((p_lease_block, w) in self.owner)
                    and (self.owner[p_lease_block, w] == p_lease)
                )
            )
            if (self.job_epoch[p_job] == self.epoch)
            else True
        ):
            raise Broken("oblige", "S2", "start_store", 5, (w, p))
        self.started.add(p, w)
        self.slot_owner[p_place_residency_slot, w] = p_place_residency

    def start_load(self, w: Worker, p: Piece) -> None:
        """[worker] One piece of a load may be read, and its lease be written, from now on."""
        p_job = self.piece_job[p]
        p_place = self.piece_place[p]
        p_lease = self.piece_lease[p]
        p_place_residency = self.place_residency[p_place]
        p_lease_block = self.lease_block[p_lease]
        p_place_residency_slot = self.residency_slot[p_place_residency]
        if not (p_job in self.load):
            raise Broken("assume", "", "start_load", 0, (w, p))
        if not ((p_job, p) in self.pieces):
            raise Broken("assume", "", "start_load", 1, (w, p))
        if not (((p_job, w) in self.pending) and (not ((p_job, w) in self.submitted))):
            raise Broken("oblige", "P2", "start_load", 2, (w, p))
        if not ((self.job_step[p_job] <= self.at[w]) and (not ((p, w) in self.started))):
            raise Broken("assume", "", "start_load", 3, (w, p))
        if not all(
            (
                (other == p_place_residency)
                or (self.residency_seq[p_place_residency] < self.residency_seq[other])
                or (
                    (i in self.store)
                    and (p_job in self.store)
                    and ((i, w) in self.submitted)
                    and (self.job_lane[i] == self.job_lane[p_job])
                )
            )
            for _, _, i, other in self.using.match(p_place_residency_slot, w, EACH, EACH)
        ):
            raise Broken("oblige", "S7", "start_load", 4, (w, p))
        if not (
            ((p_place, w) in self.placed)
            and (
                ((p_place_residency_slot, w) in self.slot_owner)
                and (self.slot_owner[p_place_residency_slot, w] == p_place_residency)
            )
        ):
            raise Broken("conclude", "S10", "start_load", 5, (w, p))
        if not ((p_lease, p_job) in self.incoming):
            raise Broken("conclude", "S11", "start_load", 6, (w, p))
        if not all(
            ((other == p_lease) or (self.lease_seq[p_lease] < self.lease_seq[other]))
            for _, _, j, other in self.reading.match(p_lease_block, w, EACH, EACH)
        ):
            raise Broken("oblige", "S3", "start_load", 7, (w, p))
        self.started.add(p, w)
        self.owner[p_lease_block, w] = p_lease

    def submit(self, w: Worker, j: Job) -> None:
        """[worker] All pieces of a job have started: the copier has the job."""
        if not (((j, w) in self.pending) and (not ((j, w) in self.submitted))):
            raise Broken("assume", "", "submit", 0, (w, j))
        if not all((p, w) in self.started for _, p in self.pieces.match(j, EACH)):
            raise Broken("assume", "", "submit", 1, (w, j))
        self.submissions = self.submissions + 1
        self.submit_seq[j, w] = self.submissions
        self.submitted.add(j, w)
        self.in_flight.add(w, self.job_lane[j], j)

    def land(self, w: Worker, p: Piece) -> None:
        """[worker] One piece of a copy has ended well."""
        p_job = self.piece_job[p]
        p_place = self.piece_place[p]
        p_lease = self.piece_lease[p]
        p_place_residency = self.place_residency[p_place]
        p_lease_block = self.lease_block[p_lease]
        p_place_content = self.place_content[p_place]
        p_place_residency_slot = self.residency_slot[p_place_residency]
        if not (
            ((p_job, p) in self.pieces)
            and ((p_job, w) in self.pending)
            and ((p_job, w) in self.submitted)
        ):
            raise Broken("assume", "", "land", 0, (w, p))
        if not ((p, w) in self.started):
            raise Broken("assume", "", "land", 1, (w, p))
        if not (
            (
                ((p_place, w) in self.placed)
                and (
                    ((p_place_residency_slot, w) in self.slot_owner)
                    and (self.slot_owner[p_place_residency_slot, w] == p_place_residency)
                )
                and (
                    ((p_lease_block, w) in self.owner)
                    and (self.owner[p_lease_block, w] == p_lease)
                )
            )
            if (p_job in self.load)
            else True
        ):
            raise Broken("conclude", "S10", "land", 2, (w, p))
        if not (
            (
                ((p_lease, w, p_place_content) in self.written)
                and (
                    ((p_lease_block, w) in self.owner)
                    and (self.owner[p_lease_block, w] == p_lease)
                )
            )
            if ((p_job in self.store) and (self.job_epoch[p_job] == self.epoch))
            else True
        ):
            raise Broken("conclude", "S3", "land", 3, (w, p))
        self.landed.add(p, w)
        if p_job in self.load:
            self.written.add(p_lease, w, p_place_content)
        if (p_job in self.store) and (self.job_epoch[p_job] == self.epoch):
            self.placed.add(p_place, w)

    def end(self, w: Worker, j: Job) -> None:
        """[worker] A copy has ended well, after all that its lane runs before it."""
        j_lane = self.job_lane[j]
        if not (((j, w) in self.pending) and ((j, w) in self.submitted)):
            raise Broken("assume", "", "end", 0, (w, j))
        if not all(
            (self.submit_seq[j, w] <= self.submit_seq[i, w])
            for _, _, i in self.in_flight.match(w, j_lane, EACH)
        ):
            raise Broken("assume", "", "end", 1, (w, j))
        if not all((p, w) in self.landed for _, p in self.pieces.match(j, EACH)):
            raise Broken("assume", "", "end", 2, (w, j))
        self.pending.discard(j, w)
        self.using.discard(ANY, w, j, ANY)
        self.in_flight.discard(w, j_lane, j)

    def fail(self, w: Worker, j: Job) -> None:
        """[worker] A copy has ended badly; what it wrote is worth nothing."""
        j_lane = self.job_lane[j]
        if not (((j, w) in self.pending) and ((j, w) in self.submitted)):
            raise Broken("assume", "", "fail", 0, (w, j))
        if not all(
            (self.submit_seq[j, w] <= self.submit_seq[i, w])
            for _, _, i in self.in_flight.match(w, j_lane, EACH)
        ):
            raise Broken("assume", "", "fail", 1, (w, j))
        self.failed.add(j, w)
        self.pending.discard(j, w)
        self.using.discard(ANY, w, j, ANY)
        self.in_flight.discard(w, j_lane, j)

    def waited(self, w: Worker, j: Job) -> None:
        """[worker] A worker waited for a job; it counts when a flush of a step so far named the
        job.
        """
        if (
            (j in self.flush_at)
            and (self.flush_at[j] <= self.at[w])
            and (not ((j, w) in self.pending))
        ):
            self.reading.discard(ANY, w, j, ANY)

    def report(self, w: Worker, j: Job) -> None:
        """[worker] A worker's word that its copy ended reaches the scheduler."""
        if not ((j, w) in self.unreported):
            raise Broken("oblige", "P4", "report", 0, (w, j))
        if not (not ((j, w) in self.pending)):
            raise Broken("oblige", "P4", "report", 1, (w, j))
        self.unreported.discard(j, w)
        self.reading.discard(ANY, w, j, ANY)

    def open_load(self, j: Job) -> None:
        """[scheduler] A load is prepared for a request; its residencies are pinned one by one."""
        if not (not (j in self.job_epoch)):
            raise Broken("assume", "", "open_load", 0, (j,))
        if not (self.job_request[j] in self.alive):
            raise Broken("oblige", "P13", "open_load", 1, (j,))
        if not (not (j in self.store)):
            raise Broken("assume", "", "open_load", 2, (j,))
        if not (not self.asking):
            raise Broken("oblige", "P16", "open_load", 3, (j,))
        self.load.add(j)
        self.job_epoch[j] = self.epoch

    def pin(self, j: Job, x: Residency) -> None:
        """[scheduler] A load is promised a residency."""
        j_request = self.job_request[j]
        if not ((j in self.load) and (self.job_epoch[j] == self.epoch)):
            raise Broken("assume", "", "pin", 0, (j, x))
        if not (not (j in self.job_step)):
            raise Broken("assume", "", "pin", 1, (j, x))
        if not ((j_request, x) in self.answered):
            raise Broken("oblige", "S5", "pin", 2, (j, x))
        if not (not ((j_request, x) in self.spoiled)):
            raise Broken("oblige", "L5", "pin", 3, (j, x))
        if not ((x in self.resident) and (x in self.ready)):
            raise Broken("conclude", "S5", "pin", 4, (j, x))
        self.pinned.add(x, j)

    def issue_load(self, j: Job) -> None:
        """[scheduler] A load is handed to the workers; its pieces are planned one by one."""
        if not ((j in self.load) and (not (j in self.job_step))):
            raise Broken("assume", "", "issue_load", 0, (j,))
        if not (self.job_epoch[j] == self.epoch):
            raise Broken("assume", "", "issue_load", 1, (j,))
        self.job_step[j] = self.now
        self.issued = self.issued + 1
        self.job_number[j] = self.issued
        for worker in self.workers:
            self.pending.add(j, worker)
        for worker in self.workers:
            self.unreported.add(j, worker)

    def load_state(self, p: Piece, named: Content) -> None:
        """[scheduler] A load brings a recurrent state: ``named`` is the prefix that the engine is
        told of.
        """
        if not (self.place_content[self.piece_place[p]] == named):
            raise Broken("oblige", "S9", "load_state", 0, (p, named))

    def plan_load(self, p: Piece) -> None:
        """[scheduler] One piece of a load: from a place of a pinned residency to a lease of the
        request.
        """
        p_job = self.piece_job[p]
        p_place = self.piece_place[p]
        p_lease = self.piece_lease[p]
        p_place_residency = self.place_residency[p_place]
        p_job_request = self.job_request[p_job]
        p_place_residency_slot = self.residency_slot[p_place_residency]
        if not (
            (p_job in self.load)
            and (p_job in self.job_step)
            and (self.job_step[p_job] == self.now)
        ):
            raise Broken("assume", "", "plan_load", 0, (p,))
        if not (self.submitted.none(p_job, EACH) and self.started.none(p, EACH)):
            raise Broken("assume", "", "plan_load", 1, (p,))
        if not self.landed.none(p, EACH):
            raise Broken("assume", "", "plan_load", 2, (p,))
        if not (self.job_epoch[p_job] == self.epoch):
            raise Broken("assume", "", "plan_load", 3, (p,))
        if not ((p_place_residency, p_job) in self.pinned):
            raise Broken("oblige", "S5", "plan_load", 4, (p,))
        if not (self.lease_position[p_lease] == self.place_position[p_place]):
            raise Broken("oblige", "S4", "plan_load", 5, (p,))
        if not (p_place in self.cover):
            raise Broken("oblige", "S4", "plan_load", 6, (p,))
        if not all(
            (
                ((p_place, w) in self.placed)
                and (
                    ((p_place_residency_slot, w) in self.slot_owner)
                    and (self.slot_owner[p_place_residency_slot, w] == p_place_residency)
                )
            )
            for w in self.workers
        ):
            raise Broken("conclude", "S10", "plan_load", 7, (p,))
        if not ((p_job_request, p_lease) in self.holds):
            raise Broken("oblige", "S11", "plan_load", 8, (p,))
        if not all(other == p_job_request for other, _ in self.holds.match(EACH, p_lease)):
            raise Broken("oblige", "S11", "plan_load", 9, (p,))
        if not self.settled.none(p_lease, EACH, EACH):
            raise Broken("oblige", "S11", "plan_load", 10, (p,))
        if not self.incoming.none(p_lease, EACH):
            raise Broken("oblige", "S11", "plan_load", 11, (p,))
        self.pieces.add(p_job, p)
        for worker in self.workers:
            self.using.add(p_place_residency_slot, worker, p_job, p_place_residency)
        self.incoming.add(p_lease, p_job)

    def issue_store(self, j: Job) -> None:
        """[scheduler] A store is handed to the workers; its residencies and pieces follow one by
        one.
        """
        if not ((not (j in self.job_epoch)) and (not (j in self.job_step))):
            raise Broken("assume", "", "issue_store", 0, (j,))
        if not (not (j in self.load)):
            raise Broken("assume", "", "issue_store", 1, (j,))
        self.store.add(j)
        self.job_epoch[j] = self.epoch
        self.job_step[j] = self.now
        self.issued = self.issued + 1
        self.job_number[j] = self.issued
        for worker in self.workers:
            self.pending.add(j, worker)
        for worker in self.workers:
            self.unreported.add(j, worker)

    def make(self, j: Job, x: Residency) -> None:
        """[scheduler] A store takes a residency that the tier has just handed out upon itself."""
        if not ((j in self.store) and (self.job_epoch[j] == self.epoch)):
            raise Broken("assume", "", "make", 0, (j, x))
        if not (self.submitted.none(j, EACH) and (self.job_step[j] == self.now)):
            raise Broken("assume", "", "make", 1, (j, x))
        if not ((x in self.storing) and (not (x in self.maker))):
            raise Broken("oblige", "S7", "make", 2, (j, x))
        self.maker[x] = j

    def plan_store(self, p: Piece) -> None:
        """[scheduler] One piece of a store: from a lease of the request to a place of a residency
        it makes.

        A lease that the request does not hold is no fault by itself when its bytes are there, on
        every worker, and are the right ones (another request with the same prefix computed them).
        """
        p_job = self.piece_job[p]
        p_place = self.piece_place[p]
        p_lease = self.piece_lease[p]
        p_place_residency = self.place_residency[p_place]
        p_job_request = self.job_request[p_job]
        p_place_content = self.place_content[p_place]
        p_lease_block = self.lease_block[p_lease]
        if not ((p_job in self.store) and (self.job_step[p_job] == self.now)):
            raise Broken("assume", "", "plan_store", 0, (p,))
        if not (self.submitted.none(p_job, EACH) and self.started.none(p, EACH)):
            raise Broken("assume", "", "plan_store", 1, (p,))
        if not self.landed.none(p, EACH):
            raise Broken("assume", "", "plan_store", 2, (p,))
        if not (self.job_epoch[p_job] == self.epoch):
            raise Broken("assume", "", "plan_store", 3, (p,))
        if not (
            (p_place_residency in self.storing)
            and (p_place_residency in self.maker)
            and (self.maker[p_place_residency] == p_job)
        ):
            raise Broken("oblige", "S7", "plan_store", 4, (p,))
        if not (
            ((p_job_request, p_lease) in self.holds)
            or (
                ((p_job_request, p_lease) in self.given_up_at)
                and (self.given_up_at[p_job_request, p_lease] == self.now)
            )
            or all(
                (
                    ((p_lease, w, p_place_content) in self.written)
                    and (
                        ((p_lease_block, w) in self.owner)
                        and (self.owner[p_lease_block, w] == p_lease)
                    )
                )
                for w in self.workers
            )
        ):
            raise Broken("oblige", "S1", "plan_store", 5, (p,))
        if not (
            (self.lease_position[p_lease] == self.place_position[p_place])
            or all(
                (
                    ((p_lease, w, p_place_content) in self.written)
                    and (
                        ((p_lease_block, w) in self.owner)
                        and (self.owner[p_lease_block, w] == p_lease)
                    )
                )
                for w in self.workers
            )
        ):
            raise Broken("oblige", "S4", "plan_store", 6, (p,))
        if not (p_lease in self.handed_at):
            raise Broken("oblige", "S1", "plan_store", 7, (p,))
        if not (not (p_place in self.cover)):
            raise Broken("oblige", "S4", "plan_store", 8, (p,))
        self.pieces.add(p_job, p)
        for worker in self.workers:
            self.reading.add(p_lease_block, worker, p_job, p_lease)
        for worker in self.workers:
            self.using.add(self.residency_slot[p_place_residency], worker, p_job, p_place_residency)
        self.cover[p_place] = p

    def flush(self, j: Job) -> None:
        """[scheduler] The workers are told to wait for a job before this step changes any block.

        With asynchronous scheduling the next step may flush it again before a worker has come to
        this one: what counts is the first.
        """
        if not (j in self.flush_at):
            self.flush_at[j] = self.now

    def judge_flush(self, j: Job) -> None:
        """[scheduler] A flush makes the workers wait for a store: one of its blocks is another's by
        now.
        """
        if not (
            self.unreported.none(j, EACH)
            or (j in self.load)
            or (not (self.job_epoch[j] == self.epoch))
            or not all(
                (not (self.piece_lease[p] in self.superseded_at))
                for _, p in self.pieces.match(j, EACH)
            )
        ):
            raise Broken("oblige", "L6", "judge_flush", 0, (j,))

    def refuse_reset(self) -> None:
        """[scheduler] The connector answers that it did not forget."""
        if not False:
            raise Broken("oblige", "P10", "refuse_reset", 0, ())

    def crash(self) -> None:
        """[scheduler] A call into the scheduler or a worker raised."""
        if not False:
            raise Broken("oblige", "P11", "crash", 0, ())

    def stall(self) -> None:
        """[engine] Every copy ends at once, and still the engine does not come to rest.

        The scheduler is at fault when it still puts a lookup off with nothing left to wait for, or
        when it keeps an engine without requests stepping; otherwise the engine itself is stuck (a
        request that it does not ask about any more is not put off by the scheduler).
        """
        if not self.pending.none(EACH, EACH):
            raise Broken("assume", "", "stall", 0, ())
        if not all((n + 1) < self.now for r, n in self.deferred.match(EACH, EACH)):
            raise Broken("oblige", "L1", "stall", 1, ())
        if not (not (not self.alive)):
            raise Broken("oblige", "L2", "stall", 2, ())
        if not False:
            raise Broken("assume", "", "stall", 3, ())

    def drained(self, residue: int) -> None:
        """[scheduler] Nothing is left to do; ``residue`` counts what the scheduler still keeps."""
        if not self.unreported.none(EACH, EACH):
            raise Broken("oblige", "L2", "drained", 0, (residue,))
        if not (not self.storing):
            raise Broken("oblige", "P12", "drained", 1, (residue,))
        if not self.pinned.none(EACH, EACH):
            raise Broken("oblige", "P12", "drained", 2, (residue,))
        if not (residue == 0):
            raise Broken("oblige", "P12", "drained", 3, (residue,))
        if not all(r in self.concluded for r in self.announced):
            raise Broken("oblige", "P6", "drained", 4, (residue,))

    def ask(self, r: Request) -> None:
        """[engine] The engine asks what can be loaded: what earlier lookups found counts no
        more.
        """
        if not (r in self.alive):
            raise Broken("assume", "", "ask", 0, (r,))
        self.asking.add(r)
        self.answered.discard(r, ANY)
        self.deferred.discard(r, ANY)

    def look(self, r: Request) -> None:
        """[scheduler] The first key of a lookup is looked up."""
        if not (r in self.alive):
            raise Broken("oblige", "P13", "look", 0, (r,))

    def await_key(self, r: Request, x: Residency) -> None:
        """[scheduler] A lookup finds a key that is still being stored, which it may wait for."""
        if not (r in self.alive):
            raise Broken("oblige", "P13", "await_key", 0, (r, x))
        if not ((x in self.storing) and (x in self.maker)):
            raise Broken("oblige", "L4", "await_key", 1, (r, x))
        if not (not self.unreported.none(self.maker[x], EACH)):
            raise Broken("oblige", "L4", "await_key", 2, (r, x))

    def defer(self, r: Request, most: int, now_best: int, could_be: int, moving: int) -> None:
        """[scheduler] The scheduler puts an answer off: the engine is to ask again later.

        It waits for the jobs that were in flight when it did so first; with none of them left it
        may do so ``most`` times more. ``now_best`` is the greatest boundary that can be served,
        ``could_be`` the same with all that is being stored; ``moving`` is 1 when a key that the
        answer needs is on its way to the GPU.
        """
        if not (r in self.alive):
            raise Broken("oblige", "P13", "defer", 0, (r, most, now_best, could_be, moving))
        if not (
            not (
                (r in self.putting_off)
                and all(
                    (self.putting_off[r] < self.job_number[j])
                    for j, w in self.unreported.match(EACH, EACH)
                )
            )
            or (self.polls[r] < most)
        ):
            raise Broken("oblige", "L1", "defer", 1, (r, most, now_best, could_be, moving))
        if not (
            (now_best < could_be)
            or (moving == 1)
            or not all(
                (not (self.job_request[j] == r))
                for j, w in self.unreported.match(EACH, EACH)
            )
        ):
            raise Broken("oblige", "L3", "defer", 2, (r, most, now_best, could_be, moving))
        if not (r in self.polls):
            self.polls[r] = 0
        if (
            (r in self.putting_off)
            and all(
                (self.putting_off[r] < self.job_number[j])
                for j, w in self.unreported.match(EACH, EACH)
            )
        ):
            self.polls[r] = self.polls[r] + 1
        if not (r in self.putting_off):
            self.putting_off[r] = self.issued
        self.deferred.add(r, self.now)
        self.asking.discard(r)

    def judge_own_wait(self, r: Request, now_best: int, could_be: int, moving: int) -> None:
        """[scheduler] An answer is put off while a job of the request itself is in flight."""
        if not ((now_best < could_be) or (moving == 1)):
            raise Broken("oblige", "L3.1", "judge_own_wait", 0, (r, now_best, could_be, moving))

    def answer(self, r: Request, computed: int, tokens: int, known: int, most: int) -> None:
        """[scheduler] An answer: ``tokens`` beyond ``computed``, of a request of which ``known``
        are known.

        ``most`` is how many it lets itself be given.
        """
        if not (r in self.alive):
            raise Broken("oblige", "P13", "answer", 0, (r, computed, tokens, known, most))
        if not ((not (tokens < 0)) and ((computed + tokens) <= known)):
            raise Broken("oblige", "P16", "answer", 1, (r, computed, tokens, known, most))
        if not (tokens <= most):
            raise Broken("oblige", "P15", "answer", 2, (r, computed, tokens, known, most))
        if not (
            (self.told[r] == tokens)
            if ((r in self.told) and (r in self.told_from) and (self.told_from[r] == computed))
            else True
        ):
            raise Broken("oblige", "P16", "answer", 3, (r, computed, tokens, known, most))
        self.told[r] = tokens
        self.told_from[r] = computed
        self.putting_off.pop(r, None)
        self.polls.pop(r, None)
        self.asking.discard(r)

    def offer(self, r: Request, q: Position, depth: int, most: int) -> None:
        """[scheduler] A chunk is offered for storing: it ends with token ``depth``, ``q`` lies in
        it.

        ``most`` is how many tokens the request, and the engine's options, let be stored.
        """
        if not ((r, q) in self.had):
            raise Broken("oblige", "P7", "offer", 0, (r, q, depth, most))
        if not (depth <= most):
            raise Broken("oblige", "P15", "offer", 1, (r, q, depth, most))

    def offer_is_computed(self, r: Request, depth: int) -> None:
        """[scheduler] The step of an offer has been scheduled: it computes what was offered, if not
        before.
        """
        if not ((r in self.computed_to) and (depth <= self.computed_to[r])):
            raise Broken("oblige", "P7", "offer_is_computed", 0, (r, depth))

    def use_key(self, named: Content, own: Content) -> None:
        """[scheduler] The scheduler uses a key for a request whose own content at that depth is
        ``own``.
        """
        if not (named == own):
            raise Broken("oblige", "S12", "use_key", 0, (named, own))

    def hit(self, r: Request, x: Residency) -> None:
        """[scheduler] A lookup finds a key readable."""
        if not (x in self.admitted_in):
            raise Broken("oblige", "S6", "hit", 0, (r, x))
        if not (self.admitted_in[x] == self.epoch):
            raise Broken("oblige", "S13", "hit", 1, (r, x))
        if not (x in self.ready):
            raise Broken("oblige", "S6", "hit", 2, (r, x))
        self.answered.add(r, x)

    def arrive(self, r: Request) -> None:
        """[engine] A request enters; its incarnation is new."""
        if not ((not (r in self.alive)) and (not (r in self.ended))):
            raise Broken("assume", "", "arrive", 0, (r,))
        self.alive.add(r)

    def finish(self, r: Request) -> None:
        """[engine] A request ends (stop, length, abort); its leases are given up one by one."""
        if not (r in self.alive):
            raise Broken("assume", "", "finish", 0, (r,))
        self.alive.discard(r)
        self.ended.add(r)
        self.answered.discard(r, ANY)
        self.deferred.discard(r, ANY)
        self.putting_off.pop(r, None)
        self.polls.pop(r, None)
        self.asking.discard(r)
        self.told.pop(r, None)

    def preempt(self, r: Request) -> None:
        """[engine] A running request is put back; nothing that it was answered counts any more."""
        if not (r in self.alive):
            raise Broken("assume", "", "preempt", 0, (r,))
        self.answered.discard(r, ANY)
        self.deferred.discard(r, ANY)
        self.putting_off.pop(r, None)
        self.polls.pop(r, None)
        self.asking.discard(r)
        self.told.pop(r, None)

    def name_prefix(self, named: Content, own: Content) -> None:
        """[engine] The engine's hash of a request's prefix ``own``, which it gave ``named`` so
        far.
        """
        if not (named == own):
            raise Broken("assume", "", "name_prefix", 0, (named, own))

    def extend(self, r: Request) -> None:
        """[engine] A session goes on with other tokens than were known."""
        if not (r in self.alive):
            raise Broken("assume", "", "extend", 0, (r,))
        self.answered.discard(r, ANY)
        self.deferred.discard(r, ANY)
        self.putting_off.pop(r, None)
        self.polls.pop(r, None)
        self.asking.discard(r)
        self.told.pop(r, None)

    def lease(self, r: Request, l: Lease) -> None:
        """[engine] A block that nobody holds is handed out for one position of one request."""
        l_block = self.lease_block[l]
        if not (r in self.alive):
            raise Broken("assume", "", "lease", 0, (r, l))
        if not (not (l in self.handed_at)):
            raise Broken("assume", "", "lease", 1, (r, l))
        if not (
            (
                (self.lease_seq[self.current[l_block]] < self.lease_seq[l])
                and self.holds.none(EACH, self.current[l_block])
                and self.incoming.none(self.current[l_block], EACH)
            )
            if (l_block in self.current)
            else True
        ):
            raise Broken("assume", "", "lease", 2, (r, l))
        if l_block in self.current:
            self.superseded_at[self.current[l_block]] = self.now
        self.current[l_block] = l
        self.handed_at[l] = self.now
        self.holds.add(r, l)
        self.had.add(r, self.lease_position[l])

    def share(self, r: Request, l: Lease) -> None:
        """[engine] A request also holds a lease whose content the GPU prefix cache knows."""
        l_block = self.lease_block[l]
        if not ((r in self.alive) and (not ((r, l) in self.holds))):
            raise Broken("assume", "", "share", 0, (r, l))
        if not ((l_block in self.current) and (self.current[l_block] == l)):
            raise Broken("assume", "", "share", 1, (r, l))
        if not self.incoming.none(l, EACH):
            raise Broken("assume", "", "share", 2, (r, l))
        self.holds.add(r, l)
        self.had.add(r, self.lease_position[l])

    def free(self, r: Request, l: Lease) -> None:
        """[engine] A request lets go of a lease: it ended, was preempted, or its window slid on."""
        if not ((r, l) in self.holds):
            raise Broken("assume", "", "free", 0, (r, l))
        if not self.incoming.none(l, EACH):
            raise Broken("assume", "", "free", 1, (r, l))
        self.holds.discard(r, l)
        self.given_up_at[r, l] = self.now

    def expect(self, l: Lease) -> None:
        """[engine] The engine takes an answer: a load is to bring what this lease holds."""
        if not (l in self.handed_at):
            raise Broken("assume", "", "expect", 0, (l,))
        self.expected.add(l)

    def schedule_to(self, r: Request, end: int) -> None:
        """[engine] A step being scheduled, or a load or fill that has ended, brings a request's
        first ``end`` tokens.
        """
        if not (r in self.alive):
            raise Broken("assume", "", "schedule_to", 0, (r, end))
        if (not (r in self.computed_to)) or (self.computed_to[r] < end):
            self.computed_to[r] = end

    def close_window(self) -> None:
        """[engine] ``schedule()`` ends; what comes now belongs to the next window."""
        self.now = self.now + 1

    def launch(self, w: Worker) -> None:
        """[worker] A worker begins the next step; it can only be one that was scheduled."""
        if not ((self.at[w] + 1) < self.now):
            raise Broken("assume", "", "launch", 0, (w,))
        self.at[w] = self.at[w] + 1

    def compute(self, w: Worker, l: Lease, c: Content) -> None:
        """[engine] A forward writes one slot: content ``c``, in lease ``l``."""
        l_block = self.lease_block[l]
        if not ((l in self.handed_at) and (self.handed_at[l] <= self.at[w])):
            raise Broken("assume", "", "compute", 0, (w, l, c))
        if not (not ((l in self.superseded_at) and (self.superseded_at[l] <= self.at[w]))):
            raise Broken("assume", "", "compute", 1, (w, l, c))
        if not all(
            ((other == l) or (self.lease_seq[l] < self.lease_seq[other]))
            for _, _, j, other in self.reading.match(l_block, w, EACH, EACH)
        ):
            raise Broken("oblige", "S3", "compute", 2, (w, l, c))
        if not self.incoming.none(l, EACH):
            raise Broken("assume", "", "compute", 3, (w, l, c))
        self.owner[l_block, w] = l
        self.written.add(l, w, c)
        self.settled.add(l, w, c)

    def zero(self, w: Worker, l: Lease) -> None:
        """[engine] A worker clears a block that was just handed out."""
        l_block = self.lease_block[l]
        if not ((l in self.handed_at) and (self.handed_at[l] <= self.at[w])):
            raise Broken("assume", "", "zero", 0, (w, l))
        if not (not ((l in self.superseded_at) and (self.superseded_at[l] <= self.at[w]))):
            raise Broken("assume", "", "zero", 1, (w, l))
        if not all(
            ((other == l) or (self.lease_seq[l] < self.lease_seq[other]))
            for _, _, j, other in self.reading.match(l_block, w, EACH, EACH)
        ):
            raise Broken("oblige", "S3", "zero", 2, (w, l))
        if not self.incoming.none(l, EACH):
            raise Broken("assume", "", "zero", 3, (w, l))
        if not self.settled.none(l, w, EACH):
            raise Broken("assume", "", "zero", 4, (w, l))
        self.owner[l_block, w] = l

    def copy_slot(self, w: Worker, source: Lease, l: Lease, c: Content) -> None:
        """[engine] A block copy brings content ``c`` from one lease to another (copy-on-write)."""
        l_block = self.lease_block[l]
        source_block = self.lease_block[source]
        if not ((l in self.handed_at) and (self.handed_at[l] <= self.at[w])):
            raise Broken("assume", "", "copy_slot", 0, (w, source, l, c))
        if not (not ((l in self.superseded_at) and (self.superseded_at[l] <= self.at[w]))):
            raise Broken("assume", "", "copy_slot", 1, (w, source, l, c))
        if not all(
            ((other == l) or (self.lease_seq[l] < self.lease_seq[other]))
            for _, _, j, other in self.reading.match(l_block, w, EACH, EACH)
        ):
            raise Broken("oblige", "S3", "copy_slot", 2, (w, source, l, c))
        if not self.incoming.none(l, EACH):
            raise Broken("assume", "", "copy_slot", 3, (w, source, l, c))
        if not (not (
            (source in self.superseded_at)
            and (self.superseded_at[source] <= self.at[w])
        )):
            raise Broken("assume", "", "copy_slot", 4, (w, source, l, c))
        if not (((source, w, c) in self.settled) or (source in self.expected)):
            raise Broken("assume", "", "copy_slot", 5, (w, source, l, c))
        if not ((source, w, c) in self.settled):
            raise Broken("oblige", "S14", "copy_slot", 6, (w, source, l, c))
        if not (
            ((source, w, c) in self.written)
            and (((source_block, w) in self.owner) and (self.owner[source_block, w] == source))
        ):
            raise Broken("conclude", "S14", "copy_slot", 7, (w, source, l, c))
        if not (not (source_block == l_block)):
            raise Broken("assume", "", "copy_slot", 8, (w, source, l, c))
        self.owner[l_block, w] = l
        self.written.add(l, w, c)
        self.settled.add(l, w, c)

    def attend(self, w: Worker, l: Lease, c: Content) -> None:
        """[engine] A forward reads content ``c`` from lease ``l``, as its request's position
        demands.

        What the engine computed itself is its own promise; what lies in the range that was
        answered for is the scheduler's. A recurrent state that is advanced in place is read from
        the lease that this very step has replaced: nothing else may have changed the block yet.
        """
        l_block = self.lease_block[l]
        if not (((l, w, c) in self.settled) or (l in self.expected)):
            raise Broken("assume", "", "attend", 0, (w, l, c))
        if not (not ((l in self.superseded_at) and (self.superseded_at[l] < self.at[w]))):
            raise Broken("assume", "", "attend", 1, (w, l, c))
        if not ((l, w, c) in self.settled):
            raise Broken("oblige", "S14", "attend", 2, (w, l, c))
        if not (
            (((l_block, w) in self.owner) and (self.owner[l_block, w] == l))
            if ((l in self.superseded_at) and (self.superseded_at[l] <= self.at[w]))
            else True
        ):
            raise Broken("oblige", "S14", "attend", 3, (w, l, c))
        if not (
            ((l, w, c) in self.written)
            and (((l_block, w) in self.owner) and (self.owner[l_block, w] == l))
        ):
            raise Broken("conclude", "S14", "attend", 4, (w, l, c))

    def settle(self, p: Piece) -> None:
        """[scheduler] The engine is told that a load ended well and takes one of its pieces for
        computed.
        """
        p_job = self.piece_job[p]
        p_lease = self.piece_lease[p]
        p_place = self.piece_place[p]
        p_place_content = self.place_content[p_place]
        p_lease_block = self.lease_block[p_lease]
        if not (
            (p_job in self.load)
            and ((p_job, p) in self.pieces)
            and ((p_lease, p_job) in self.incoming)
        ):
            raise Broken("assume", "", "settle", 0, (p,))
        if not self.pending.none(p_job, EACH):
            raise Broken("oblige", "S11", "settle", 1, (p,))
        if not self.failed.none(p_job, EACH):
            raise Broken("oblige", "S10", "settle", 2, (p,))
        if not all(
            (
                ((p_lease, w, p_place_content) in self.written)
                and (
                    ((p_lease_block, w) in self.owner)
                    and (self.owner[p_lease_block, w] == p_lease)
                )
            )
            for w in self.workers
        ):
            raise Broken("conclude", "S10", "settle", 3, (p,))
        for worker in self.workers:
            self.settled.add(p_lease, worker, p_place_content)
        self.incoming.discard(p_lease, p_job)

    def release(self, p: Piece) -> None:
        """[scheduler] The engine is told that a load failed: it computes that piece's tokens
        itself.
        """
        p_job = self.piece_job[p]
        p_lease = self.piece_lease[p]
        p_job_request = self.job_request[p_job]
        if not (
            (p_job in self.load)
            and ((p_job, p) in self.pieces)
            and ((p_lease, p_job) in self.incoming)
        ):
            raise Broken("assume", "", "release", 0, (p,))
        if not self.pending.none(p_job, EACH):
            raise Broken("oblige", "S11", "release", 1, (p,))
        if not (not self.failed.none(p_job, EACH)):
            raise Broken("oblige", "P14", "release", 2, (p,))
        self.incoming.discard(p_lease, p_job)
        self.spoiled.add(p_job_request, self.place_residency[self.piece_place[p]])
        self.told.pop(p_job_request, None)
