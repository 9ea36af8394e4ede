"""Whose fault it is that an engine goes wrong around somebody else's scheduler.

A fault of which the contract says that the engine is to blame can be tried: the same setup and
moves, with the release's own scheduler. If the engine goes wrong there in the same way, it does so
whoever its scheduler is.
"""

from __future__ import annotations

from kvproof.conformance.engines.base import History, Target, Unsupported
from kvproof.conformance.fuzz.session import MakeJudge, monitor, play
from kvproof.conformance.monitor.finding import Finding


class Control:
    """Plays histories on a release as it is.

    Args:
        plain: that release; None when it is the one that is judged, so that every finding counts.
        make_judge: builds the judge of a run.
    """

    def __init__(self, plain: Target | None, make_judge: MakeJudge = monitor) -> None:
        self._plain = plain
        self._make_judge = make_judge

    def shows(self, history: History, finding: Finding) -> bool:
        """Whether the release breaks the same promise of the engine's in this history."""
        if self._plain is None or finding.culprit != "engine":
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
