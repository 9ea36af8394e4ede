"""The fields that the production scheduler and its worker add to the contract.

Most are tables of the code, and their text says which. The others are what the engine knows and the
scheduler reads where it is (block tables, counts of computed tokens, hashes): nothing is mirrored.
"""

from __future__ import annotations

from kvproof.spec.contract import Contract
from kvproof.spec.contract.sorts import (
    Block,
    Content,
    Job,
    Lease,
    Place,
    Position,
    Request,
    Residency,
    Worker,
)
from kvproof.spec.lang import attribute, map1, map2, relation1, relation2, relation3, scalar


class MechanismState(Contract):
    """Each field names the obligation that it exists for."""

    # --- attributes: geometry ---
    place_offset = attribute(Place, int, "its number in the chunk, counted from 0")
    chunk_blocks = attribute(Residency, int, "how many blocks the chunk has")

    # --- the engine's, read where it is ---
    lists = relation3(
        Request, Position, Lease, "the block table: Tables.blocks, never remembered (M4)", "S4"
    )
    due = relation3(
        Lease, Content, int, "the step by whose end the engine has the content there", "S2"
    )
    due_in = map2(Lease, Content, int, "that step: num_computed_tokens and what is scheduled", "S2")
    hashed = relation2(Content, Content, "a hash in block_hashes, and the prefix it is of", "S12")
    said_failed = relation2(Job, Worker, "a report has said that the copy failed: Job.failed", "S6")

    # --- requests ---
    tracked = relation1(Request, "OffloadScheduler.requests: entered, not ended", "P6")
    ending = relation1(Request, "Stores.ending: ended since the last plan", "P6")
    last_table = relation3(
        Request, Position, Lease, "Ending.blocks: the table it ended with, given up since", "S1"
    )
    offered = relation2(Request, int, "up to which token chunks were offered in this window", "P7")

    # --- lookups ---
    losses = scalar("Ledger.losses: how often keys went, or a load failed (M8)", "S5")
    looked_at = map1(Request, int, "RequestState.losses: how many at its last look", "S5")
    found = relation2(Request, Residency, "RequestState.answer: the hits since that look", "S5")
    refused = relation2(Request, Residency, "Ledger.refused: a load of it failed", "L5")
    fresh = relation3(
        Request, Position, Lease, "the blocks that came with an answer that was taken", "S11"
    )

    # --- jobs ---
    listed = relation1(Job, "JobTable.live, or of before a reset and in JobTable.dead (M2)", "P5")
    awaited = relation2(Job, Worker, "Job.left: the worker has not reported the live job", "P4")
    all_reported = relation1(Job, "the last report has come and is being dealt with", "P4")
    fence = relation2(Block, Job, "Fence: a store that has not completed reads it (M3)", "S3")
    leased = relation1(Block, "handed out since the last plan: Step.leased", "S3")
    decided_in = scalar("the last window whose flush set is decided (M5)", "S3")
    to_complete = relation2(Job, Residency, "Job.keys of a store: to be completed", "P4")
    to_unpin = relation2(Job, Residency, "Job.keys of a load: to be let go of", "P4")

    # --- chunks ---
    granted = relation1(Residency, "Room.keys: the tier took it, no store makes it yet", "S7")
    laying = relation1(Residency, "not all of its blocks are in the store that makes it", "S4")
    next_offset = map1(Residency, int, "the offset behind its last block so far", "S4")
    missing = map1(Residency, int, "Ledger.coverage: how many first blocks it has not", "S4")
    stored_at = map2(Residency, int, Place, "the place at an offset that its store fills", "S4")

    # --- workers ---
    to_submit = relation2(
        Job, Worker, "OffloadWorker._stores, or a load of this step: not at the copier yet", "P2"
    )
    to_report = relation2(Job, Worker, "WorkerReport.completed_jobs: not yet sent", "P4")
    cleared_to = map1(
        Worker,
        int,
        "the last step for which it has waited for the flushed jobs of earlier steps (M7)",
        "S7",
        total=True,
    )
    waited_to = map1(
        Worker, int, "the last step whose whole flush set it has waited for (M5)", "S3", total=True
    )
