"""The fields of the contract.

Attributes never change. Relations hold rows, maps are partial. Each mutable field names the
invariant that it exists for.
"""

from __future__ import annotations

from kvproof.spec.contract.sorts import (
    Block,
    Content,
    Job,
    Key,
    Lane,
    Lease,
    Piece,
    Place,
    Position,
    Request,
    Residency,
    Slot,
    Worker,
)
from kvproof.spec.lang import (
    MachineSpec,
    attribute,
    map1,
    map2,
    relation1,
    relation2,
    relation3,
    relation4,
    scalar,
)


class State(MachineSpec):
    """Everything that the moves read and write."""

    # --- attributes: fixed when the thing is made ---
    lease_block = attribute(Lease, Block, "the block that was handed out")
    lease_position = attribute(Lease, Position, "where in its request's table it lies")
    lease_seq = attribute(Lease, int, "order of the hand-outs")
    piece_job = attribute(Piece, Job, "the job that it belongs to")
    piece_lease = attribute(Piece, Lease, "its GPU side")
    piece_place = attribute(Piece, Place, "its tier side")
    place_residency = attribute(Place, Residency, "the residency that it is part of")
    place_position = attribute(Place, Position, "the table position that its key and offset name")
    place_content = attribute(Place, Content, "the content that its key and offset name")
    residency_slot = attribute(Residency, Slot, "the slot that was handed out")
    residency_key = attribute(Residency, Key, "the key that it was handed to")
    residency_seq = attribute(Residency, int, "order of the hand-outs")
    slot_exists = attribute(Slot, bool, "whether the tier has this slot at all")
    job_request = attribute(Job, Request, "the request that it serves")
    job_lane = attribute(Job, Lane, "its lane in the copier")

    # --- time ---
    now = scalar("the scheduling window that is open", "S1", init=1)
    at = map1(Worker, int, "the step that a worker executes", "S3", total=True)
    epoch = scalar("how many resets there have been", "S13")

    # --- engine ---
    alive = relation1(Request, "arrived and not ended", "S5")
    ended = relation1(Request, "ended: this incarnation never comes back", "P13")
    handed_at = map1(Lease, int, "the window in which a lease was handed out", "S3")
    superseded_at = map1(Lease, int, "the window in which its block was handed out again", "S3")
    current = map1(Block, Lease, "the latest hand-out of a block", "S1")
    holds = relation2(Request, Lease, "the request's table lists the lease", "S1")
    given_up_at = map2(Request, Lease, int, "the window in which the request let go of it", "S1")
    had = relation2(Request, Position, "its table has listed a block there", "P7")
    computed_to = map1(Request, int, "the tokens that its forwards so far leave computed", "P7")
    expected = relation1(
        Lease, "lies in the range that the scheduler answered for and the engine took", "S14"
    )
    settled = relation3(
        Lease, Worker, Content, "the engine may let a forward read this content there", "S14"
    )

    # --- the GPU as it is ---
    written = relation3(
        Lease, Worker, Content, "the lease's slots up to this content's last token hold it", "S2"
    )
    owner = map2(Block, Worker, Lease, "the lease that last changed the block", "S3")

    # --- jobs ---
    store = relation1(Job, "is a store", "S2")
    load = relation1(Job, "is a load", "S10")
    job_epoch = map1(Job, int, "the epoch in which it was prepared", "P5")
    job_step = map1(Job, int, "the step whose metadata carries it", "S2")
    issued = scalar("how many jobs there have been", "L1")
    job_number = map1(Job, int, "order of the jobs", "L1")
    flush_at = map1(Job, int, "the first step that flushes it", "S3")
    pieces = relation2(Job, Piece, "what it copies", "S4")
    pending = relation2(Job, Worker, "issued, and the worker's copy has not ended", "S6")
    unreported = relation2(Job, Worker, "issued, and the worker has not reported its end", "P4")
    submitted = relation2(Job, Worker, "handed to the worker's copier", "S7")
    failed = relation2(Job, Worker, "the worker's copy failed", "S6")
    started = relation2(Piece, Worker, "the copier may touch both its ends", "S10")
    landed = relation2(Piece, Worker, "its copy has ended well", "S10")
    submit_seq = map2(Job, Worker, int, "order of submissions", "S7")
    submissions = scalar("how many submissions there have been", "S7")
    in_flight = relation3(Worker, Lane, Job, "submitted and not ended", "S7")
    reading = relation4(
        Block, Worker, Job, Lease, "a store of this epoch may still read the lease there", "S3"
    )
    using = relation4(
        Slot, Worker, Job, Residency, "a copy of this residency has yet to end there", "S7"
    )
    incoming = relation2(
        Lease, Job, "a load fills the lease; the engine was not told its end", "S11"
    )

    # --- the tier ---
    announced = relation1(Request, "the tier was told of the request", "P6")
    concluded = relation1(Request, "the tier was told of the request's end", "P6")
    resident = relation1(Residency, "its key is in the tier", "S8")
    storing = relation1(Residency, "resident, its store has not been completed", "S6")
    ready = relation1(Residency, "resident and readable", "S6")
    where = map1(Key, Residency, "the residency of a key", "S8")
    occupant = map1(Slot, Residency, "the residency in a slot", "S8")
    latest = map1(Slot, Residency, "the last residency that the slot was handed to", "S7")
    admitted_in = map1(Residency, int, "the epoch in which it was handed out", "S13")
    maker = map1(Residency, Job, "the store that fills it", "S6")
    cover = map1(Place, Piece, "the maker's piece that fills it", "S4")
    placed = relation2(Place, Worker, "holds the bytes that its key and offset name", "S10")
    slot_owner = map2(Slot, Worker, Residency, "the residency whose store last wrote it", "S7")
    pinned = relation2(Residency, Job, "a load reads it: it must stay", "S7")
    deferred = relation2(Request, int, "its latest lookup was put off, in this window", "L1")
    putting_off = map1(
        Request, int, "how many jobs had been issued when its lookup was first put off", "L1"
    )
    polls = map1(Request, int, "how often it was put off since with none of those in flight", "L1")
    asking = relation1(Request, "its lookup has begun and is not answered", "P16")
    told = map1(Request, int, "its latest answer, while nothing that it rests on changed", "P16")
    told_from = map1(Request, int, "how many tokens were computed when it was answered", "P16")
    spoiled = relation2(Request, Residency, "a load of it failed for the request", "L5")
    answered = relation2(Request, Residency, "a hit of the request's latest lookup", "S5")
