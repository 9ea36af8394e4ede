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
    """One KV-cache group to build: ``kind`` as in the trace header, sizes in tokens."""

    kind: str
    tokens_per_block: int
    window: int | None = None


class Setup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The configuration of one run.

    ``num_gpu_blocks`` excludes the null block. ``num_slots`` is the tier's capacity in chunks.
    ``max_batch_tokens`` bounds the tokens of one step (chunked prefill above it).
    ``retention_interval``: None or 0, for releases that know it.
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


class Add(msgspec.Struct, frozen=True, tag="add", tag_field="move", forbid_unknown_fields=True):
    """A client sends a prompt. ``req`` is the client's id, free to be used again after its end."""

    req: str
    tokens: tuple[int, ...]
    max_tokens: int


class Step(msgspec.Struct, frozen=True, tag="step", tag_field="move", forbid_unknown_fields=True):
    """One engine step. ``finish`` picks which copies in flight end before the workers report:

    "all", "none", "oldest" (the first submitted copy of each direction on each worker), "stores",
    "loads", or "rank0" (all copies of worker 0 only).
    """

    finish: str = "all"


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

    An engine that does not come to rest says so with a ``Stalled`` event.
    """


Move = Add | Step | Abort | ResetCache | Drain


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
