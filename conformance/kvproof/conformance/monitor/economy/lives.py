"""What the lives of requests have come to, as far as economy asks."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

from kvproof.conformance.monitor.world import World
from kvproof.conformance.trace import events as ev
from kvproof.model.contract import Key, Lease, Request

Chunk = tuple[int, int]
"""A chunk of a request: its group, and its number from the start."""

ENDS = frozenset({"stopped", "length_capped"})
"""How a request ends when nothing cut it short."""


@dataclass(eq=False)
class Life:
    """One life of a request id. Tokens count from its start.

    Attributes:
        number: order of arrival, from 0.
        era: how many disturbances there had been when it arrived.
        steady: nothing has cut it short, put it back or refused it, nor was anything forgotten.
        preempted: it was put back at least once.
        start: (asked from, computed from): what its first step found on the GPU and in the tier.
        forwards: (step, end) of the last two of its steps that the first worker executed, of those
            since it was put back last.
        since: the first step that may be one of these.
        horizon: at its end, up to where its chunks may be stored and hold what they name.
        states: ends of its steps, where a recurrent group has a state.
        examined: per group, the chunks that have been looked at since it started (again).
        open: complete chunks that are neither offered nor present.
        could: chunks that were complete while all their blocks were there.
        chances: windows in which an open chunk could have been offered, since its last refusal.
        last_chance: the leases of chunks that had a chance only when it ended.
        offers: how often each chunk was offered and not refused, since the last reset.
        found: chunks that lay in the tier when it was answered, up to what was answered.
        present: those, and chunks that lay there when they could have been offered.
        fresh: offers since it started (again).
        refused: its last refused offer, and how often room had changed by then.
        refused_at: of how many changes of room was told when a chunk was refused last.
        refused_in: the window in which that was.
    """

    r: Request
    number: int
    era: int
    groups: int
    steady: bool = True
    preempted: bool = False
    start: tuple[int, int] | None = None
    forwards: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=2))
    since: int = 0
    horizon: int = 0
    states: set[int] = field(default_factory=set)
    examined: list[int] = field(init=False)
    open: set[Chunk] = field(default_factory=set)
    could: set[Chunk] = field(default_factory=set)
    chances: Counter[Chunk] = field(default_factory=Counter)
    last_chance: dict[Chunk, list[Lease]] = field(default_factory=dict)
    offers: Counter[Chunk] = field(default_factory=Counter)
    found: set[Chunk] = field(default_factory=set)
    present: set[Chunk] = field(default_factory=set)
    fresh: Counter[Chunk] = field(default_factory=Counter)
    refused: tuple[frozenset[str], int] | None = None
    refused_at: dict[Chunk, int] = field(default_factory=dict)
    refused_in: dict[Chunk, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.examined = [0] * self.groups

    def start_again(self) -> None:
        """It is put back: what it computes anew may be offered anew."""
        self.examined = [0] * self.groups
        self.open.clear()
        self.chances.clear()
        self.fresh.clear()
        self.states.clear()

    def forget(self) -> None:
        """The tier forgets: nothing was offered."""
        self.start_again()
        self.offers.clear()
        self.found.clear()
        self.present.clear()
        self.refused = None
        self.refused_at.clear()
        self.refused_in.clear()
        self.steady = False


class Lives:
    """All lives of a run.

    Attributes:
        room: how often room in the tier has changed: a copy ended, a chunk left, a reset.
        told: how often of that the scheduler was told, or told the tier.
        era: how many disturbances there have been: after one, what was stored may be gone.
        offered: how often each key was offered by anybody, and not refused, in this era.
        ending: lives that have ended in the open window.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._lives: dict[Request, Life] = {}
        self.room = 0
        self.told = 0
        self.era = 0
        self.offered: Counter[Key] = Counter()
        self.ending: list[Life] = []

    def get(self, req: str) -> Life | None:
        """The life of an incarnation; None when it never arrived."""
        return self._lives.get(self._world.request(req))

    def change_room(self) -> None:
        """A call between scheduler and tier has changed room."""
        self.room += 1
        self.told += 1

    def disturb(self) -> None:
        """Something was refused, left, failed or was forgotten."""
        self.era += 1
        self.offered.clear()

    def arrive(self, event: ev.Arrive) -> None:
        """A life begins."""
        r = self._world.request(event.req)
        self._lives[r] = Life(r, len(self._lives), self.era, len(self._world.header.groups))

    def forward(self, event: ev.Forward) -> None:
        """The first worker executes a step."""
        if event.rank == 0:
            for computing in event.computing:
                life = self.get(computing.req)
                # A worker that lags executes steps of a request that was put back since.
                if life is not None and event.step >= life.since:
                    life.forwards.append((event.step, computing.end))

    def preempt(self, event: ev.Preempt) -> None:
        """A life is put back."""
        if (life := self.get(event.req)) is not None:
            life.steady = False
            life.preempted = True
            life.since = event.step
            life.forwards.clear()
            life.start_again()

    def extend(self, event: ev.Extended) -> None:
        """A session goes on with other tokens than it had."""
        if (life := self.get(event.req)) is not None:
            life.steady = False
            size = self._world.header.blocks_per_chunk
            for group, sizes in enumerate(self._world.header.groups):
                kept = event.kept // (sizes.tokens_per_block * size)
                life.examined[group] = min(life.examined[group], kept)
                for held in (life.open, life.could, life.found, life.present):
                    held -= {c for c in held if c[0] == group and c[1] >= kept}
                for counts in (life.chances, life.offers, life.fresh):
                    for chunk in [c for c in counts if c[0] == group and c[1] >= kept]:
                        del counts[chunk]

    def reset(self) -> None:
        """The tier forgets everything."""
        self.change_room()
        self.disturb()
        self.ending.clear()
        for r in self._world.reference.alive:
            if r in self._lives:
                self._lives[r].forget()

    def fail(self) -> None:
        """A copy fails, so what it was to bring or keep is missing."""
        self.disturb()
        for r in self._world.reference.alive:
            if r in self._lives:
                self._lives[r].steady = False
