"""What a fuzzer or a script may do to an engine, and what an engine must offer for it.

A history is a ``Setup`` and a list of ``Move``s. It replays deterministically on any engine that
accepts the setup, so a finding is stored, shrunk and shown as exactly these two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from kvproof.conformance.trace.events import AnyEvent, Header


class GroupSetup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One KV-cache group to build: ``kind`` as in the trace header, sizes in tokens.

    ``draft``: the group belongs to a drafter (EAGLE, MTP), which here never proposes anything: the
    engine handles its last block with the care that drafts ask for.
    """

    kind: str
    tokens_per_block: int
    window: int | None = None
    draft: bool = False


class Setup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The configuration of one run.

    ``num_gpu_blocks`` excludes the null block. ``num_slots`` is the tier's capacity in chunks.
    ``max_batch_tokens`` bounds the tokens of one step (chunked prefill above it).
    ``retention_interval``: the GPU prefix cache keeps windowed and recurrent blocks at multiples of
    so many tokens only (0: at the ends of prompts only); None for all, or for what a release
    without that option does.
    ``store_threshold``: from 2 on, a chunk is stored when it was asked for that often.
    ``eviction``: the tier's policy, "lru" or "arc".
    ``sync_load_bytes``: a step's loads of up to so many bytes end before its forward; 0 for none. A
    block has 4096 bytes.
    ``load_failure``: what becomes of a request whose load failed, "recompute" or "fail".
    ``second_connector``: another connector is asked first, and fills blocks of known prompts.
    ``tier``: "cpu", the release's own; "ours", kvproof's; or "tiering", where what is stored is
    copied on to a second, larger tier, and comes back from there when it is looked up.
    ``device``: "simulated": copies and the model's work move bytes on a simulated device, by
    kvproof's own transfers; "" for copies that only take their time.
    ``planted``: a fault that is put into our own tier or transfers, by name; "" for none.
    """

    groups: tuple[GroupSetup, ...]
    blocks_per_chunk: int = 1
    num_gpu_blocks: int = 64
    num_slots: int = 64
    max_batch_tokens: int = 64
    max_running: int = 4
    num_workers: int = 1
    asynchronous: bool = False
    prompt_only: bool = False
    prefix_caching: bool = True
    retention_interval: int | None = None
    kv_role: str = "kv_both"
    store_threshold: int = 0
    eviction: str = "lru"
    sync_load_bytes: int = 0
    load_failure: str = "recompute"
    second_connector: bool = False
    tier: str = "cpu"
    device: str = ""
    planted: str = ""


class Add(msgspec.Struct, frozen=True, tag="add", tag_field="move", forbid_unknown_fields=True):
    """A client sends a prompt. ``req`` is the client's id, free to be used again after its end.

    ``max_load`` and ``max_offload`` are the client's caps in tokens, as in the trace's ``arrive``;
    ``skip_reading`` forbids to read from caches. ``stop_after``: the model says a stop token after
    so many tokens, which nobody knows before the step's output is there (``max_tokens`` is known in
    advance). ``session``: more input may follow (``Extend``) when the request has stopped.
    """

    req: str
    tokens: tuple[int, ...]
    max_tokens: int
    max_load: int | None = None
    max_offload: int | None = None
    skip_reading: bool = False
    stop_after: int | None = None
    session: bool = False


class Extend(
    msgspec.Struct, frozen=True, tag="extend", tag_field="move", forbid_unknown_fields=True
):
    """The client of a session sends more input, to be taken up at the session's next stop.

    Without ``tokens`` it says that the session is over.
    """

    req: str
    tokens: tuple[int, ...] = ()
    max_tokens: int = 1


class Step(msgspec.Struct, frozen=True, tag="step", tag_field="move", forbid_unknown_fields=True):
    """One engine step. ``finish`` picks which copies in flight end before the workers report:

    "all", "none", "oldest" (the first submitted copy of each direction on each worker), "stores",
    "loads", or "rank0" (all copies of worker 0 only).

    ``fail`` picks which copies that end in this step fail: "" (none), "loads", "stores" or "all".
    A target whose workers have no way to report a failure does not take such a step.
    """

    finish: str = "all"
    fail: str = ""


class Abort(msgspec.Struct, frozen=True, tag="abort", tag_field="move", forbid_unknown_fields=True):
    """The client of ``req`` goes away (also before the request was ever scheduled)."""

    req: str


class ResetCache(
    msgspec.Struct, frozen=True, tag="reset", tag_field="move", forbid_unknown_fields=True
):
    """Forget cached KV. ``connector``: the tier too; otherwise the GPU prefix cache alone.

    ``running``: preempt running requests first, as the engine's own option does.
    """

    connector: bool = True
    running: bool = False


class Drain(msgspec.Struct, frozen=True, tag="drain", tag_field="move", forbid_unknown_fields=True):
    """Step until no request and no job is left (every copy succeeds), then check for residue.

    Sessions are closed first: their clients send nothing more.

    An engine that does not come to rest says so with a ``Stalled`` event.
    """


Move = Add | Extend | Step | Abort | ResetCache | Drain


class History(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A replayable run."""

    target: str
    setup: Setup
    moves: tuple[Move, ...]


class Unsupported(Exception):
    """The target cannot be set up so (say, recurrent groups in a release that refuses them)."""


class Engine(Protocol):
    """One run of one target.

    Calls into the scheduler that raise become a ``Raised`` event, after which ``crashed`` is true
    and further moves do nothing; they never escape. A move that the engine itself refuses (an
    unknown request, a reset with running requests) is skipped and counts as not taken.
    """

    header: Header
    crashed: bool

    def play(self, move: Move) -> bool:
        """Carry one move out; False when it was not taken."""
        ...

    def close(self) -> None:
        """Let go of everything the run holds; the next run starts from nothing."""
        ...


Emit = Callable[[AnyEvent], None]


class Target(Protocol):
    """Builds engines of one target in this process."""

    name: str

    def supports(self, setup: Setup) -> str | None:
        """None, or one line saying why this target cannot run the setup."""
        ...

    def start(self, setup: Setup, emit: Emit) -> Engine:
        """A fresh engine whose events go to ``emit``.

        Raises:
            Unsupported: ``supports`` has a reason.
        """
        ...
