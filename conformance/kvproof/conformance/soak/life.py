"""One engine's long life: drawn moves, and points of rest between which everything is judged.

At a point of rest the engine is drained and told to forget everything. Nothing that came before can
matter after it, so the monitor starts anew there, and the engine's taps forget whom they knew: a
life of any length is judged in bounded memory, and what breaks it is a history that begins at the
last point of rest.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import msgspec

from kvproof.conformance.engines.base import Add, Drain, History, Move, ResetCache, Setup, Target
from kvproof.conformance.fuzz.machine import EngineMachine
from kvproof.conformance.fuzz.session import Judge, MakeJudge, monitor
from kvproof.conformance.fuzz.strategies import Plan
from kvproof.conformance.monitor.finding import Finding
from kvproof.conformance.trace.events import AnyEvent, Arrive, Drained, Finish, Scheduled

_RULES = ("add",) * 5 + ("add_pair",) + ("step",) * 6 + ("steps",) * 3 + ("finishing_steps",) * 3
_CHOICES = (*_RULES, "disturb", "disturb")


ENOUGH_RESTS = 16
"""Points of rest of one life below which nothing is said of what merely must not grow."""


class Leak(msgspec.Struct, frozen=True):
    """Something is held at a point of rest, more than ``most``: nothing, or the most before."""

    what: str
    held: int
    most: int


class Rest(msgspec.Struct, frozen=True):
    """What is held at one point of rest.

    ``handed_out`` must be empty; ``tables`` and ``objects`` are the scheduler's own, by name.
    """

    handed_out: dict[str, int]
    tables: dict[str, int]
    objects: dict[str, int]


class Running:
    """An engine under the monitor, as ``EngineMachine`` needs a session to be.

    Attributes:
        engine: the engine.
        live: how many requests have arrived and not ended.
        steps: engine steps so far.
        requests: arrivals so far.
        events: events so far.
        moves: the moves since the last point of rest, or all of them.
        finding: what ended the life.
    """

    def __init__(
        self,
        target: Target,
        setup: Setup,
        judged: MakeJudge = monitor,
        missed: bool = True,
        keeps_all: bool = False,
    ) -> None:
        self.target, self.setup = target, setup
        self.live = self.steps = self.requests = self.events = 0
        self.moves: list[Move] = []
        self.finding: Finding | None = None
        self.drained = False
        self._judged, self._missed, self._keeps_all = judged, missed, keeps_all
        self._early: list[AnyEvent] = []
        self._judge: Judge | None = None
        self.engine: Any = target.start(setup, self._emit)
        self.begin_anew()

    def begin_anew(self) -> None:
        """Judge from here on as if the engine had just been started."""
        self._judge = self._judged(self.engine.header)
        if not self._keeps_all:
            self.moves = []
        early, self._early = self._early, []
        for event in early:
            self._emit(event)

    def _emit(self, event: AnyEvent) -> None:
        if self._judge is None:
            self._early.append(event)
            return
        if self.finding is not None:
            return
        self.events += 1
        self.steps += isinstance(event, Scheduled)
        self.requests += isinstance(event, Arrive)
        self.live += isinstance(event, Arrive) - isinstance(event, Finish)
        self.drained = isinstance(event, Drained)
        self.finding = self._judge.feed(event)
        if self.finding is None and self._missed and self._judge.missed:
            self.finding = self._judge.missed[0]

    @property
    def over(self) -> bool:
        """Nothing more can be learned from this life."""
        return self.finding is not None or bool(self.engine.crashed)

    def play(self, move: Move) -> bool:
        """Play one move; False when the life is over or the engine did not take the move."""
        if self.over:
            return False
        self.moves.append(move)
        taken = bool(self.engine.play(move))
        if not taken and not self.over:
            self.moves.pop()
        return taken

    def history(self) -> History:
        """The moves that are kept, replayable."""
        return History(self.target.name, self.setup, tuple(self.moves))


class Machine(EngineMachine):
    """The fuzzer's moves, played on a ``Running``."""

    def __init__(self, running: Running, plan: Plan) -> None:
        super().__init__()
        self.session = running  # type: ignore[assignment]
        self.plan = plan


class Life:
    """Plays one plan, from rest to rest.

    The same plan and seed give the same life.
    """

    def __init__(
        self, target: Target, plan: Plan, seed: str, missed: bool = True, keeps_all: bool = False
    ) -> None:
        self.plan = plan
        self.running = Running(target, plan.setup, missed=missed, keeps_all=keeps_all)
        self._machine = Machine(self.running, plan)
        self._draw = random.Random(seed)
        self.rests: list[Rest] = []

    def work(self, moves: int) -> None:
        """Draw and play about so many moves."""
        draw, machine = self._draw, self._machine
        for _ in range(moves):
            if self.running.over:
                return
            four = [draw.randrange(1 << 12) for _ in range(4)]
            match draw.choice(_CHOICES):
                case "add":
                    machine.add(*four)
                case "add_pair":
                    machine.add_pair(*four)
                case "step":
                    machine.step(four[0], four[1])
                case "steps":
                    machine.steps(four[0], 2 + four[1] % 7)
                case "finishing_steps":
                    machine.finishing_steps(1 + four[0] % 6)
                case _:
                    machine.disturb(four[0], four[1])

    def rest(self) -> Rest | None:
        """Come to rest, forget, and look at what is held; None when the life ended meanwhile."""
        running = self.running
        running.play(Drain())
        pinned = running.engine.holdings().handed_out().get("chunks that may not go", 0)
        running.play(ResetCache(connector=True))
        # One request more, which stores nothing: what the reset had to tell is told by its steps.
        running.play(Add("rest", (0,), 1))
        running.play(Drain())
        if running.over or not running.drained:
            return None
        holdings = running.engine.holdings()
        handed_out = {**holdings.handed_out(), "chunks that may not go": pinned}
        running.engine.forget()
        rest = Rest(
            {name: count for name, count in handed_out.items() if count},
            holdings.tables(),
            dict(holdings.objects()),
        )
        self.rests.append(rest)
        if not rest.handed_out:
            running.begin_anew()
        return rest

    def leaks(self) -> list[Leak]:
        """What is held that must not be; and what grows, once there were enough points of rest."""
        last = self.rests[-1].handed_out if self.rests else {}
        leaks = [Leak(name, count, 0) for name, count in sorted(last.items())]
        if len(self.rests) >= ENOUGH_RESTS:
            leaks += grown("table", [rest.tables for rest in self.rests])
            leaks += grown("objects of", [rest.objects for rest in self.rests])
        return leaks

    def close(self) -> None:
        """Let go of the engine."""
        self.running.engine.close()


def grown(kind: str, series: Sequence[dict[str, int]]) -> list[Leak]:
    """What was more at each of the last quarter of the points of rest than ever in the first half.

    Tables may be tidied late, so they go up and down; what leaks only goes up.
    """
    first, last = series[: len(series) // 2], series[-(len(series) // 4) :]
    found = []
    for name in sorted({name for counts in last for name in counts}):
        most = max(counts.get(name, 0) for counts in first)
        if min(counts.get(name, 0) for counts in last) > most:
            found.append(Leak(f"{kind} {name}", last[-1].get(name, 0), most))
    return found
