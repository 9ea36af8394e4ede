"""What two connector schedulers make of one workload: conversations that come back turn by turn.

Each side has an engine of its own, the release's real core and CPU tier, and the same clients. What
these send is drawn once: a turn is all of the conversation so far and something new. The pool of
the GPU is far too small for the conversations of all, so a turn is served from the tier or computed
anew; most tiers that are tried are too small for all of them, too.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import msgspec

from kvproof.conformance.engines.base import Add, Drain, GroupSetup, Move, Setup, Step
from kvproof.conformance.engines.names import OURS
from kvproof.conformance.engines.vllm.target import VllmTarget
from kvproof.conformance.errors import UsageError
from kvproof.conformance.trace import events as ev

BLOCK = 16
"""Tokens of a block, a chunk and a block hash."""

USERS = 12
SPOKEN = (40, 160)
"""How many tokens a user adds in a turn: from, to."""

SAID = 24
"""How many tokens are generated in each turn."""

LONGEST = 1600
"""At so many tokens a conversation is over, and its user begins another one."""

SLOTS = (600, 800, 1000, 1600)
"""Sizes of the tier, in chunks."""

WINDOW = 8 * BLOCK

SETTINGS = f"{USERS} users, full + 1 window of {WINDOW}, a block a chunk"

Advance = Callable[[str, int, int], None]


class Served(msgspec.Struct, frozen=True):
    """What one side made of a workload.

    Attributes:
        slots: of the tier.
        scheduler: who.
        prompts: tokens of all prompts.
        hits: tokens that were loaded from the tier.
        greatest: tokens that could have been, from a tier that keeps all that was ever computed.
        stored: blocks written to the tier.
        loaded: blocks read from it.
        computed: tokens of forwards.
    """

    slots: int
    scheduler: str
    prompts: int
    hits: int
    greatest: int
    stored: int
    loaded: int
    computed: int

    @property
    def share(self) -> float:
        """Hits served / greatest hit."""
        return self.hits / self.greatest if self.greatest else 0.0

    @property
    def stored_per_loaded(self) -> float:
        """Bytes stored per byte served: all blocks have one size."""
        return self.stored / self.loaded if self.loaded else float("inf")


class Tally:
    """Counts, event by event."""

    def __init__(self) -> None:
        self.prompts = self.hits = self.greatest = self.stored = self.loaded = self.computed = 0
        self._hashes: dict[str, list[str]] = {}
        self._tokens: dict[str, int] = {}
        self._asked: dict[str, int] = {}
        self._known: set[str] = set()

    def see(self, event: ev.AnyEvent) -> None:
        """One event more."""
        match event:
            case ev.Arrive(req=req, tokens=tokens):
                self.prompts += len(tokens)
                self._tokens[req] = len(tokens)
                self._hashes[req] = []
            case ev.Hashed(req=req, first=first, hashes=hashes):
                self._hashes[req][first:] = hashes
            case ev.Ask(req=req, computed=computed):
                self._asked[req] = computed
            case ev.Allocated(req=req, external=external) if req in self._asked:
                self.hits += external
                self.greatest += self._could_be_loaded(req, self._asked.pop(req))
            case ev.Scheduled(computing=computing):
                for one in computing:
                    self.computed += one.end - one.start
                    self._known.update(self._hashes[one.req][: one.end // BLOCK])
            case ev.Issue(kind=kind, pieces=pieces):
                if kind == "store":
                    self.stored += len(pieces)
                else:
                    self.loaded += len(pieces)
            case _:
                pass

    def _could_be_loaded(self, req: str, on_gpu: int) -> int:
        whole = (self._tokens[req] - 1) // BLOCK
        known = 0
        for name in self._hashes[req][:whole]:
            if name not in self._known:
                break
            known += BLOCK
        return max(0, known - on_gpu)


def setup(slots: int) -> Setup:
    """Full attention and a window of eight blocks, a small GPU pool, and a tier of ``slots``."""
    return Setup(
        groups=(GroupSetup("full", BLOCK), GroupSetup("window", BLOCK, window=WINDOW)),
        num_gpu_blocks=500,
        num_slots=slots,
        max_batch_tokens=512,
        max_running=4,
    )


def moves(turns: int, seed: int = 0) -> Iterator[Move]:
    """The clients' side: the same whoever serves them."""
    drawn = random.Random(seed)
    # What all conversations begin with.
    system = tuple(drawn.randrange(1000) for _ in range(6 * BLOCK))
    so_far: list[tuple[int, ...]] = [system] * USERS
    for number in range(turns):
        user = drawn.randrange(USERS)
        if len(so_far[user]) > LONGEST:
            so_far[user] = system
        added = (drawn.randrange(1000) for _ in range(drawn.randint(*SPOKEN)))
        so_far[user] = (*so_far[user], *added)
        yield Add(f"turn{number}", so_far[user], SAID)
        yield from [Step("oldest")] * drawn.randint(4, 24)
    yield Drain()


def play(name: str, target: VllmTarget, slots: int, turns: int) -> Served:
    """The workload under one scheduler.

    Raises:
        UsageError: a call into it raised.
    """
    tally = Tally()
    engine = target.start(setup(slots), tally.see)
    try:
        for move in moves(turns):
            engine.play(move)
        if engine.crashed:
            raise UsageError(f"{name}: a call raised while the workload was served")
    finally:
        engine.close()
    return Served(
        slots=slots,
        scheduler=name,
        prompts=tally.prompts,
        hits=tally.hits,
        greatest=tally.greatest,
        stored=tally.stored,
        loaded=tally.loaded,
        computed=tally.computed,
    )


def tables(turns: int, advance: Advance) -> list[Served]:
    """For each size of the tier the release's own scheduler, then kvproof's.

    Raises:
        UsageError: a call into one of them raised.
    """
    made = []
    for number, slots in enumerate(SLOTS):
        advance(f"{slots} slots", number, len(SLOTS))
        made.append(play("vLLM", VllmTarget(), slots, turns))
        made.append(play("kvproof", VllmTarget(given=OURS), slots, turns))
    return made
