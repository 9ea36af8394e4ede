"""Whose fault it is that an engine goes wrong around somebody else's scheduler.

A fault of which the contract says that the engine is to blame can be tried: the same setup and
moves, with the release's own scheduler. If the engine goes wrong there in the same way, it does so
whoever its scheduler is. Around its own scheduler it may be stopped earlier, by another fault, or
take another course; so what one history does not show, another one of the same signature may, or
the witness: a history that is kept for the fault, played on the very release that is in question.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from kvproof.conformance.engines.base import History, Target, Unsupported
from kvproof.conformance.fuzz.replay import load
from kvproof.conformance.fuzz.session import MakeJudge, monitor, play
from kvproof.conformance.monitor.finding import Finding, Signature


class Played(Protocol):
    """A run that can be told as a history."""

    def history(self) -> History:
        """What was played, replayable."""
        ...


Run = TypeVar("Run", bound=Played)


@dataclass
class Suspect(Generic[Run]):
    """Findings of one signature that nothing has shown to be the engine's own yet.

    ``run`` and ``finding`` are the first one's, ``example`` and ``seconds`` say when that was.
    """

    finding: Finding
    run: Run
    example: int
    seconds: float
    times: int = 0


WITNESSES = Path(__file__).parent / "witnesses"
"""``ID.history.json``: a history in which engines break this promise, if they do at all."""


class Control(Generic[Run]):
    """Plays histories on a release as it is.

    Args:
        plain: that release; None when it is the one that is judged, so that every finding counts.
        make_judge: builds the judge of a run.

    Attributes:
        shown: how often the engine's own faults were met, by signature.
        suspects: what the engine is said to be to blame for, and was not shown to be.
    """

    def __init__(self, plain: Target | None, make_judge: MakeJudge = monitor) -> None:
        self.shown: Counter[Signature] = Counter()
        self.suspects: dict[Signature, Suspect[Run]] = {}
        self._plain = plain
        self._make_judge = make_judge
        self._witnessed: dict[str, bool] = {}

    def takes(self, run: Run, finding: Finding, example: int, seconds: float) -> bool:
        """Whether it is not yet, or not at all, for a scheduler to answer for a finding.

        Args:
            run: where it was met.
            finding: it.
            example: the number of the run.
            seconds: when that was.
        """
        if self._plain is None or finding.culprit != "engine":
            return False
        signature = finding.signature()
        known = signature in self.shown or self.shows(run.history(), finding)
        if not known and not self._is_witnessed(finding):
            new = Suspect(finding, run, example, seconds)
            self.suspects.setdefault(signature, new).times += 1
            return True
        self.shown[signature] += 1
        self._clear(signature)
        return True

    def _is_witnessed(self, finding: Finding) -> bool:
        """Whether the release breaks the same promise in the history that is kept for it."""
        if finding.id not in self._witnessed:
            path = WITNESSES / f"{finding.id}.history.json"
            self._witnessed[finding.id] = path.exists() and self.shows(load(path), finding)
        return self._witnessed[finding.id]

    def settle(self, suspect: Suspect[Run], history: History, finding: Finding) -> bool:
        """Whether a history that was made from a suspect's shows that it is the engine's own."""
        shown = self.shows(history, finding)
        if shown:
            self._clear(suspect.finding.signature())
        return shown

    def _clear(self, signature: Signature) -> None:
        suspect = self.suspects.pop(signature, None)
        if suspect is not None:
            self.shown[signature] += suspect.times

    def shows(self, history: History, finding: Finding) -> bool:
        """Whether the release breaks the same promise of the engine's in this history."""
        if self._plain is None:
            return False
        try:
            there = play(self._plain, history.setup, history.moves, self._make_judge).finding
        except Unsupported:
            return False
        return there is not None and (there.culprit, there.id, there.action) == (
            finding.culprit,
            finding.id,
            finding.action,
        )
