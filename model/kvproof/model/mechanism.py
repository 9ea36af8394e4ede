"""The mechanism, executable. Generated from the spec by ``kvproof generate``: do not edit.

It is the contract with more fields, conditions and moves: how the production scheduler keeps it.
Here stands what differs. Attributes of its own must be set before the thing is first used, too.
"""

from __future__ import annotations

from kvproof.model.broken import Broken
from kvproof.model.contract import (
    Block,
    Content,
    Contract,
    Job,
    Lease,
    Piece,
    Place,
    Position,
    Request,
    Residency,
    Worker,
)
from kvproof.model.relation import ANY, EACH, Relation


class Mechanism(Contract):
    """More state and moves."""

    def __init__(self, workers: list[Worker]) -> None:
        super().__init__(workers)
        # its number in the chunk, counted from 0
        self.place_offset: dict[Place, int] = {}
        # how many blocks the chunk has
        self.chunk_blocks: dict[Residency, int] = {}
        # the block table: Tables.blocks, never remembered (M4) (S4)
        self.lists: Relation[Request, Position, Lease] = Relation()
        # the step by whose end the engine has the content there (S2)
        self.due: Relation[Lease, Content, int] = Relation()
        # that step: num_computed_tokens and what is scheduled (S2)
        self.due_in: dict[tuple[Lease, Content], int] = {}
        # a hash in block_hashes, and the prefix it is of (S12)
        self.hashed: Relation[Content, Content] = Relation()
        # a report has said that the copy failed: Job.failed (S6)
        self.said_failed: Relation[Job, Worker] = Relation()
        # OffloadScheduler.requests: entered, not ended (P6)
        self.tracked: set[Request] = set()
        # Stores.ending: ended since the last plan (P6)
        self.ending: set[Request] = set()
        # Ending.blocks: the table it ended with, given up since (S1)
        self.last_table: Relation[Request, Position, Lease] = Relation()
        # up to which token chunks were offered in this window (P7)
        self.offered: Relation[Request, int] = Relation()
        # Ledger.losses: how often keys went, or a load failed (M8) (S5)
        self.losses = 0
        # RequestState.losses: how many at its last look (S5)
        self.looked_at: dict[Request, int] = {}
        # RequestState.answer: the hits since that look (S5)
        self.found: Relation[Request, Residency] = Relation()
        # Ledger.refused: a load of it failed (L5)
        self.refused: Relation[Request, Residency] = Relation()
        # the blocks that came with an answer that was taken (S11)
        self.fresh: Relation[Request, Position, Lease] = Relation()
        # JobTable.live, or of before a reset and in JobTable.dead (M2) (P5)
        self.listed: set[Job] = set()
        # Job.left: the worker has not reported the live job (P4)
        self.awaited: Relation[Job, Worker] = Relation()
        # the last report has come and is being dealt with (P4)
        self.all_reported: set[Job] = set()
        # Fence: a store that has not completed reads it (M3) (S3)
        self.fence: Relation[Block, Job] = Relation()
        # handed out since the last plan: Step.leased (S3)
        self.leased: set[Block] = set()
        # the last window whose flush set is decided (M5) (S3)
        self.decided_in = 0
        # Job.keys of a store: to be completed (P4)
        self.to_complete: Relation[Job, Residency] = Relation()
        # Job.keys of a load: to be let go of (P4)
        self.to_unpin: Relation[Job, Residency] = Relation()
        # Room.keys: the tier took it, no store makes it yet (S7)
        self.granted: set[Residency] = set()
        # not all of its blocks are in the store that makes it (S4)
        self.laying: set[Residency] = set()
        # the offset behind its last block so far (S4)
        self.next_offset: dict[Residency, int] = {}
        # Ledger.coverage: how many first blocks it has not (S4)
        self.missing: dict[Residency, int] = {}
        # the place at an offset that its store fills (S4)
        self.stored_at: dict[tuple[Residency, int], Place] = {}
        # OffloadWorker._stores, or a load of this step: not at the copier yet (P2)
        self.to_submit: Relation[Job, Worker] = Relation()
        # WorkerReport.completed_jobs: not yet sent (P4)
        self.to_report: Relation[Job, Worker] = Relation()
        # the last step for which it has waited for the flushed jobs of earlier steps (M7) (S7)
        self.cleared_to: dict[Worker, int] = dict.fromkeys(workers, 0)
        # the last step whose whole flush set it has waited for (M5) (S3)
        self.waited_to: dict[Worker, int] = dict.fromkeys(workers, 0)

    def admit(self, x: Residency) -> None:
        """[tier] ``Stores._ask``: the tier is offered chunks while a plan is made."""
        x_slot = self.residency_slot[x]
        x_key = self.residency_key[x]
        if not (self.decided_in == self.now):
            raise Broken("assume", "", "admit", 0, (x,))
        if not (not (x in self.admitted_in)):
            raise Broken("assume", "", "admit", 1, (x,))
        if not (
            (self.residency_seq[self.latest[x_slot]] < self.residency_seq[x])
            if (x_slot in self.latest)
            else True
        ):
            raise Broken("assume", "", "admit", 2, (x,))
        if not self.slot_exists[x_slot]:
            raise Broken("oblige", "S8", "admit", 3, (x,))
        if not (not (x_key in self.where)):
            raise Broken("oblige", "S8", "admit", 4, (x,))
        if not (not (x_slot in self.occupant)):
            raise Broken("oblige", "S8", "admit", 5, (x,))
        self.admitted_in[x] = self.epoch
        self.resident.add(x)
        self.storing.add(x)
        self.where[x_key] = x
        self.occupant[x_slot] = x
        self.latest[x_slot] = x
        self.told.clear()
        self.granted.add(x)

    def evict(self, x: Residency) -> None:
        """[tier] ``Ledger.gone``: what is known of the key goes with it."""
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
        self.missing.pop(x, None)
        self.refused.discard(ANY, x)
        self.losses = self.losses + 1

    def publish(self, j: Job, x: Residency) -> None:
        """[scheduler] ``Ledger._end_store``: the last report of a store has come, and none said it
        failed.
        """
        if not ((j in self.all_reported) and ((j, x) in self.to_complete)):
            raise Broken("assume", "", "publish", 0, (j, x))
        if not self.said_failed.none(j, EACH):
            raise Broken("assume", "", "publish", 1, (j, x))
        if not ((j in self.job_epoch) and (self.job_epoch[j] == self.epoch)):
            raise Broken("oblige", "P5", "publish", 2, (j, x))
        if not ((x in self.storing) and (x in self.maker) and (self.maker[x] == j)):
            raise Broken("oblige", "P4", "publish", 3, (j, x))
        if not self.unreported.none(j, EACH):
            raise Broken("oblige", "P4", "publish", 4, (j, x))
        if not self.pending.none(j, EACH):
            raise Broken("conclude", "S6", "publish", 5, (j, x))
        if not self.failed.none(j, EACH):
            raise Broken("oblige", "S6", "publish", 6, (j, x))
        self.storing.discard(x)
        self.ready.add(x)
        self.told.clear()
        self.to_complete.discard(j, x)

    def drop(self, j: Job, x: Residency) -> None:
        """[scheduler] ``Ledger._end_store``: the last report of a store has come, and one said it
        failed.
        """
        if not ((j in self.all_reported) and ((j, x) in self.to_complete)):
            raise Broken("assume", "", "drop", 0, (j, x))
        if not (not self.said_failed.none(j, EACH)):
            raise Broken("assume", "", "drop", 1, (j, x))
        if not ((j in self.job_epoch) and (self.job_epoch[j] == self.epoch)):
            raise Broken("oblige", "P5", "drop", 2, (j, x))
        if not ((x in self.storing) and (x in self.maker) and (self.maker[x] == j)):
            raise Broken("oblige", "P4", "drop", 3, (j, x))
        if not self.unreported.none(j, EACH):
            raise Broken("oblige", "P4", "drop", 4, (j, x))
        if not (not self.failed.none(j, EACH)):
            raise Broken("oblige", "P14", "drop", 5, (j, x))
        self.storing.discard(x)
        self.resident.discard(x)
        self.where.pop(self.residency_key[x], None)
        self.occupant.pop(self.residency_slot[x], None)
        self.told.clear()
        self.to_complete.discard(j, x)
        self.missing.pop(x, None)

    def unpin(self, j: Job, x: Residency) -> None:
        """[scheduler] ``Ledger._end_load``: the last report of a load has come."""
        j_request = self.job_request[j]
        if not ((j in self.all_reported) and ((j, x) in self.to_unpin)):
            raise Broken("assume", "", "unpin", 0, (j, x))
        if not (
            self.said_failed.none(j, EACH)
            or ((j_request, x) in self.refused)
            or (not (j_request in self.tracked))
        ):
            raise Broken("assume", "", "unpin", 1, (j, x))
        if not ((j in self.job_epoch) and (self.job_epoch[j] == self.epoch)):
            raise Broken("oblige", "P5", "unpin", 2, (j, x))
        if not ((x, j) in self.pinned):
            raise Broken("oblige", "P4", "unpin", 3, (j, x))
        if not ((j in self.job_step) and self.unreported.none(j, EACH)):
            raise Broken("oblige", "P4", "unpin", 4, (j, x))
        self.pinned.discard(x, j)
        self.to_unpin.discard(j, x)

    def tier_new(self, r: Request) -> None:
        """[scheduler] ``OffloadScheduler.add``: a request enters the engine, and is not in the
        table yet.
        """
        if not ((r in self.alive) and (not (r in self.tracked))):
            raise Broken("assume", "", "tier_new", 0, (r,))
        if not (not (r in self.announced)):
            raise Broken("oblige", "P6", "tier_new", 1, (r,))
        self.announced.add(r)
        self.tracked.add(r)

    def tier_call(self, r: Request) -> None:
        """[scheduler] Only for requests in the table, and in ``Stores.end`` for those that have
        just ended.
        """
        if not ((r in self.tracked) or (r in self.ending)):
            raise Broken("assume", "", "tier_call", 0, (r,))
        if not ((r in self.announced) and (not (r in self.concluded))):
            raise Broken("oblige", "P6", "tier_call", 1, (r,))

    def tier_finished(self, r: Request) -> None:
        """[scheduler] ``Stores.end``: goodbye, once; or ``OffloadScheduler.reset``, in place of
        it.
        """
        if not (r in self.ending):
            raise Broken("assume", "", "tier_finished", 0, (r,))
        if not ((r in self.announced) and (not (r in self.concluded))):
            raise Broken("oblige", "P6", "tier_finished", 1, (r,))
        self.concluded.add(r)
        self.ending.discard(r)

    def reset(self) -> None:
        """[engine] ``OffloadScheduler.reset``: all is forgotten, what is under way is dead.

        Resets come between steps.
        """
        if not (self.decided_in < self.now):
            raise Broken("assume", "", "reset", 0, ())
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
        self.fence.discard(ANY, ANY)
        self.to_complete.discard(ANY, ANY)
        self.to_unpin.discard(ANY, ANY)
        self.awaited.discard(ANY, ANY)
        self.all_reported.clear()
        self.refused.discard(ANY, ANY)
        self.missing.clear()
        self.losses = self.losses + 1

    def start_store(self, w: Worker, p: Piece) -> None:
        """[worker] ``OffloadWorker._submit_stores``: each store once, a step later than it was
        planned.

        Or in its own step when that flushes it, after the wait for earlier ones.
        """
        p_job = self.piece_job[p]
        p_place = self.piece_place[p]
        p_lease = self.piece_lease[p]
        p_place_residency = self.place_residency[p_place]
        p_lease_block = self.lease_block[p_lease]
        p_place_residency_slot = self.residency_slot[p_place_residency]
        if not ((p_job, w) in self.to_submit):
            raise Broken("assume", "", "start_store", 0, (w, p))
        if not (
            (self.job_step[p_job] < self.at[w])
            or (
                (self.cleared_to[w] == self.at[w])
                and (p_job in self.flush_at)
                and (self.flush_at[p_job] == self.at[w])
            )
        ):
            raise Broken("assume", "", "start_store", 1, (w, p))
        if not (p_job in self.store):
            raise Broken("assume", "", "start_store", 2, (w, p))
        if not ((p_job, p) in self.pieces):
            raise Broken("assume", "", "start_store", 3, (w, p))
        if not (((p_job, w) in self.pending) and (not ((p_job, w) in self.submitted))):
            raise Broken("oblige", "P2", "start_store", 4, (w, p))
        if not ((self.job_step[p_job] <= self.at[w]) and (not ((p, w) in self.started))):
            raise Broken("assume", "", "start_store", 5, (w, p))
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
            raise Broken("oblige", "S7", "start_store", 6, (w, p))
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
            raise Broken("oblige", "S2", "start_store", 7, (w, p))
        self.started.add(p, w)
        self.slot_owner[p_place_residency_slot, w] = p_place_residency

    def start_load(self, w: Worker, p: Piece) -> None:
        """[worker] ``OffloadWorker.start_kv_transfers``: each load once, after all waits of its
        step.
        """
        p_job = self.piece_job[p]
        p_place = self.piece_place[p]
        p_lease = self.piece_lease[p]
        p_place_residency = self.place_residency[p_place]
        p_lease_block = self.lease_block[p_lease]
        p_place_residency_slot = self.residency_slot[p_place_residency]
        if not ((p_job, w) in self.to_submit):
            raise Broken("assume", "", "start_load", 0, (w, p))
        if not (self.waited_to[w] == self.at[w]):
            raise Broken("assume", "", "start_load", 1, (w, p))
        if not (p_job in self.load):
            raise Broken("assume", "", "start_load", 2, (w, p))
        if not ((p_job, p) in self.pieces):
            raise Broken("assume", "", "start_load", 3, (w, p))
        if not (((p_job, w) in self.pending) and (not ((p_job, w) in self.submitted))):
            raise Broken("oblige", "P2", "start_load", 4, (w, p))
        if not ((self.job_step[p_job] <= self.at[w]) and (not ((p, w) in self.started))):
            raise Broken("assume", "", "start_load", 5, (w, p))
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
            raise Broken("oblige", "S7", "start_load", 6, (w, p))
        if not (
            ((p_place, w) in self.placed)
            and (
                ((p_place_residency_slot, w) in self.slot_owner)
                and (self.slot_owner[p_place_residency_slot, w] == p_place_residency)
            )
        ):
            raise Broken("conclude", "S10", "start_load", 7, (w, p))
        if not ((p_lease, p_job) in self.incoming):
            raise Broken("conclude", "S11", "start_load", 8, (w, p))
        if not all(
            ((other == p_lease) or (self.lease_seq[p_lease] < self.lease_seq[other]))
            for _, _, j, other in self.reading.match(p_lease_block, w, EACH, EACH)
        ):
            raise Broken("oblige", "S3", "start_load", 9, (w, p))
        self.started.add(p, w)
        self.owner[p_lease_block, w] = p_lease

    def submit(self, w: Worker, j: Job) -> None:
        """[worker] ``OffloadWorker._try``: from here on the copier has the job, and the worker has
        not.
        """
        if not (((j, w) in self.to_submit) and (self.job_step[j] <= self.at[w])):
            raise Broken("assume", "", "submit", 0, (w, j))
        if not (((j, w) in self.pending) and (not ((j, w) in self.submitted))):
            raise Broken("assume", "", "submit", 1, (w, j))
        if not all((p, w) in self.started for _, p in self.pieces.match(j, EACH)):
            raise Broken("assume", "", "submit", 2, (w, j))
        self.submissions = self.submissions + 1
        self.submit_seq[j, w] = self.submissions
        self.submitted.add(j, w)
        self.in_flight.add(w, self.job_lane[j], j)
        self.to_submit.discard(j, w)

    def end(self, w: Worker, j: Job) -> None:
        """[worker] ``OffloadWorker._ended``: it goes into the next report."""
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
        self.to_report.add(j, w)

    def fail(self, w: Worker, j: Job) -> None:
        """[worker] ``OffloadWorker._ended``: so does a failure."""
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
        self.to_report.add(j, w)

    def report(self, w: Worker, j: Job) -> None:
        """[worker] ``OffloadWorker.build_connector_worker_meta`` tells once; ``JobTable.report``
        counts.

        A report for a job that is not live changes no table.
        """
        if not ((j, w) in self.to_report):
            raise Broken("assume", "", "report", 0, (w, j))
        if not ((j, w) in self.unreported):
            raise Broken("oblige", "P4", "report", 1, (w, j))
        if not (not ((j, w) in self.pending)):
            raise Broken("oblige", "P4", "report", 2, (w, j))
        self.unreported.discard(j, w)
        self.reading.discard(ANY, w, j, ANY)
        self.to_report.discard(j, w)
        if (j, w) in self.failed:
            self.said_failed.add(j, w)
        if ((j, w) in self.awaited) and all(v == w for _, v in self.awaited.match(j, EACH)):
            self.all_reported.add(j)
        self.awaited.discard(j, w)

    def open_load(self, j: Job) -> None:
        """[scheduler] ``Loads.take``: for a request in the table; ``JobTable.issue`` lists the
        job.
        """
        j_request = self.job_request[j]
        if not (j_request in self.tracked):
            raise Broken("assume", "", "open_load", 0, (j,))
        if not (not (j in self.job_epoch)):
            raise Broken("assume", "", "open_load", 1, (j,))
        if not (j_request in self.alive):
            raise Broken("oblige", "P13", "open_load", 2, (j,))
        if not (not (j in self.store)):
            raise Broken("assume", "", "open_load", 3, (j,))
        if not (not self.asking):
            raise Broken("oblige", "P16", "open_load", 4, (j,))
        self.load.add(j)
        self.job_epoch[j] = self.epoch
        self.listed.add(j)

    def pin(self, j: Job, x: Residency) -> None:
        """[scheduler] ``Loads._readable``: the latest lookup found the key, and nothing was lost
        since (M8).
        """
        j_request = self.job_request[j]
        if not (((j_request, x) in self.found) and (j_request in self.looked_at)):
            raise Broken("assume", "", "pin", 0, (j, x))
        if not (self.looked_at[j_request] == self.losses):
            raise Broken("assume", "", "pin", 1, (j, x))
        if not ((j in self.load) and (self.job_epoch[j] == self.epoch)):
            raise Broken("assume", "", "pin", 2, (j, x))
        if not (not (j in self.job_step)):
            raise Broken("assume", "", "pin", 3, (j, x))
        if not ((j_request, x) in self.answered):
            raise Broken("oblige", "S5", "pin", 4, (j, x))
        if not (not ((j_request, x) in self.spoiled)):
            raise Broken("oblige", "L5", "pin", 5, (j, x))
        if not ((x in self.resident) and (x in self.ready)):
            raise Broken("conclude", "S5", "pin", 6, (j, x))
        self.pinned.add(x, j)
        self.to_unpin.add(j, x)

    def issue_load(self, j: Job) -> None:
        """[scheduler] ``Plan.loads``: loads go out with the plan."""
        if not (self.decided_in == self.now):
            raise Broken("assume", "", "issue_load", 0, (j,))
        if not ((j in self.load) and (not (j in self.job_step))):
            raise Broken("assume", "", "issue_load", 1, (j,))
        if not (self.job_epoch[j] == self.epoch):
            raise Broken("assume", "", "issue_load", 2, (j,))
        self.job_step[j] = self.now
        self.issued = self.issued + 1
        self.job_number[j] = self.issued
        for worker in self.workers:
            self.pending.add(j, worker)
        for worker in self.workers:
            self.unreported.add(j, worker)
        for worker in self.workers:
            self.awaited.add(j, worker)
        for worker in self.workers:
            self.to_submit.add(j, worker)

    def load_state(self, p: Piece, named: Content) -> None:
        """[scheduler] ``keys_of`` takes the hash that ends where the answer does, a boundary of
        chunks.
        """
        p_place = self.piece_place[p]
        p_place_content = self.place_content[p_place]
        if not ((p_place_content, named) in self.hashed):
            raise Broken("assume", "", "load_state", 0, (p, named))
        if not (p_place_content == named):
            raise Broken("oblige", "S9", "load_state", 1, (p, named))

    def plan_load(self, p: Piece) -> None:
        """[scheduler] ``Loads._plan``: from a chunk of the load to the block that came for that
        position.

        ``_Search._lower`` counts on no block that the chunk was stored without. A place is a chunk
        and an offset.
        """
        p_job = self.piece_job[p]
        p_place = self.piece_place[p]
        p_lease = self.piece_lease[p]
        p_place_residency = self.place_residency[p_place]
        p_job_request = self.job_request[p_job]
        p_place_position = self.place_position[p_place]
        p_place_offset = self.place_offset[p_place]
        p_place_residency_slot = self.residency_slot[p_place_residency]
        if not ((p_job, p_place_residency) in self.to_unpin):
            raise Broken("assume", "", "plan_load", 0, (p,))
        if not ((p_job_request, p_place_position, p_lease) in self.fresh):
            raise Broken("assume", "", "plan_load", 1, (p,))
        if not (
            (p_place_residency in self.missing)
            and (self.missing[p_place_residency] <= p_place_offset)
            and (p_place_offset < self.chunk_blocks[p_place_residency])
        ):
            raise Broken("assume", "", "plan_load", 2, (p,))
        if not (
            (self.stored_at[p_place_residency, p_place_offset] == p_place)
            if ((p_place_residency, p_place_offset) in self.stored_at)
            else True
        ):
            raise Broken("assume", "", "plan_load", 3, (p,))
        if not (
            (p_job in self.load)
            and (p_job in self.job_step)
            and (self.job_step[p_job] == self.now)
        ):
            raise Broken("assume", "", "plan_load", 4, (p,))
        if not (self.submitted.none(p_job, EACH) and self.started.none(p, EACH)):
            raise Broken("assume", "", "plan_load", 5, (p,))
        if not self.landed.none(p, EACH):
            raise Broken("assume", "", "plan_load", 6, (p,))
        if not (self.job_epoch[p_job] == self.epoch):
            raise Broken("assume", "", "plan_load", 7, (p,))
        if not ((p_place_residency, p_job) in self.pinned):
            raise Broken("oblige", "S5", "plan_load", 8, (p,))
        if not (self.lease_position[p_lease] == p_place_position):
            raise Broken("oblige", "S4", "plan_load", 9, (p,))
        if not (p_place in self.cover):
            raise Broken("oblige", "S4", "plan_load", 10, (p,))
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
            raise Broken("conclude", "S10", "plan_load", 11, (p,))
        if not ((p_job_request, p_lease) in self.holds):
            raise Broken("oblige", "S11", "plan_load", 12, (p,))
        if not all(other == p_job_request for other, _ in self.holds.match(EACH, p_lease)):
            raise Broken("oblige", "S11", "plan_load", 13, (p,))
        if not self.settled.none(p_lease, EACH, EACH):
            raise Broken("oblige", "S11", "plan_load", 14, (p,))
        if not self.incoming.none(p_lease, EACH):
            raise Broken("oblige", "S11", "plan_load", 15, (p,))
        self.pieces.add(p_job, p)
        for worker in self.workers:
            self.using.add(p_place_residency_slot, worker, p_job, p_place_residency)
        self.incoming.add(p_lease, p_job)
        self.fresh.discard(p_job_request, p_place_position, p_lease)

    def issue_store(self, j: Job) -> None:
        """[scheduler] ``Plan.stores``: so do stores; ``JobTable.issue`` lists the job."""
        if not (self.decided_in == self.now):
            raise Broken("assume", "", "issue_store", 0, (j,))
        if not ((not (j in self.job_epoch)) and (not (j in self.job_step))):
            raise Broken("assume", "", "issue_store", 1, (j,))
        if not (not (j in self.load)):
            raise Broken("assume", "", "issue_store", 2, (j,))
        self.store.add(j)
        self.job_epoch[j] = self.epoch
        self.job_step[j] = self.now
        self.issued = self.issued + 1
        self.job_number[j] = self.issued
        for worker in self.workers:
            self.pending.add(j, worker)
        for worker in self.workers:
            self.unreported.add(j, worker)
        self.listed.add(j)
        for worker in self.workers:
            self.awaited.add(j, worker)
        for worker in self.workers:
            self.to_submit.add(j, worker)

    def make(self, j: Job, x: Residency) -> None:
        """[scheduler] ``Stores._store``: one store makes what the tier has just taken."""
        if not (x in self.granted):
            raise Broken("assume", "", "make", 0, (j, x))
        if not ((j in self.store) and (self.job_epoch[j] == self.epoch)):
            raise Broken("assume", "", "make", 1, (j, x))
        if not (self.submitted.none(j, EACH) and (self.job_step[j] == self.now)):
            raise Broken("assume", "", "make", 2, (j, x))
        if not ((x in self.storing) and (not (x in self.maker))):
            raise Broken("oblige", "S7", "make", 3, (j, x))
        self.maker[x] = j
        self.granted.discard(x)
        self.laying.add(x)
        self.to_complete.add(j, x)

    def plan_store(self, p: Piece) -> None:
        """[scheduler] ``Stores._collect``: block by block, what the table lists at the chunk's
        positions.

        Of a request that has ended it is the table that came with its end; if the block is somebody
        else's by now, ``Stores.end`` flushes the store in this very step. All that is read is
        computed by the end of this step, or of an earlier one when the store is flushed in this.
        From here on the block is fenced (``Ledger.issue_store``).
        """
        p_job = self.piece_job[p]
        p_place = self.piece_place[p]
        p_lease = self.piece_lease[p]
        p_place_residency = self.place_residency[p_place]
        p_job_request = self.job_request[p_job]
        p_place_position = self.place_position[p_place]
        p_lease_block = self.lease_block[p_lease]
        p_place_content = self.place_content[p_place]
        p_place_offset = self.place_offset[p_place]
        if not ((p_job, p_place_residency) in self.to_complete):
            raise Broken("assume", "", "plan_store", 0, (p,))
        if not (
            ((p_job_request, p_place_position, p_lease) in self.lists)
            or ((p_job_request, p_place_position, p_lease) in self.last_table)
        ):
            raise Broken("assume", "", "plan_store", 1, (p,))
        if not (
            (p_job in self.flush_at)
            if (
                ((p_job_request, p_place_position, p_lease) in self.last_table)
                and (p_lease_block in self.leased)
            )
            else True
        ):
            raise Broken("assume", "", "plan_store", 2, (p,))
        if not ((p_lease, p_place_content) in self.due_in):
            raise Broken("assume", "", "plan_store", 3, (p,))
        if not (
            (self.due_in[p_lease, p_place_content] < self.now)
            if (p_job in self.flush_at)
            else True
        ):
            raise Broken("assume", "", "plan_store", 4, (p,))
        if not (
            (self.next_offset[p_place_residency] == p_place_offset)
            if (p_place_residency in self.next_offset)
            else True
        ):
            raise Broken("assume", "", "plan_store", 5, (p,))
        if not ((p_job in self.store) and (self.job_step[p_job] == self.now)):
            raise Broken("assume", "", "plan_store", 6, (p,))
        if not (self.submitted.none(p_job, EACH) and self.started.none(p, EACH)):
            raise Broken("assume", "", "plan_store", 7, (p,))
        if not self.landed.none(p, EACH):
            raise Broken("assume", "", "plan_store", 8, (p,))
        if not (self.job_epoch[p_job] == self.epoch):
            raise Broken("assume", "", "plan_store", 9, (p,))
        if not (
            (p_place_residency in self.storing)
            and (p_place_residency in self.maker)
            and (self.maker[p_place_residency] == p_job)
        ):
            raise Broken("oblige", "S7", "plan_store", 10, (p,))
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
            raise Broken("oblige", "S1", "plan_store", 11, (p,))
        if not (
            (self.lease_position[p_lease] == p_place_position)
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
            raise Broken("oblige", "S4", "plan_store", 12, (p,))
        if not (p_lease in self.handed_at):
            raise Broken("oblige", "S1", "plan_store", 13, (p,))
        if not (not (p_place in self.cover)):
            raise Broken("oblige", "S4", "plan_store", 14, (p,))
        self.pieces.add(p_job, p)
        for worker in self.workers:
            self.reading.add(p_lease_block, worker, p_job, p_lease)
        for worker in self.workers:
            self.using.add(self.residency_slot[p_place_residency], worker, p_job, p_place_residency)
        self.cover[p_place] = p
        self.fence.add(p_lease_block, p_job)
        if not (p_place_residency in self.next_offset):
            self.missing[p_place_residency] = p_place_offset
        self.stored_at[p_place_residency, p_place_offset] = p_place
        self.next_offset[p_place_residency] = p_place_offset + 1
        if self.chunk_blocks[p_place_residency] <= (p_place_offset + 1):
            self.laying.discard(p_place_residency)

    def flush(self, j: Job) -> None:
        """[scheduler] A job of an earlier step, or a store of this one that ``Stores.end`` makes
        (M5).

        ``JobTable.take_dead`` names a dead job once.
        """
        if not (j in self.job_step):
            raise Broken("assume", "", "flush", 0, (j,))
        if not ((self.job_step[j] < self.now) or ((j in self.store) and self.pieces.none(j, EACH))):
            raise Broken("assume", "", "flush", 1, (j,))
        if not (j in self.flush_at):
            self.flush_at[j] = self.now
        if self.job_epoch[j] < self.epoch:
            self.listed.discard(j)

    def drained(self, residue: int) -> None:
        """[scheduler] ``OffloadScheduler.has_work`` is false, between steps, and no request is
        left.

        The outputs of all steps have been taken in, so what was flushed has been reported.
        """
        if not ((not self.alive) and (self.decided_in < self.now)):
            raise Broken("assume", "", "drained", 0, (residue,))
        if not ((not self.listed) and (not self.ending)):
            raise Broken("assume", "", "drained", 1, (residue,))
        if not all(not (j in self.flush_at) for j, w in self.unreported.match(EACH, EACH)):
            raise Broken("assume", "", "drained", 2, (residue,))
        if not self.unreported.none(EACH, EACH):
            raise Broken("oblige", "L2", "drained", 3, (residue,))
        if not (not self.storing):
            raise Broken("oblige", "P12", "drained", 4, (residue,))
        if not self.pinned.none(EACH, EACH):
            raise Broken("oblige", "P12", "drained", 5, (residue,))
        if not (residue == 0):
            raise Broken("oblige", "P12", "drained", 6, (residue,))
        if not all(r in self.concluded for r in self.announced):
            raise Broken("oblige", "P6", "drained", 7, (residue,))
        if not ((not self.tracked) and (not self.all_reported)):
            raise Broken("conclude", "P12", "drained", 8, (residue,))
        if not (self.found.none(EACH, EACH) and self.awaited.none(EACH, EACH)):
            raise Broken("conclude", "P12", "drained", 9, (residue,))
        if not self.fence.none(EACH, EACH):
            raise Broken("conclude", "P12", "drained", 10, (residue,))
        if not self.to_complete.none(EACH, EACH):
            raise Broken("conclude", "P12", "drained", 11, (residue,))
        if not self.to_unpin.none(EACH, EACH):
            raise Broken("conclude", "P12", "drained", 12, (residue,))
        if not ((not self.granted) and (not self.laying)):
            raise Broken("conclude", "P12", "drained", 13, (residue,))
        if not self.refused.none(EACH, EACH):
            raise Broken("conclude", "P12", "drained", 14, (residue,))
        if not self.to_submit.none(EACH, EACH):
            raise Broken("conclude", "P12", "drained", 15, (residue,))
        if not self.to_report.none(EACH, EACH):
            raise Broken("conclude", "P12", "drained", 16, (residue,))

    def ask(self, r: Request) -> None:
        """[engine] ``Loads.lookup``: hits of an earlier question save asking, and cover no load."""
        if not (r in self.alive):
            raise Broken("assume", "", "ask", 0, (r,))
        self.asking.add(r)
        self.answered.discard(r, ANY)
        self.deferred.discard(r, ANY)
        self.found.discard(r, ANY)

    def look(self, r: Request) -> None:
        """[scheduler] ``Loads._answer``: only requests in the table are looked up, and it notes
        when.
        """
        if not (r in self.tracked):
            raise Broken("assume", "", "look", 0, (r,))
        if not (r in self.alive):
            raise Broken("oblige", "P13", "look", 1, (r,))
        self.found.discard(r, ANY)
        self.looked_at[r] = self.losses

    def await_key(self, r: Request, x: Residency) -> None:
        """[scheduler] Lookups come before the plan, and when ``Ledger.report`` has dealt with what
        ended.

        The tier says so of what it took and what was not completed.
        """
        if not ((r in self.tracked) and (x in self.storing)):
            raise Broken("assume", "", "await_key", 0, (r, x))
        if not ((self.decided_in < self.now) and (not self.all_reported)):
            raise Broken("assume", "", "await_key", 1, (r, x))
        if not (r in self.alive):
            raise Broken("oblige", "P13", "await_key", 2, (r, x))
        if not ((x in self.storing) and (x in self.maker)):
            raise Broken("oblige", "L4", "await_key", 3, (r, x))
        if not (not self.unreported.none(self.maker[x], EACH)):
            raise Broken("oblige", "L4", "await_key", 4, (r, x))

    def defer(self, r: Request, most: int, now_best: int, could_be: int, moving: int) -> None:
        """[scheduler] ``OffloadScheduler.lookup`` returns to the engine, which asks of living
        requests.
        """
        if not (r in self.asking):
            raise Broken("assume", "", "defer", 0, (r, most, now_best, could_be, moving))
        if not (r in self.alive):
            raise Broken("oblige", "P13", "defer", 1, (r, most, now_best, could_be, moving))
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
            raise Broken("oblige", "L1", "defer", 2, (r, most, now_best, could_be, moving))
        if not (
            (now_best < could_be)
            or (moving == 1)
            or not all(
                (not (self.job_request[j] == r))
                for j, w in self.unreported.match(EACH, EACH)
            )
        ):
            raise Broken("oblige", "L3", "defer", 3, (r, most, now_best, could_be, moving))
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

    def answer(self, r: Request, computed: int, tokens: int, known: int, most: int) -> None:
        """[scheduler] ``OffloadScheduler.lookup`` returns, too."""
        if not (r in self.asking):
            raise Broken("assume", "", "answer", 0, (r, computed, tokens, known, most))
        if not (r in self.alive):
            raise Broken("oblige", "P13", "answer", 1, (r, computed, tokens, known, most))
        if not ((not (tokens < 0)) and ((computed + tokens) <= known)):
            raise Broken("oblige", "P16", "answer", 2, (r, computed, tokens, known, most))
        if not (tokens <= most):
            raise Broken("oblige", "P15", "answer", 3, (r, computed, tokens, known, most))
        if not (
            (self.told[r] == tokens)
            if ((r in self.told) and (r in self.told_from) and (self.told_from[r] == computed))
            else True
        ):
            raise Broken("oblige", "P16", "answer", 4, (r, computed, tokens, known, most))
        self.told[r] = tokens
        self.told_from[r] = computed
        self.putting_off.pop(r, None)
        self.polls.pop(r, None)
        self.asking.discard(r)

    def offer(self, r: Request, q: Position, depth: int, most: int) -> None:
        """[scheduler] ``chunks_on_offer``: the table, read now, has a block there; ``last_chunk``:
        computed.

        The table is the engine's, or of a request that has ended the one that came with its end.
        """
        if not (not (self.lists.none(r, q, EACH) and self.last_table.none(r, q, EACH))):
            raise Broken("assume", "", "offer", 0, (r, q, depth, most))
        if not ((r in self.computed_to) and (depth <= self.computed_to[r])):
            raise Broken("assume", "", "offer", 1, (r, q, depth, most))
        if not ((r, q) in self.had):
            raise Broken("oblige", "P7", "offer", 2, (r, q, depth, most))
        if not (depth <= most):
            raise Broken("oblige", "P15", "offer", 3, (r, q, depth, most))
        self.offered.add(r, depth)

    def offer_is_computed(self, r: Request, depth: int) -> None:
        """[scheduler] What is judged was offered."""
        if not ((r, depth) in self.offered):
            raise Broken("assume", "", "offer_is_computed", 0, (r, depth))
        if not ((r in self.computed_to) and (depth <= self.computed_to[r])):
            raise Broken("oblige", "P7", "offer_is_computed", 1, (r, depth))

    def use_key(self, named: Content, own: Content) -> None:
        """[scheduler] ``keys_of`` makes keys of the request's hashes as they are now."""
        if not ((named, own) in self.hashed):
            raise Broken("assume", "", "use_key", 0, (named, own))
        if not (named == own):
            raise Broken("oblige", "S12", "use_key", 1, (named, own))

    def hit(self, r: Request, x: Residency) -> None:
        """[scheduler] ``_Search._status`` asks for no key whose load has failed for the request.

        The tier finds what its table has and what is no longer being stored.
        """
        x_key = self.residency_key[x]
        if not ((r in self.tracked) and (not ((r, x) in self.refused))):
            raise Broken("assume", "", "hit", 0, (r, x))
        if not ((x_key in self.where) and (self.where[x_key] == x)):
            raise Broken("assume", "", "hit", 1, (r, x))
        if not (not (x in self.storing)):
            raise Broken("assume", "", "hit", 2, (r, x))
        if not (x in self.admitted_in):
            raise Broken("oblige", "S6", "hit", 3, (r, x))
        if not (self.admitted_in[x] == self.epoch):
            raise Broken("oblige", "S13", "hit", 4, (r, x))
        if not (x in self.ready):
            raise Broken("oblige", "S6", "hit", 5, (r, x))
        self.answered.add(r, x)
        self.found.add(r, x)

    def finish(self, r: Request) -> None:
        """[engine] ``OffloadScheduler.finish``: it waits for the next plan; its answers are
        gone.
        """
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
        if r in self.tracked:
            self.ending.add(r)
        self.tracked.discard(r)
        self.found.discard(r, ANY)
        self.looked_at.pop(r, None)
        self.refused.discard(r, ANY)

    def preempt(self, r: Request) -> None:
        """[engine] It is asked again before it runs; what was found before that covers no load."""
        if not (r in self.alive):
            raise Broken("assume", "", "preempt", 0, (r,))
        self.answered.discard(r, ANY)
        self.deferred.discard(r, ANY)
        self.putting_off.pop(r, None)
        self.polls.pop(r, None)
        self.asking.discard(r)
        self.told.pop(r, None)
        self.found.discard(r, ANY)

    def name_prefix(self, named: Content, own: Content) -> None:
        """[engine] ``RequestView.block_hashes`` grows."""
        if not (named == own):
            raise Broken("assume", "", "name_prefix", 0, (named, own))
        self.hashed.add(named, own)

    def extend(self, r: Request) -> None:
        """[engine] A longer request asks another question: ``Loads._answer`` compares its
        length.
        """
        if not (r in self.alive):
            raise Broken("assume", "", "extend", 0, (r,))
        self.answered.discard(r, ANY)
        self.deferred.discard(r, ANY)
        self.putting_off.pop(r, None)
        self.polls.pop(r, None)
        self.asking.discard(r)
        self.told.pop(r, None)
        self.found.discard(r, ANY)

    def lease(self, r: Request, l: Lease) -> None:
        """[engine] Blocks are handed out before the step is planned; ``Step.leased`` has them."""
        l_block = self.lease_block[l]
        l_position = self.lease_position[l]
        if not (self.decided_in < self.now):
            raise Broken("assume", "", "lease", 0, (r, l))
        if not (r in self.alive):
            raise Broken("assume", "", "lease", 1, (r, l))
        if not (not (l in self.handed_at)):
            raise Broken("assume", "", "lease", 2, (r, l))
        if not (
            (
                (self.lease_seq[self.current[l_block]] < self.lease_seq[l])
                and self.holds.none(EACH, self.current[l_block])
                and self.incoming.none(self.current[l_block], EACH)
            )
            if (l_block in self.current)
            else True
        ):
            raise Broken("assume", "", "lease", 3, (r, l))
        if l_block in self.current:
            self.superseded_at[self.current[l_block]] = self.now
        self.current[l_block] = l
        self.handed_at[l] = self.now
        self.holds.add(r, l)
        self.had.add(r, l_position)
        self.lists.add(r, l_position, l)
        self.leased.add(l_block)

    def share(self, r: Request, l: Lease) -> None:
        """[engine] Only blocks of known content are shared, so no destination of a load is."""
        l_block = self.lease_block[l]
        l_position = self.lease_position[l]
        if not self.fresh.none(EACH, EACH, l):
            raise Broken("assume", "", "share", 0, (r, l))
        if not ((r in self.alive) and (not ((r, l) in self.holds))):
            raise Broken("assume", "", "share", 1, (r, l))
        if not ((l_block in self.current) and (self.current[l_block] == l)):
            raise Broken("assume", "", "share", 2, (r, l))
        if not self.incoming.none(l, EACH):
            raise Broken("assume", "", "share", 3, (r, l))
        self.holds.add(r, l)
        self.had.add(r, l_position)
        self.lists.add(r, l_position, l)

    def free(self, r: Request, l: Lease) -> None:
        """[engine] What a load was just given is not taken back before its plan.

        ``request_finished`` comes before the request's blocks are given up, and brings its table.
        """
        if not self.fresh.none(r, EACH, l):
            raise Broken("assume", "", "free", 0, (r, l))
        if not ((r, l) in self.holds):
            raise Broken("assume", "", "free", 1, (r, l))
        if not self.incoming.none(l, EACH):
            raise Broken("assume", "", "free", 2, (r, l))
        self.holds.discard(r, l)
        self.given_up_at[r, l] = self.now
        if r in self.ending:
            self.last_table.add(r, self.lease_position[l], l)
        self.lists.discard(r, ANY, l)

    def close_window(self) -> None:
        """[engine] Every window ends with a plan, and the plan is whole.

        ``Stores._store`` puts all blocks of all chunks that the tier took into one store.
        """
        if not (self.decided_in == self.now):
            raise Broken("assume", "", "close_window", 0, ())
        if not ((not self.granted) and (not self.laying)):
            raise Broken("assume", "", "close_window", 1, ())
        self.now = self.now + 1
        self.leased.clear()
        self.last_table.discard(ANY, ANY, ANY)
        self.fresh.discard(ANY, ANY, ANY)
        self.offered.discard(ANY, ANY)

    def launch(self, w: Worker) -> None:
        """[worker] Every step calls the worker's hook; the forward of the last one is over."""
        if not (self.waited_to[w] == self.at[w]):
            raise Broken("assume", "", "launch", 0, (w,))
        if not all((l, w, c) in self.settled for l, c, _ in self.due.match(EACH, EACH, self.at[w])):
            raise Broken("assume", "", "launch", 1, (w,))
        if not ((self.at[w] + 1) < self.now):
            raise Broken("assume", "", "launch", 2, (w,))
        self.at[w] = self.at[w] + 1

    def compute(self, w: Worker, l: Lease, c: Content) -> None:
        """[engine] Forwards come after the hook,"""
        l_block = self.lease_block[l]
        if not (self.waited_to[w] == self.at[w]):
            raise Broken("assume", "", "compute", 0, (w, l, c))
        if not ((l in self.handed_at) and (self.handed_at[l] <= self.at[w])):
            raise Broken("assume", "", "compute", 1, (w, l, c))
        if not (not ((l in self.superseded_at) and (self.superseded_at[l] <= self.at[w]))):
            raise Broken("assume", "", "compute", 2, (w, l, c))
        if not all(
            ((other == l) or (self.lease_seq[l] < self.lease_seq[other]))
            for _, _, j, other in self.reading.match(l_block, w, EACH, EACH)
        ):
            raise Broken("oblige", "S3", "compute", 3, (w, l, c))
        if not self.incoming.none(l, EACH):
            raise Broken("assume", "", "compute", 4, (w, l, c))
        self.owner[l_block, w] = l
        self.written.add(l, w, c)
        self.settled.add(l, w, c)

    def zero(self, w: Worker, l: Lease) -> None:
        """[engine] so does clearing,"""
        l_block = self.lease_block[l]
        if not (self.waited_to[w] == self.at[w]):
            raise Broken("assume", "", "zero", 0, (w, l))
        if not ((l in self.handed_at) and (self.handed_at[l] <= self.at[w])):
            raise Broken("assume", "", "zero", 1, (w, l))
        if not (not ((l in self.superseded_at) and (self.superseded_at[l] <= self.at[w]))):
            raise Broken("assume", "", "zero", 2, (w, l))
        if not all(
            ((other == l) or (self.lease_seq[l] < self.lease_seq[other]))
            for _, _, j, other in self.reading.match(l_block, w, EACH, EACH)
        ):
            raise Broken("oblige", "S3", "zero", 3, (w, l))
        if not self.incoming.none(l, EACH):
            raise Broken("assume", "", "zero", 4, (w, l))
        if not self.settled.none(l, w, EACH):
            raise Broken("assume", "", "zero", 5, (w, l))
        self.owner[l_block, w] = l

    def copy_slot(self, w: Worker, source: Lease, l: Lease, c: Content) -> None:
        """[engine] and so do block copies."""
        l_block = self.lease_block[l]
        source_block = self.lease_block[source]
        if not (self.waited_to[w] == self.at[w]):
            raise Broken("assume", "", "copy_slot", 0, (w, source, l, c))
        if not ((l in self.handed_at) and (self.handed_at[l] <= self.at[w])):
            raise Broken("assume", "", "copy_slot", 1, (w, source, l, c))
        if not (not ((l in self.superseded_at) and (self.superseded_at[l] <= self.at[w]))):
            raise Broken("assume", "", "copy_slot", 2, (w, source, l, c))
        if not all(
            ((other == l) or (self.lease_seq[l] < self.lease_seq[other]))
            for _, _, j, other in self.reading.match(l_block, w, EACH, EACH)
        ):
            raise Broken("oblige", "S3", "copy_slot", 3, (w, source, l, c))
        if not self.incoming.none(l, EACH):
            raise Broken("assume", "", "copy_slot", 4, (w, source, l, c))
        if not (not (
            (source in self.superseded_at)
            and (self.superseded_at[source] <= self.at[w])
        )):
            raise Broken("assume", "", "copy_slot", 5, (w, source, l, c))
        if not (((source, w, c) in self.settled) or (source in self.expected)):
            raise Broken("assume", "", "copy_slot", 6, (w, source, l, c))
        if not ((source, w, c) in self.settled):
            raise Broken("oblige", "S14", "copy_slot", 7, (w, source, l, c))
        if not (
            ((source, w, c) in self.written)
            and (((source_block, w) in self.owner) and (self.owner[source_block, w] == source))
        ):
            raise Broken("conclude", "S14", "copy_slot", 8, (w, source, l, c))
        if not (not (source_block == l_block)):
            raise Broken("assume", "", "copy_slot", 9, (w, source, l, c))
        self.owner[l_block, w] = l
        self.written.add(l, w, c)
        self.settled.add(l, w, c)

    def settle(self, p: Piece) -> None:
        """[scheduler] A load counts as ended when all ranks have said so, and well when none said
        it failed.

        From then on the engine counts its tokens as computed.
        """
        p_job = self.piece_job[p]
        p_lease = self.piece_lease[p]
        p_place = self.piece_place[p]
        p_place_content = self.place_content[p_place]
        p_lease_block = self.lease_block[p_lease]
        if not self.unreported.none(p_job, EACH):
            raise Broken("assume", "", "settle", 0, (p,))
        if not self.said_failed.none(p_job, EACH):
            raise Broken("assume", "", "settle", 1, (p,))
        if not (
            (p_job in self.load)
            and ((p_job, p) in self.pieces)
            and ((p_lease, p_job) in self.incoming)
        ):
            raise Broken("assume", "", "settle", 2, (p,))
        if not self.pending.none(p_job, EACH):
            raise Broken("oblige", "S11", "settle", 3, (p,))
        if not self.failed.none(p_job, EACH):
            raise Broken("oblige", "S10", "settle", 4, (p,))
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
            raise Broken("conclude", "S10", "settle", 5, (p,))
        for worker in self.workers:
            self.settled.add(p_lease, worker, p_place_content)
        self.incoming.discard(p_lease, p_job)
        self.due.add(p_lease, p_place_content, self.job_step[p_job])
        self.due_in[p_lease, p_place_content] = self.job_step[p_job]

    def release(self, p: Piece) -> None:
        """[scheduler] ``OffloadWorker.results``: one said that it failed; ``Ledger.report`` comes
        first.
        """
        p_job = self.piece_job[p]
        p_lease = self.piece_lease[p]
        p_job_request = self.job_request[p_job]
        if not self.unreported.none(p_job, EACH):
            raise Broken("assume", "", "release", 0, (p,))
        if not (not self.said_failed.none(p_job, EACH)):
            raise Broken("assume", "", "release", 1, (p,))
        if not (not self.all_reported):
            raise Broken("assume", "", "release", 2, (p,))
        if not (
            (p_job in self.load)
            and ((p_job, p) in self.pieces)
            and ((p_lease, p_job) in self.incoming)
        ):
            raise Broken("assume", "", "release", 3, (p,))
        if not self.pending.none(p_job, EACH):
            raise Broken("oblige", "S11", "release", 4, (p,))
        if not (not self.failed.none(p_job, EACH)):
            raise Broken("oblige", "P14", "release", 5, (p,))
        self.incoming.discard(p_lease, p_job)
        self.spoiled.add(p_job_request, self.place_residency[self.piece_place[p]])
        self.told.pop(p_job_request, None)

    def mark_failed(self, j: Job, x: Residency) -> None:
        """[scheduler] ``Ledger.refuse``: a load has failed, and its keys are not to be tried again
        (L5).

        That is remembered of requests in the table alone: others ask for nothing any more.
        """
        j_request = self.job_request[j]
        if not (((j, x) in self.to_unpin) and (j_request in self.tracked)):
            raise Broken("assume", "", "mark_failed", 0, (j, x))
        self.refused.add(j_request, x)
        self.losses = self.losses + 1

    def end_job(self, j: Job) -> None:
        """[scheduler] ``Ledger.report`` is done with a job: it is off the table, and its blocks are
        free.
        """
        if not (j in self.all_reported):
            raise Broken("assume", "", "end_job", 0, (j,))
        if not (self.to_complete.none(j, EACH) and self.to_unpin.none(j, EACH)):
            raise Broken("assume", "", "end_job", 1, (j,))
        self.all_reported.discard(j)
        self.listed.discard(j)
        self.fence.discard(ANY, j)

    def clear(self, w: Worker) -> None:
        """[worker] ``OffloadWorker.handle_preemptions``: the flushed jobs of earlier steps have
        ended.
        """
        if not all(
            not (
                ((j in self.flush_at) and (self.flush_at[j] <= self.at[w]))
                and (self.job_step[j] < self.at[w])
            )
            for s, _, j, x in self.using.match(EACH, w, EACH, EACH)
        ):
            raise Broken("assume", "", "clear", 0, (w,))
        self.cleared_to[w] = self.at[w]

    def wait_all(self, w: Worker) -> None:
        """[worker] ``OffloadWorker.handle_preemptions`` returns: the whole flush set has ended."""
        if not all(
            (not ((j in self.flush_at) and (self.flush_at[j] <= self.at[w])))
            for s, _, j, x in self.using.match(EACH, w, EACH, EACH)
        ):
            raise Broken("assume", "", "wait_all", 0, (w,))
        if not all(
            (not ((j in self.flush_at) and (self.flush_at[j] <= self.at[w])))
            for b, _, j, l in self.reading.match(EACH, w, EACH, EACH)
        ):
            raise Broken("assume", "", "wait_all", 1, (w,))
        self.waited_to[w] = self.at[w]

    def decide(self) -> None:
        """[scheduler] ``OffloadScheduler.plan``: stores that read a block handed out since, and
        dead jobs.
        """
        if not all(
            ((j in self.flush_at) if (b in self.leased) else True)
            for b, j in self.fence.match(EACH, EACH)
        ):
            raise Broken("assume", "", "decide", 0, ())
        if not all(not (self.job_epoch[j] < self.epoch) for j in self.listed):
            raise Broken("assume", "", "decide", 1, ())
        self.decided_in = self.now

    def give_up(self, j: Job) -> None:
        """[scheduler] ``OffloadScheduler.reset``: a load that no worker has yet is just
        forgotten.
        """
        if not ((j in self.listed) and (not (j in self.job_step))):
            raise Broken("assume", "", "give_up", 0, (j,))
        if not (self.job_epoch[j] < self.epoch):
            raise Broken("assume", "", "give_up", 1, (j,))
        self.listed.discard(j)

    def take(self, r: Request, q: Position, l: Lease) -> None:
        """[engine] ``update_state_after_alloc`` comes with a block whose content nobody knows: a
        new one.
        """
        if not (self.decided_in < self.now):
            raise Broken("assume", "", "take", 0, (r, q, l))
        if not (((r, q, l) in self.lists) and (self.handed_at[l] == self.now)):
            raise Broken("assume", "", "take", 1, (r, q, l))
        if not all(other == r for other, _ in self.holds.match(EACH, l)):
            raise Broken("assume", "", "take", 2, (r, q, l))
        self.fresh.add(r, q, l)

    def foresee(self, l: Lease, c: Content, n: int) -> None:
        """[engine] Step ``n``, scheduled or just executed, brings content: ``num_computed_tokens``
        says so.

        Of tokens that were sampled ahead of the scheduler the content is known only then.
        """
        if not (not ((l, c) in self.due_in)):
            raise Broken("assume", "", "foresee", 0, (l, c, n))
        if not (n <= self.now):
            raise Broken("assume", "", "foresee", 1, (l, c, n))
        if not all(self.at[w] <= n for w in self.workers):
            raise Broken("assume", "", "foresee", 2, (l, c, n))
        self.due.add(l, c, n)
        self.due_in[l, c] = n
