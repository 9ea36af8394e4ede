"""A soak: lives of drawn engines one after the other, until so many steps have been taken."""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec
from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis import seed as seeded

from kvproof.conformance.engines.base import History, Target, Unsupported
from kvproof.conformance.fuzz import outputs
from kvproof.conformance.fuzz.control import Control
from kvproof.conformance.fuzz.repeatable import without_local_constants
from kvproof.conformance.fuzz.session import play
from kvproof.conformance.fuzz.shrink import shrink
from kvproof.conformance.fuzz.strategies import Plan, plans_for
from kvproof.conformance.monitor.finding import MISSED, Finding
from kvproof.conformance.soak.life import Leak, Life, Rest

MOVES_PER_REST = 300
"""Drawn moves between two points of rest; several of them are more than one engine step."""

ALLOWED_GROWTH = 16 << 20
"""Bytes by which resident memory may differ between two quarters of a soak and still be flat."""

ENOUGH_SAMPLES = 16
"""Points of rest below which nothing is said of memory."""

SHRINKING = 400
"""Replays that shrinking a finding may take."""


class SoakProgress(msgspec.Struct, frozen=True):
    """Where a soak stands. ``rss`` is resident memory in bytes."""

    steps: int
    lives: int
    rests: int
    rss: int


class SoakResult(msgspec.Struct, frozen=True):
    """The outcome.

    ``leaks`` were seen at the last point of rest, ``finding`` ended the soak. ``engine`` counts
    lives that ended because the engine went wrong as it does around the release's own scheduler, by
    signature; after each came the next life. ``history`` leads there; ``files`` are the paths
    written. ``rss`` samples resident memory, in bytes, at up to 64 points of rest; ``growth`` is
    what it grew by from the soak's second quarter to its last, and ``flat`` whether that is
    allowed; both are None when there were too few points of rest. ``tables`` are the entries that
    the scheduler's own tables had at the last point of rest, and ``objects`` how many objects of
    its own classes there were.
    """

    target: str
    seed: int
    tier: str
    steps: int
    requests: int
    events: int
    lives: int
    rests: int
    seconds: float
    finding: Finding | None
    leaks: list[Leak]
    history: History | None
    files: list[str]
    rss: list[int]
    growth: int | None
    flat: bool | None
    tables: dict[str, int]
    objects: int
    engine: dict[str, int] = {}

    @property
    def holds(self) -> bool:
        """Nothing was found, nothing leaks, and memory is flat as far as can be told."""
        return self.finding is None and not self.leaks and self.flat is not False


class _Lived(NamedTuple):
    """A life that has ended: its plan, name and length, and its moves since the last rest."""

    plan: Plan
    name: str
    steps: int
    since_rest: History

    def history(self) -> History:
        """What can be played again at once."""
        return self.since_rest


class _Soak:
    """A soak in progress."""

    def __init__(
        self, target: Target, seed: int, missed: bool, out: Path, plain: Target | None
    ) -> None:
        self.target, self.seed, self.missed, self.out = target, seed, missed, out
        self.control: Control[_Lived] = Control(plain)
        self.steps = self.requests = self.events = self.lives = 0
        self.rests = 0
        self.rest: Rest | None = None
        self.rss: list[int] = []
        self.finding: Finding | None = None
        self.leaks: list[Leak] = []
        self.history: History | None = None
        self.files: list[Path] = []

    def live(self, plan: Plan, steps: int, report: Callable[[int], None]) -> bool:
        """One life of at least so many steps; False when something came to light."""
        name = f"{self.seed}/{self.lives}"
        self.lives += 1
        life = Life(self.target, plan, name, self.missed)
        try:
            while life.running.steps < steps and self._segment(life):
                report(self.steps + life.running.steps)
            self.leaks = life.leaks()
        finally:
            life.close()
            self.steps += life.running.steps
            self.requests += life.running.requests
            self.events += life.running.events
        self.finding = life.running.finding
        if self.finding is None and not self.leaks:
            return True
        lived = _Lived(plan, name, steps, life.running.history())
        if self.finding is not None and self.control.takes(lived, self.finding, self.lives, 0.0):
            self.finding = None
            if not self.leaks:
                return True
        self.history = self._shrunk(lived)
        self._write()
        return False

    def settle(self) -> None:
        """What the engine was not shown to be to blame for is a finding after all."""
        for suspect in list(self.control.suspects.values()):
            if self.finding is None and not self.leaks:
                history = self._shrunk(suspect.run, suspect.finding)
                if not self.control.settle(suspect, history, suspect.finding):
                    self.finding, self.history = suspect.finding, history
                    self._write()

    def _segment(self, life: Life) -> bool:
        life.work(MOVES_PER_REST)
        rest = None if life.running.over else life.rest()
        if rest is None:
            return False
        self.rests += 1
        self.rest = rest
        self.rss.append(_resident())
        return not rest.handed_out

    def _shrunk(self, lived: _Lived, finding: Finding | None = None) -> History:
        """A shorter history of a finding; when it needs the whole life, the whole life."""
        finding = finding or self.finding
        if finding is None:
            return lived.since_rest
        again = play(self.target, lived.plan.setup, lived.since_rest.moves)
        broken = again.broken(finding.signature())
        if broken is not None:
            bound = SHRINKING // 4 if broken.severity == MISSED else SHRINKING
            return shrink(self.target, again, finding=broken, max_replays=bound).history
        return self._whole_life(lived.plan, lived.name, lived.steps)

    def _write(self) -> None:
        assert self.history is not None
        if self.finding is None:
            self._write_leak(self.history)
            return
        with suppress(ValueError):
            self.files = outputs.write(
                self.out, self.target, self.history, signature=self.finding.signature()
            )

    def _whole_life(self, plan: Plan, name: str, steps: int) -> History:
        life = Life(self.target, plan, name, self.missed, keeps_all=True)
        try:
            while life.running.steps < steps and not life.running.over:
                life.work(MOVES_PER_REST)
                if not life.running.over:
                    life.rest()
        finally:
            life.close()
        return life.running.history()

    def _write_leak(self, history: History) -> None:
        self.out.mkdir(parents=True, exist_ok=True)
        path = self.out / f"leak-{self.seed}-{self.lives}.history.json"
        path.write_bytes(msgspec.json.format(msgspec.json.encode(history), indent=2) + b"\n")
        self.files = [path]


def run(
    target: Target,
    *,
    seed: int,
    steps: int,
    life: int,
    out: Path,
    tier: str = "cpu",
    missed: bool = True,
    plain: Target | None = None,
    progress: Callable[[SoakProgress], None] | None = None,
) -> SoakResult:
    """Let engines of ``target`` live until they have taken ``steps`` steps, or something shows.

    Args:
        target: whose engines.
        seed: decides what is drawn.
        steps: engine steps of all lives together.
        life: engine steps of one life, after which another setup is drawn.
        out: folder for what is found.
        tier: which tier the engines have, as in ``Setup.tier``.
        missed: whether findings of class *missed* count.
        plain: the release with its own scheduler, when ``target`` has another one in its place:
            what the engine does wrong around both ends a life, not the soak.
        progress: told where the soak stands, at each point of rest.
    """
    soak = _Soak(target, seed, missed, out, plain)
    began = time.monotonic()

    def report(done: int) -> None:
        if progress is not None:
            progress(SoakProgress(done, soak.lives, soak.rests, soak.rss[-1]))

    plans = _plans(target, seed, tier, -(-steps // life))
    while soak.steps < steps:
        plan = plans[soak.lives % len(plans)]
        try:
            if not soak.live(plan, min(life, steps - soak.steps), report):
                break
        except Unsupported:
            continue
    soak.settle()
    growth = growth_of(soak.rss)
    return SoakResult(
        target=target.name,
        seed=seed,
        tier=tier,
        steps=soak.steps,
        requests=soak.requests,
        events=soak.events,
        lives=soak.lives,
        rests=soak.rests,
        seconds=round(time.monotonic() - began, 3),
        finding=soak.finding,
        leaks=soak.leaks,
        history=soak.history,
        files=[str(path) for path in soak.files],
        rss=soak.rss[:: -(-len(soak.rss) // 64) or 1],
        growth=growth,
        flat=None if growth is None else growth <= ALLOWED_GROWTH,
        tables={} if soak.rest is None else soak.rest.tables,
        objects=0 if soak.rest is None else sum(soak.rest.objects.values()),
        engine={str(signature): n for signature, n in sorted(soak.control.shown.items())},
    )


def growth_of(rss: list[int]) -> int | None:
    """Bytes from the median of the second quarter of the samples to that of the last quarter."""
    if len(rss) < ENOUGH_SAMPLES:
        return None
    quarter = len(rss) // 4
    return int(statistics.median(rss[-quarter:]) - statistics.median(rss[quarter : 2 * quarter]))


def _resident() -> int:
    """Resident memory of this process, in bytes."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


def _plans(target: Target, seed: int, tier: str, count: int) -> list[Plan]:
    """Drawn plans: as many as there are lives, or as many different ones as a draw gives."""
    drawn: list[Plan] = []

    @seeded(seed)
    @settings(
        # The first examples of a draw are the plainest.
        max_examples=count + 10,
        phases=(Phase.generate,),
        database=None,
        deadline=None,
        derandomize=False,
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
    )
    @given(plans_for(target, {"tier": tier}))
    def draw(plan: Plan) -> None:
        drawn.append(plan)

    with without_local_constants():
        draw()
    return drawn[-count:] if len(drawn) > count else drawn
