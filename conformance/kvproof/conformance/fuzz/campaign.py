"""A campaign: examples until a budget is spent or something breaks, and what is left behind.

The same seed gives the same examples and, when ``max_examples`` bounds the campaign, the same
result; ``seconds`` only cuts off.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from kvproof.conformance.engines.base import History, Target
from kvproof.conformance.fuzz import outputs
from kvproof.conformance.fuzz.machine import EngineMachine, machine_for
from kvproof.conformance.fuzz.repeatable import without_local_constants
from kvproof.conformance.fuzz.session import MakeJudge, Session, monitor
from kvproof.conformance.fuzz.shrink import DEFAULT_REPLAYS, shrink
from kvproof.conformance.fuzz.strategies import DISTURBANCES
from kvproof.conformance.monitor.finding import Finding

STEPS_PER_EXAMPLE = 40
"""Rules of one example; several of them are more than one move."""

_UNBOUNDED = 1 << 30

Signature = tuple[str, str, str]


class CampaignProgress(msgspec.Struct, frozen=True):
    """Where a campaign stands: counts so far, seconds since it began, and what it is doing."""

    examples: int
    steps: int
    events: int
    seconds: float
    phase: str = "fuzzing"


class Coverage(msgspec.Struct, frozen=True):
    """What happened how often. ``rules`` are the fuzzer's moves, ``events`` the event kinds and
    ``reference`` the monitor's counts per action and guard; ``never`` lists what did not happen.
    """

    rules: dict[str, int]
    events: dict[str, int]
    reference: dict[str, int]
    never: list[str]


class CampaignResult(msgspec.Struct, frozen=True):
    """The outcome. ``steps`` counts moves, ``allowed`` counts findings passed over, by signature.

    ``replays`` is what shrinking took; ``files`` are the paths written for the finding.
    """

    target: str
    seed: int
    examples: int
    steps: int
    events: int
    seconds: float
    finding: Finding | None
    history: History | None
    files: list[str]
    allowed: dict[str, int]
    replays: int
    coverage: Coverage

    @property
    def findings(self) -> list[Finding]:
        """The finding as a list: empty or of one."""
        return [] if self.finding is None else [self.finding]


class _Over(BaseException):
    """Ends a campaign at once: Hypothesis lets it through, and neither shrinks nor replays."""


class _Ledger:
    """Counts of a campaign in progress, and its end when a budget is spent or something breaks."""

    def __init__(
        self,
        max_examples: int | None,
        seconds: float | None,
        allow: frozenset[Signature],
        progress: Callable[[CampaignProgress], None] | None,
    ) -> None:
        self.started = time.monotonic()
        self.max_examples, self.seconds = max_examples, seconds
        self.allow, self.progress = allow, progress
        self.examples = self.steps = self.events = 0
        self.rules: Counter[str] = Counter(dict.fromkeys(_RULES, 0))
        self.kinds: Counter[str] = Counter()
        self.reference: Counter[str] = Counter()
        self.allowed: Counter[str] = Counter()
        self.broken: Session | None = None

    def ended(self, machine: EngineMachine) -> None:
        """Take one example's counts; raises ``_Over`` when it was the last one."""
        session = machine.running
        self.examples += 1
        self.steps += len(session.moves)
        self.events += len(session.events)
        self.rules.update(machine.uses)
        self.kinds.update(type(event).__name__ for event in session.events)
        self.reference.update(session.coverage())
        if session.finding is not None:
            if session.finding.signature() not in self.allow:
                self.broken = session
                raise _Over
            self.allowed[" ".join(session.finding.signature()).rstrip()] += 1
        self.report("fuzzing")
        spent = self.max_examples is not None and self.examples >= self.max_examples
        if spent or (self.seconds is not None and self.elapsed() >= self.seconds):
            raise _Over

    def elapsed(self) -> float:
        return time.monotonic() - self.started

    def report(self, phase: str) -> None:
        if self.progress is not None:
            self.progress(
                CampaignProgress(self.examples, self.steps, self.events, self.elapsed(), phase)
            )

    def coverage(self) -> Coverage:
        counts = {**self.rules, **self.reference}
        return Coverage(
            rules=dict(sorted(self.rules.items())),
            events=dict(sorted(self.kinds.items())),
            reference=dict(sorted(self.reference.items())),
            never=sorted(name for name, count in counts.items() if count == 0),
        )


_RULES = ("add", "step", "steps", "finishing_steps", "drain", *DISTURBANCES)


def run(
    target: Target,
    *,
    seed: int,
    seconds: float | None,
    max_examples: int | None,
    out: Path,
    allow: frozenset[Signature] = frozenset(),
    progress: Callable[[CampaignProgress], None] | None = None,
    make_judge: MakeJudge = monitor,
    max_replays: int = DEFAULT_REPLAYS,
) -> CampaignResult:
    """Fuzz ``target`` until the first finding that is not allowed, or until the budget is spent.

    Args:
        target: whom to fuzz.
        seed: decides what is drawn.
        seconds: stop generating after this long; None for no limit. Shrinking comes on top.
        max_examples: stop after this many examples; None for no limit.
        out: folder for the finding's files.
        allow: signatures of known findings; they end their example, not the campaign.
        progress: told where the campaign stands, after each example.
        make_judge: builds the judge of a run; the reference machine unless a test says otherwise.
        max_replays: the bound on replays of shrinking.

    Raises:
        ValueError: neither ``seconds`` nor ``max_examples`` bounds the campaign.
    """
    if seconds is None and max_examples is None:
        raise ValueError("a campaign needs a bound: seconds, max_examples, or both")
    ledger = _Ledger(max_examples, seconds, allow, progress)
    _generate(target, seed, make_judge, ledger)
    finding = history = None
    files: list[Path] = []
    replays = 0
    if ledger.broken is not None:
        ledger.report("shrinking")
        shrunk = shrink(target, ledger.broken, make_judge=make_judge, max_replays=max_replays)
        finding, history, replays = shrunk.finding, shrunk.history, shrunk.replays
        files = outputs.write(out, target, history, make_judge)
    return CampaignResult(
        target=target.name,
        seed=seed,
        examples=ledger.examples,
        steps=ledger.steps,
        events=ledger.events,
        seconds=round(ledger.elapsed(), 3),
        finding=finding,
        history=history,
        files=[str(path) for path in files],
        allowed=dict(sorted(ledger.allowed.items())),
        replays=replays,
        coverage=ledger.coverage(),
    )


def _generate(target: Target, number: int, make_judge: MakeJudge, ledger: _Ledger) -> None:
    machine = seed(number)(machine_for(target, make_judge, ledger.ended))
    chosen = settings(
        # Generation stops earlier, by ``_Over``; Hypothesis would stop at a tenth of its budget
        # when examples repeat, which a narrow swarm makes happen.
        max_examples=_UNBOUNDED,
        stateful_step_count=STEPS_PER_EXAMPLE,
        # No targeting: aimed at loads, it spent most examples on variants of one of them.
        phases=(Phase.generate,),
        database=None,
        deadline=None,
        derandomize=False,
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
    )
    with suppress(_Over), without_local_constants():
        run_state_machine_as_test(machine, settings=chosen)
