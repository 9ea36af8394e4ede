"""One run: an engine that plays moves, and a judge that is fed each event as it happens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from kvproof.conformance.engines.base import Engine, History, Move, Setup, Target
from kvproof.conformance.monitor.finding import MISSED, Finding, Signature
from kvproof.conformance.trace.events import AnyEvent, Arrive, Finish, Header


class Judge(Protocol):
    """What a run needs of the monitor; tests put simpler ones in its place.

    ``missed`` are the findings that end no run, the first of each signature.
    """

    missed: list[Finding]

    def feed(self, event: AnyEvent, /) -> Finding | None:
        """Judge one event; a finding that is returned ends the run."""
        ...

    def coverage(self) -> Mapping[str, int]:
        """How often each reference action and each guard was evaluated."""
        ...


MakeJudge = Callable[[Header], Judge]


def monitor(header: Header) -> Judge:
    """The judge of every campaign: the reference machine."""
    from kvproof.conformance.monitor.monitor import Monitor

    return Monitor(header)


class Session:
    """A run in progress.

    Attributes:
        moves: the moves that were taken.
        events: all events up to and including the one that broke an obligation.
        finding: the first broken obligation, after which nothing more is played.
        owners: for each event, the index of the move that caused it.
        live: how many requests have arrived and not ended.
    """

    def __init__(self, target: Target, setup: Setup, make_judge: MakeJudge = monitor) -> None:
        self.target = target
        self.setup = setup
        self.moves: list[Move] = []
        self.events: list[AnyEvent] = []
        self.owners: list[int] = []
        self.live = 0
        self.finding: Finding | None = None
        # An engine may emit while it is being built, before its header can be read.
        self._early: list[AnyEvent] = []
        self._judge: Judge | None = None
        self.engine: Engine = target.start(setup, self._emit)
        self._judge = make_judge(self.engine.header)
        for event in self._early:
            self._emit(event)

    def _emit(self, event: AnyEvent) -> None:
        if self._judge is None:
            self._early.append(event)
            return
        # An engine finishes its move after the finding; what it still says is not judged.
        if self.finding is not None:
            return
        self.events.append(event)
        self.owners.append(len(self.moves) - 1)
        self.live += isinstance(event, Arrive) - isinstance(event, Finish)
        self.finding = self._judge.feed(event)

    @property
    def missed(self) -> Sequence[Finding]:
        """What was wasted or lost so far: findings that end nothing."""
        return self._judge.missed if self._judge is not None else ()

    def findings(self, severity: str = MISSED) -> list[Finding]:
        """All findings so far, the one that ended the run first.

        ``severity`` "unsafe" leaves out those that end no run.
        """
        unsafe = [self.finding] if self.finding is not None else []
        return [*unsafe, *self.missed] if severity == MISSED else unsafe

    def broken(self, signature: Signature) -> Finding | None:
        """The finding with this signature, if the run has it by now."""
        return next((one for one in self.findings() if one.signature() == signature), None)

    @property
    def over(self) -> bool:
        """Nothing more can be learned from this run."""
        return self.finding is not None or self.engine.crashed

    def play(self, move: Move) -> bool:
        """Play one move; False when the run is over or the engine did not take the move."""
        if self.over:
            return False
        self.moves.append(move)
        taken = self.engine.play(move)
        if not taken and not self.over:
            self.moves.pop()
        return taken

    def coverage(self) -> Mapping[str, int]:
        """The judge's counts so far."""
        return self._judge.coverage() if self._judge is not None else {}

    def history(self) -> History:
        """What was played, replayable."""
        return History(target=self.target.name, setup=self.setup, moves=tuple(self.moves))

    def close(self) -> None:
        """Let go of the engine."""
        self.engine.close()


def play(
    target: Target,
    setup: Setup,
    moves: Iterable[Move],
    make_judge: MakeJudge = monitor,
    until: Signature | None = None,
) -> Session:
    """Play ``moves`` until they end or something breaks; the session comes back closed.

    A finding of signature ``until`` ends it too, also one that would end no run.

    Raises:
        Unsupported: the target cannot be set up so.
    """
    session = Session(target, setup, make_judge)
    try:
        for move in moves:
            if session.over:
                break
            session.play(move)
            if until is not None and session.broken(until) is not None:
                break
    finally:
        session.close()
    return session
