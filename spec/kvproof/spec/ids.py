"""The invariants that this version judges: stable ids, names, sentences.

``unsafe`` means that somebody can read wrong bytes, crash or hang; the table is what the ledger,
findings and the documentation print.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Id:
    """One invariant of the contract."""

    id: str
    name: str
    sentence: str
    severity: str = "unsafe"


CONTRACT = {
    i.id: i
    for i in (
        Id(
            "S1",
            "reads-its-own-lease",
            "A store reads, for each piece, the lease that its request has at that position, or"
            " gave up within this very step.",
        ),
        Id(
            "S2",
            "reads-written-slots",
            "When a worker submits a store, everything it reads holds the content that the key"
            " names, put there by an earlier forward or a finished load.",
        ),
        Id(
            "S3",
            "no-change-under-a-reader",
            "A block is not changed on a worker while a store that reads an earlier lease of it"
            " may still be running there; only a flush or a report ends that doubt.",
        ),
        Id(
            "S4",
            "piece-at-its-place",
            "Each piece lies at the offset that its position gives it, and a load asks only for"
            " pieces that the store of the key wrote.",
        ),
        Id(
            "S5",
            "load-what-was-answered",
            "A load takes only keys that the request's latest lookup found, and that have not"
            " left the tier since.",
        ),
        Id(
            "S6",
            "readable-means-complete",
            "A key can be read only once every worker has finished storing it, and none failed.",
        ),
        Id(
            "S7",
            "slot-has-one-user",
            "A copy starts on a worker only when the copies of earlier residencies of its slots"
            " are over there; a slot that is read or written is not evicted.",
        ),
        Id(
            "S8",
            "slots-match-keys",
            "Resident keys and used slots are in one-to-one correspondence, within the capacity.",
        ),
        Id(
            "S10",
            "served-bytes-are-right",
            "What a load brings to a request is, for each piece and on each worker, the content"
            " that the key names.",
        ),
        Id(
            "S11",
            "destinations-are-exclusive",
            "The blocks that a load fills belong to its request alone and are not read until"
            " every worker has finished.",
        ),
        Id(
            "S12",
            "key-names-content",
            "A key that is used for a request names a prefix of that request's own tokens.",
        ),
        Id(
            "S13",
            "reset-forgets",
            "Nothing that was stored, or was on its way to be stored, before a reset can be read"
            " after it.",
        ),
        Id(
            "S14",
            "forward-reads-right-content",
            "Every position and state that a forward attends to holds its own content.",
        ),
        Id(
            "P4",
            "each-worker-reports-once",
            "A job is complete when each of its workers has reported it, exactly once.",
        ),
        Id(
            "P5",
            "late-reports-are-ignored",
            "The end of a job from before a reset changes nothing in the tier.",
        ),
        Id(
            "P6",
            "tier-calls-in-order",
            "The tier is told of a request before any call for it and of its end after the last"
            " one, each exactly once.",
        ),
        Id(
            "P11",
            "nothing-raises",
            "No request, client, engine move or worker failure makes a call raise.",
        ),
        Id(
            "P12",
            "nothing-leaks",
            "When the requests are gone and the jobs over, no pin, no half-stored key and no"
            " request state is left.",
        ),
        Id(
            "P13",
            "incarnations-are-distinct",
            "A request id that is used again starts a life of its own.",
        ),
        Id(
            "P16",
            "asking-is-free",
            "An answer lies within the request.",
        ),
        Id(
            "L1",
            "deferral-ends",
            "A lookup that is put off is answered for good once nothing is left to wait for.",
        ),
        Id(
            "L2",
            "idle-drains",
            "With no request left, the engine is kept stepping until the jobs are over, and no"
            " longer.",
        ),
    )
}

EXPLANATIONS = {
    "M1": "a request was given blocks to load while a job of its own was still in flight",
    "M2": "the scheduler's tables named a job from before a reset",
    "M3": "the record of which blocks pending stores read was not what the stores read",
    "M5": "a request that was preempted in this step was given a load in it",
    "P7": "something was offered for storing that was never, or is no longer, allocated",
    "P13": "a request id was used again before its former life was worked off",
    "P10": "a reset came while the last one was not yet worked off",
}
"""What a raising call is explained by: the state that the model was in."""
