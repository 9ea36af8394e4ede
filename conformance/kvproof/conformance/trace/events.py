"""What crosses the three boundaries at which a scheduler is seen.

engine-connector
    the engine's own moves (arrivals, leases, forwards) and the calls it makes on the connector;
scheduler-tier
    every call on the offloading manager, with its per-key answer, and what its own tiers exchange;
worker-copier
    submit, wait, done and report, per worker.

Every event carries ``step`` and ``rank``. ``step`` numbers scheduling windows: window *n* runs from
the end of ``schedule()`` *n - 1* to the end of ``schedule()`` *n*, so a block that is freed while
the output of step *n - 1* is processed is given up in window *n*. Worker events carry the step that
the worker executes. ``rank`` is the worker's rank, or ``SCHEDULER_RANK`` for all that happens
in the engine's process.

Field conventions: ``req`` names one incarnation of a request id (``"<id>#<life>"``); ``lease`` is a
fresh number per hand-out of a block; ``key`` is ``"<block hash in hex>:<group>"``; token positions
are half-open ranges ``[start, end)``; block 0 is the null block, never leased.
"""

from __future__ import annotations

import msgspec

SCHEMA_VERSION = 1
SCHEDULER_RANK = -1


class GroupGeometry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One KV-cache group. ``window`` is in tokens and only set for windowed kinds.

    ``draft``: the group holds the layers of a drafter (EAGLE, MTP), whose last block counts for
    nothing until the token after it is known.
    """

    kind: str  # "full" | "window" | "chunked" | "recurrent"
    tokens_per_block: int
    window: int | None = None
    draft: bool = False


class Header(
    msgspec.Struct, frozen=True, tag="header", tag_field="event", forbid_unknown_fields=True
):
    """First line of a trace: who was recorded, and the sizes that later lines refer to.

    ``lanes`` tells what order the copier promises: ``"direction"`` when copies of one direction run
    in the order of their submission, ``"none"`` when no two copies are ordered.
    ``features`` is the release's feature table (what exists there, never a verdict);
    ``options`` are the engine's settings for this run.
    """

    schema: int
    target: str
    groups: list[GroupGeometry]
    blocks_per_chunk: int
    tokens_per_hash: int
    num_gpu_blocks: int
    num_slots: int
    num_workers: int
    lanes: str
    features: dict[str, bool | int | str | None]
    options: dict[str, bool | int | str | None]


class Event(msgspec.Struct, frozen=True, tag_field="event", forbid_unknown_fields=True):
    """Base of all events."""

    step: int
    rank: int


# --- engine: requests and tokens -----------------------------------------------------------------


class Arrive(Event, frozen=True, tag="arrive"):
    """A request enters the engine. ``tokens`` is its prompt; ``salt`` separates equal prompts.

    ``max_load`` and ``max_offload`` are the client's caps, in tokens: how many may be loaded beyond
    what is computed, and up to which position anything may be stored; 0 is a cap, None is none.
    ``skip_reading`` forbids to read what others left in any cache.
    """

    req: str
    tokens: list[int]
    salt: str = ""
    max_load: int | None = None
    max_offload: int | None = None
    skip_reading: bool = False


class Extended(Event, frozen=True, tag="extended"):
    """A session goes on: from now on the request's tokens are its first ``kept``, then ``tokens``.

    What it had beyond ``kept`` (a token sampled and never computed) is gone.
    """

    req: str
    kept: int
    tokens: list[int]


class Hashed(Event, frozen=True, tag="hashed"):
    """The engine's own block hashes ``first, first + 1, ...`` of a request became known.

    Hash *i* names the prefix of ``(i + 1) * tokens_per_hash`` tokens.
    """

    req: str
    first: int
    hashes: list[str]


class Finish(Event, frozen=True, tag="finish"):
    """The engine ends a request (stop, length, abort). ``Free`` events give its blocks up."""

    req: str
    status: str


class Preempt(Event, frozen=True, tag="preempt"):
    """The engine takes a running request's blocks back; it will be scheduled again later."""

    req: str


# --- engine: blocks ------------------------------------------------------------------------------


class Lease(Event, frozen=True, tag="lease"):
    """A block is handed out for one position (in blocks) of one request's table in one group."""

    lease: int
    block: int
    req: str
    group: int
    position: int


class Share(Event, frozen=True, tag="share"):
    """A request also holds an earlier hand-out, because the GPU prefix cache had its content."""

    lease: int
    req: str
    group: int
    position: int


class Free(Event, frozen=True, tag="free"):
    """A request gives a lease up. ``why``: "finish" | "preempt" | "slide" | "advance" | "other"."""

    lease: int
    req: str
    why: str


# --- engine: steps -------------------------------------------------------------------------------


class Computing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tokens ``[start, end)`` of ``req`` are computed by a forward.

    ``sampled`` are the tokens that this forward appends after position ``end - 1`` (none in
    mid-prefill). They are known to the worker at once, to an asynchronous scheduler only later.
    """

    req: str
    start: int
    end: int
    sampled: list[int]


class Scheduled(Event, frozen=True, tag="scheduled"):
    """End of ``schedule()``: what this step will compute. Closes window ``step``."""

    computing: list[Computing]


class Launch(Event, frozen=True, tag="launch"):
    """A worker begins to execute step ``step``."""


class Forward(Event, frozen=True, tag="forward"):
    """The worker's forward: writes the slots of its tokens, reads what they attend to."""

    computing: list[Computing]


class CopyBlock(Event, frozen=True, tag="copy_block"):
    """The worker copies one block onto another (copy-on-write), before its forward."""

    src_lease: int
    dst_lease: int


class Filled(Event, frozen=True, tag="filled"):
    """Another connector writes the KV of tokens ``[start, end)`` into the request's blocks."""

    req: str
    start: int
    end: int


class Zero(Event, frozen=True, tag="zero"):
    """The worker clears freshly handed-out blocks before its forward."""

    leases: list[int]


class Received(Event, frozen=True, tag="received"):
    """The engine is told that a request's load has ended, so the request may be scheduled.

    ``ok`` is false when the load failed and the request will compute instead.
    """

    req: str
    ok: bool


class Reset(Event, frozen=True, tag="reset"):
    """The engine tells the connector to forget everything that it stored."""


class ResetRefused(Event, frozen=True, tag="reset_refused"):
    """The connector answers to the reset just told that it did not forget."""


class Drained(Event, frozen=True, tag="drained"):
    """No request is left, every job has ended. ``residue``: what the scheduler still keeps."""

    residue: dict[str, int]


class Stalled(Event, frozen=True, tag="stalled"):
    """The engine was stepped for long while every copy ended at once, and did not come to rest.

    ``reqs`` are the requests that have not ended.
    """

    reqs: list[str]


class Raised(Event, frozen=True, tag="raised"):
    """A call into the scheduler or the worker raised. ``where`` is ``file:line`` in the release."""

    call: str
    exception: str
    where: str
    req: str | None = None


# --- engine-connector calls ----------------------------------------------------------------------


class Ask(Event, frozen=True, tag="ask"):
    """The engine asks how many tokens beyond ``computed`` can be loaded; probes follow."""

    req: str
    computed: int


class Answer(Event, frozen=True, tag="answer"):
    """The answer to the last ``Ask`` of this request: ``tokens`` is None when it is deferred."""

    req: str
    tokens: int | None
    asynchronous: bool


class Allocated(Event, frozen=True, tag="allocated"):
    """The engine took the answer up to ``external`` tokens and allocated their blocks."""

    req: str
    external: int


class Piece(msgspec.Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """One block's worth of a chunk: GPU block <-> (slot, offset), decoded by the release's rule."""

    group: int
    block: int
    slot: int
    offset: int


class Issue(Event, frozen=True, tag="issue"):
    """A transfer job is handed to the workers with this step's metadata."""

    job: int
    kind: str  # "store" | "load"
    req: str
    pieces: list[Piece]


class Flush(Event, frozen=True, tag="flush"):
    """The jobs that the workers must wait for before anything else of this step."""

    jobs: list[int]


class KvChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """One emitted event. ``what``: "stored" | "removed" | "cleared" (everything; no ``keys``).

    In releases whose events do not say the group, a key is its block hash alone.
    """

    what: str
    keys: list[str]


class KvEvents(Event, frozen=True, tag="kv_events"):
    """The engine takes the events that the connector emitted, in their order, to publish them."""

    changes: list[KvChange]


# --- scheduler-tier calls ------------------------------------------------------------------------


class Probe(Event, frozen=True, tag="probe"):
    """One key's lookup. ``result``: "hit" | "miss" | "pending" | "retry"."""

    req: str
    key: str
    result: str


class PrepareStore(Event, frozen=True, tag="prepare_store"):
    """The scheduler offers ``keys``; the tier evicts ``evicted`` and accepts ``accepted``.

    ``refused`` means no room: then nothing is accepted. Keys in none of the lists were present
    already or declined by policy.
    """

    req: str
    keys: list[str]
    refused: bool
    evicted: list[str]
    accepted: list[tuple[str, int]]  # (key, slot)


class PrepareLoad(Event, frozen=True, tag="prepare_load"):
    """The scheduler pins ``keys`` for a load. ``slots`` is empty when the call raised."""

    req: str
    keys: list[str]
    slots: list[int]


class CompleteStore(Event, frozen=True, tag="complete_store"):
    """The scheduler tells the tier that the store of ``keys`` ended, well or not."""

    keys: list[str]
    ok: bool


class CompleteLoad(Event, frozen=True, tag="complete_load"):
    """The scheduler tells the tier that the load of ``keys`` ended; their pins go."""

    keys: list[str]


class Touch(Event, frozen=True, tag="touch"):
    """The scheduler marks ``keys`` as recently used."""

    req: str
    keys: list[str]


class TierRequest(Event, frozen=True, tag="tier_request"):
    """The scheduler announces a request to the tier. ``phase``: "new" | "finished"."""

    req: str
    phase: str


class Promote(Event, frozen=True, tag="promote"):
    """A lookup makes the tier bring a chunk back from a tier behind it.

    As in ``PrepareStore``, something may be evicted for it, and slots are handed out.
    """

    req: str
    evicted: list[str]
    accepted: list[tuple[str, int]]  # (key, slot)


class Promoted(Event, frozen=True, tag="promoted"):
    """Chunks are back from the tier behind, and readable; or, not ``ok``, they are gone."""

    keys: list[str]
    ok: bool


class TierReset(Event, frozen=True, tag="tier_reset"):
    """The scheduler empties the tier."""


# --- worker-copier calls -------------------------------------------------------------------------


class Submit(Event, frozen=True, tag="submit"):
    """A worker hands a job to its copier; from here on it may read and write at any moment."""

    job: int


class Done(Event, frozen=True, tag="done"):
    """A worker's copy ended (seen by a poll or forced by a wait)."""

    job: int
    ok: bool


class Wait(Event, frozen=True, tag="wait"):
    """A worker waited for ``jobs``: those it knew have ended, the others change nothing."""

    jobs: list[int]


class Raced(Event, frozen=True, tag="raced"):
    """A simulated device saw two accesses to the same bytes, one a write, that nothing orders.

    The second one was asked for later. ``where`` says which bytes.
    """

    earlier: str
    earlier_does: str
    later: str
    later_does: str
    where: str


class WrongBytes(Event, frozen=True, tag="wrong_bytes"):
    """A simulated device has read, or holds at rest, other bytes than it should."""

    what: str


class Report(Event, frozen=True, tag="report"):
    """A worker's report of an ended job reaches the scheduler."""

    job: int
    ok: bool


AnyEvent = (
    Arrive
    | Extended
    | Hashed
    | Finish
    | Preempt
    | Lease
    | Share
    | Free
    | Scheduled
    | Launch
    | Forward
    | CopyBlock
    | Filled
    | Zero
    | Received
    | Reset
    | ResetRefused
    | Drained
    | Stalled
    | Raised
    | Ask
    | Answer
    | Allocated
    | Issue
    | Flush
    | KvEvents
    | Probe
    | PrepareStore
    | PrepareLoad
    | CompleteStore
    | CompleteLoad
    | Touch
    | Promote
    | Promoted
    | TierRequest
    | TierReset
    | Submit
    | Done
    | Wait
    | Raced
    | WrongBytes
    | Report
)
