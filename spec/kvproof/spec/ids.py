"""The invariants that this version judges: stable ids, names, sentences.

``unsafe`` means that somebody can read wrong bytes, crash or hang, ``missed`` that work or room is
wasted or a hit is lost; the table is what the ledger, findings and the documentation print.
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
            "S9",
            "recurrent-state-is-exact",
            "The recurrent state that a load brings for a boundary is the state after exactly"
            " the tokens that the engine is told of.",
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
            "P2",
            "flush-is-harmless",
            "A flush of a job that is unknown, over or from before a reset changes nothing: a"
            " job is copied once, however often it is flushed.",
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
            "P7",
            "offers-stay-in-bounds",
            "Nothing is offered for storing that is not keyed, allocated and computed, this"
            " step's forward included.",
        ),
        Id(
            "P10",
            "reset-is-always-allowed",
            "A reset outside schedule() is carried out, whenever it comes.",
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
            "P14",
            "failure-is-local",
            "A failed copy costs what it carried and nothing else: only keys of failed stores"
            " are dropped, only failed loads are computed instead.",
        ),
        Id(
            "P15",
            "limits-are-kept",
            "Caps, prompt-only storing and skipped reading are honoured; 0 is a cap.",
        ),
        Id(
            "P16",
            "asking-is-free",
            "An answer lies within the request, pins nothing, and is given again when the same"
            " question is asked with nothing changed.",
        ),
        Id(
            "L1",
            "deferral-ends",
            "A lookup that is put off is answered for good once nothing is left to wait for, and"
            " after a bounded number of polls in any case.",
        ),
        Id(
            "L2",
            "idle-drains",
            "With no request left, the engine is kept stepping until the jobs are over, and no"
            " longer.",
        ),
        Id(
            "L3",
            "only-relevant-waits",
            "A lookup is put off only while waiting can enlarge its answer, or a key of it is"
            " on its way to the GPU.",
        ),
        Id(
            "L3.1",
            "own-jobs-need-no-wait",
            "A lookup is not put off for a job of the request itself that it could do without.",
            "missed",
        ),
        Id(
            "L4",
            "no-circular-wait",
            "What a lookup waits for is on its way: a job that the workers have, never"
            " something that waits for the request itself.",
        ),
        Id(
            "L5",
            "failure-does-not-loop",
            "A chunk whose load failed is not loaded again for that request from the same place.",
        ),
        Id(
            "L6",
            "flush-only-what-must",
            "A flush waits for no job whose blocks nobody is about to change.",
            "missed",
        ),
        Id(
            "E1",
            "greatest-hit",
            "The answer is the greatest boundary that every group can serve from what is ready.",
            "missed",
        ),
        Id(
            "E2",
            "store-covers-lookup",
            "What the lookup needs at a boundary is among what the store keeps for it.",
            "missed",
        ),
        Id(
            "E3",
            "all-were-offered",
            "By its end, every complete chunk of a request that a later request could need was"
            " offered, after its last refusal too.",
            "missed",
        ),
        Id(
            "E4",
            "repeat-hits",
            "With room, repeating a finished request hits the greatest boundary that every"
            " group stored.",
            "missed",
        ),
        Id(
            "E5",
            "events-are-residency",
            "The emitted events, folded, are the resident keys.",
            "missed",
        ),
        Id(
            "E6",
            "work-is-bounded",
            "A refused offer is repeated only after something was completed or left; nothing is"
            " offered twice.",
            "missed",
        ),
        Id(
            "E7",
            "what-serves-survives",
            "What a repeat needs outlives what is older, and the head of a prefix outlives its"
            " tail.",
            "missed",
        ),
        Id(
            "E8",
            "tail-independent-of-steps",
            "What a request leaves in the tier depends on its tokens, not on how its prefill"
            " was cut.",
            "missed",
        ),
    )
}

EXPLANATIONS = {
    "M1": "a request was given blocks to load while a job of its own was still in flight",
    "M2": "the scheduler's tables named a job from before a reset",
    "M3": "the record of which blocks pending stores read was not what the stores read",
    "M5": "a request that was preempted in this step was given a load in it",
    "S5": "a request was given blocks to load for chunks that its latest lookup had not found",
    "P7": "something was offered for storing that was never, or is no longer, allocated",
    "P14": "the failure of a copy was being reported",
    "P13": "a request id was used again before its former life was worked off",
    "P10": "a reset came while the last one was not yet worked off",
}
"""What a raising call is explained by: the state that the model was in."""
