"""A campaign: examples until a budget is spent, and every distinct finding that they make.

A finding ends its example, not the campaign: it is shrunk and written at once, and later examples
that end the same way are counted, so that a loud fault does not hide the rest. Findings of class
*missed* do not even end their example; they are taken after the one that did. The same seed gives
the same examples and findings in the same order; ``seconds`` only cuts off.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path

import msgspec
from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from hypothesis.strategies import SearchStrategy

from kvproof.conformance.engines.base import History, Target
from kvproof.conformance.fuzz import outputs
from kvproof.conformance.fuzz.collector import patient_collector
from kvproof.conformance.fuzz.control import Control
from kvproof.conformance.fuzz.machine import EngineMachine, machine_for
from kvproof.conformance.fuzz.repeatable import without_local_constants
from kvproof.conformance.fuzz.session import MakeJudge, Session, monitor
from kvproof.conformance.fuzz.shrink import (
    DEFAULT_REPLAYS,
    MISSED_REPLAYS,
    RELATED_REPLAYS,
    Shrunk,
    shrink,
)
from kvproof.conformance.fuzz.strategies import CPU, DISTURBANCES, Plan
from kvproof.conformance.fuzz.traits import Trait, steered
from kvproof.conformance.monitor.finding import MISSED, Finding, Signature

STEPS_PER_EXAMPLE = 40
"""Rules of one example; several of them are more than one move."""

_UNBOUNDED = 1 << 30


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


class Found(msgspec.Struct, frozen=True):
    """One distinct finding, shrunk.

    ``example`` is the number of the example that made it first, counted from 1; ``seconds`` is when
    that was, on the campaign's clock; ``replays`` is what shrinking took; ``files`` are the paths
    written.
    """

    finding: Finding
    history: History
    files: list[str]
    example: int
    seconds: float
    replays: int


class CampaignResult(msgspec.Struct, frozen=True):
    """The outcome. ``steps`` counts moves; ``seconds`` leaves out the first start and shrinking.

    ``found`` has the unsafe findings first, each class in the order in which they were made.
    ``allowed`` counts findings passed over, ``again`` those made before, ``engine`` those that the
    release's own scheduler meets in the same history; all by signature. ``passed`` has the first of
    each that was passed over or is the engine's, as it was played: neither shrunk nor written.
    """

    target: str
    seed: int
    examples: int
    steps: int
    events: int
    seconds: float
    found: list[Found]
    allowed: dict[str, int]
    again: dict[str, int]
    coverage: Coverage
    passed: list[Found]
    engine: dict[str, int] = {}


class _Over(BaseException):
    """Ends a campaign at once: Hypothesis lets it through, and neither shrinks nor replays."""


class _Ledger:
    """Counts of a campaign in progress, and its end when a budget is spent."""

    def __init__(
        self,
        max_examples: int | None,
        seconds: float | None,
        allow: Set[Signature],
        severity: str,
        stop_at: int | None,
        work_out: Callable[[Session, Finding, bool], Shrunk],
        write: Callable[[Shrunk], list[Path]],
        control: Control[Session],
        progress: Callable[[CampaignProgress], None] | None,
    ) -> None:
        # The clock starts with the end of the first example: an engine's first start takes long.
        self.started: float | None = None
        self.max_examples, self.seconds = max_examples, seconds
        self.stop_at, self.work_out, self.write = stop_at, work_out, write
        self.control = control
        self.allow, self.severity, self.progress = allow, severity, progress
        self.examples = self.steps = self.events = 0
        self.rules: Counter[str] = Counter(dict.fromkeys(RULES, 0))
        self.kinds: Counter[str] = Counter()
        self.reference: Counter[str] = Counter()
        self.allowed: Counter[str] = Counter()
        self.again: Counter[str] = Counter()
        self.seen: set[Signature] = set()
        self.found: list[Found] = []
        self.passed: list[Found] = []

    def ended(self, machine: EngineMachine) -> None:
        """Take one example's counts; raises ``_Over`` when it was the last one."""
        session = machine.running
        if self.started is None:
            self.started = time.monotonic()
        self.examples += 1
        self.steps += len(session.moves)
        self.events += len(session.events)
        self.rules.update(machine.uses)
        self.kinds.update(type(event).__name__ for event in session.events)
        self.reference.update(session.coverage())
        for finding in session.findings(self.severity):
            self._take(session, finding)
        self.report("fuzzing")
        spent = (
            (self.stop_at is not None and len(self.found) >= self.stop_at)
            or (self.max_examples is not None and self.examples >= self.max_examples)
            or (self.seconds is not None and self.elapsed() >= self.seconds)
        )
        if spent:
            raise _Over

    def _take(self, session: Session, finding: Finding) -> None:
        """A finding: passed over, counted, or new."""
        signature = finding.signature()
        name = str(signature)
        if any(known.covers(signature) for known in self.allow):
            if name not in self.allowed:
                self._pass(session.history(), finding)
            self.allowed[name] += 1
            return
        seconds = round(self.elapsed(), 3)
        known_before = signature in self.control.shown
        if self.control.takes(session, finding, self.examples, seconds):
            if signature in self.control.shown and not known_before:
                self._pass(session.history(), finding)
            return
        if signature in self.seen:
            self.again[name] += 1
            return
        began = time.monotonic()
        self.report("shrinking")
        shrunk = self.work_out(session, finding, self._related(finding))
        self._found(shrunk, self.examples, seconds)
        assert self.started is not None
        self.started += time.monotonic() - began

    def settle(self) -> None:
        """What the engine was not shown to be to blame for counts."""
        for suspect in list(self.control.suspects.values()):
            self.report("shrinking")
            session, finding = suspect.run, suspect.finding
            shrunk = self.work_out(session, finding, self._related(finding))
            if self.control.settle(suspect, shrunk.history, shrunk.finding):
                self._pass(session.history(), finding)
                continue
            self._found(shrunk, suspect.example, suspect.seconds)
            if suspect.times > 1:
                self.again[str(finding.signature())] = suspect.times - 1

    def _found(self, shrunk: Shrunk, example: int, seconds: float) -> None:
        self.seen.add(shrunk.finding.signature())
        files = [str(path) for path in self.write(shrunk)]
        self.found.append(
            Found(shrunk.finding, shrunk.history, files, example, seconds, shrunk.replays)
        )

    def _pass(self, history: History, finding: Finding) -> None:
        """Keep the first of what is passed over."""
        seconds = round(self.elapsed(), 3)
        self.passed.append(Found(finding, history, [], self.examples, seconds, 0))

    def _related(self, finding: Finding) -> bool:
        """Whether another kind of the same fault was found before."""
        ours = finding.id, finding.action
        return any((one.finding.id, one.finding.action) == ours for one in self.found)

    def elapsed(self) -> float:
        """Seconds since the first example ended, shrinking not counted."""
        return 0.0 if self.started is None else time.monotonic() - self.started

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


RULES = ("add", "step", "steps", "finishing_steps", "drain", *DISTURBANCES)


def run(
    target: Target,
    *,
    seed: int,
    seconds: float | None,
    max_examples: int | None,
    out: Path,
    allow: Set[Signature] = frozenset(),
    avoid: Sequence[Sequence[Trait]] = (),
    severity: str = MISSED,
    progress: Callable[[CampaignProgress], None] | None = None,
    make_judge: MakeJudge = monitor,
    max_replays: int = DEFAULT_REPLAYS,
    stop_at: int | None = None,
    behind: Mapping[str, str] = CPU,
    plain: Target | None = None,
) -> CampaignResult:
    """Fuzz ``target`` until the budget is spent, or ``stop_at`` distinct findings are made.

    Args:
        target: whom to fuzz.
        seed: decides what is drawn.
        seconds: stop generating after this long; None for no limit. Shrinking comes on top.
        max_examples: stop after this many examples; None for no limit.
        out: folder for the files of each finding.
        allow: signatures of known findings, each of which covers all that are more specific; they
            end their example, not the campaign.
        avoid: for each fault that is to stay away, the traits that it needs; most examples lack one
            of them.
        severity: "missed" takes all findings, "unsafe" only those that end a run.
        progress: told where the campaign stands, after each example.
        make_judge: builds the judge of a run; the reference machine unless a test says otherwise.
        max_replays: the bound on replays of shrinking, for each unsafe finding; one of class
            *missed* is never given more than ``MISSED_REPLAYS``, or than ``RELATED_REPLAYS`` when
            another kind of it was found before.
        stop_at: stop after this many distinct findings; None for all that the budget allows.
        behind: fields that all drawn setups have: their tier, their device, a planted fault.
        plain: the release with its own scheduler, when ``target`` has another one in its place:
            what the engine does wrong around both is no finding.

    Raises:
        ValueError: neither ``seconds`` nor ``max_examples`` bounds the campaign.
    """
    if seconds is None and max_examples is None:
        raise ValueError("a campaign needs a bound: seconds, max_examples, or both")

    def work_out(session: Session, finding: Finding, related: bool) -> Shrunk:
        bound = max_replays
        if finding.severity == MISSED:
            bound = min(bound, RELATED_REPLAYS if related else MISSED_REPLAYS)
        return shrink(target, session, finding=finding, make_judge=make_judge, max_replays=bound)

    def write(shrunk: Shrunk) -> list[Path]:
        return outputs.write(out, target, shrunk.history, make_judge, shrunk.finding.signature())

    control: Control[Session] = Control(plain, make_judge)
    ledger = _Ledger(
        max_examples, seconds, allow, severity, stop_at, work_out, write, control, progress
    )
    _generate(target, seed, steered(target, avoid, behind), make_judge, ledger)
    ledger.settle()
    return CampaignResult(
        target=target.name,
        seed=seed,
        examples=ledger.examples,
        steps=ledger.steps,
        events=ledger.events,
        seconds=round(ledger.elapsed(), 3),
        found=sorted(ledger.found, key=lambda found: found.finding.severity == MISSED),
        allowed=dict(sorted(ledger.allowed.items())),
        again=dict(sorted(ledger.again.items())),
        coverage=ledger.coverage(),
        passed=ledger.passed,
        engine={str(signature): count for signature, count in sorted(control.shown.items())},
    )


def _generate(
    target: Target,
    number: int,
    plans: SearchStrategy[Plan],
    make_judge: MakeJudge,
    ledger: _Ledger,
) -> None:
    machine = seed(number)(machine_for(target, make_judge, ledger.ended, plans))
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
    with suppress(_Over), without_local_constants(), patient_collector():
        run_state_machine_as_test(machine, settings=chosen)
