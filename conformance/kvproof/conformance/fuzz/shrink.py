"""Making a failing history small, by replaying smaller ones.

A history replays in milliseconds, so candidates are simply tried: fewer moves first, then shorter
prompts and plainer steps, then a plainer setup, round after round until a whole round changes
nothing. A candidate is kept when it breaks the same obligation in the same place (the finding's
signature) and costs less than what it replaces. The number of replays is bounded, not the time, so
that the result depends on the history alone. A finding that ends no run (of class *missed*) is
shrunk like any other: the run is cut where it shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from kvproof.conformance.engines.base import (
    Abort,
    Add,
    Extend,
    History,
    Move,
    Target,
    Unsupported,
)
from kvproof.conformance.fuzz import simpler
from kvproof.conformance.fuzz.session import MakeJudge, Session, monitor, play
from kvproof.conformance.monitor.finding import Finding

DEFAULT_REPLAYS = 1500
"""The bound for a finding that ends a run."""
MISSED_REPLAYS = 250
"""The bound for one that does not: there are many, and a longer history explains them as well."""
RELATED_REPLAYS = 60
"""The bound for one that does not, when another kind of the same has been shrunk before."""


class Shrunk(msgspec.Struct, frozen=True):
    """The smallest history found and its finding; ``replays`` is what it took.

    ``complete`` says that no single simplification helps any more; else the bound was hit.
    """

    history: History
    finding: Finding
    replays: int
    complete: bool


class _Spent(Exception):
    """The bound on replays is reached."""


class _Search:
    def __init__(
        self,
        target: Target,
        history: History,
        finding: Finding,
        make_judge: MakeJudge,
        max_replays: int,
    ) -> None:
        self.target, self.make_judge, self.max_replays = target, make_judge, max_replays
        self.best, self.finding = history, finding
        self.signature = finding.signature()
        self.replays = 0
        self.seen: set[History] = set()

    def accept(self, candidate: History) -> bool:
        """Try a candidate; it becomes the best when it costs less and fails in the same way."""
        if simpler.cost(candidate) >= simpler.cost(self.best) or candidate in self.seen:
            return False
        self.seen.add(candidate)
        if self.target.supports(candidate.setup) is not None:
            return False
        if self.replays >= self.max_replays:
            raise _Spent
        self.replays += 1
        try:
            return self._keep(self._play(candidate))
        except Unsupported:
            return False

    def _play(self, candidate: History) -> Session:
        return play(
            self.target, candidate.setup, candidate.moves, self.make_judge, until=self.signature
        )

    def _keep(self, session: Session) -> bool:
        """Whether the run fails in the same way: then it is the best one now."""
        finding = session.broken(self.signature)
        if finding is None:
            return False
        # Moves that were not taken, or that come after the finding, are gone for free.
        self.best, self.finding = session.history(), finding
        return True

    def accept_moves(self, moves: Iterable[Move]) -> bool:
        return self.accept(msgspec.structs.replace(self.best, moves=tuple(moves)))

    def drop_moves(self) -> bool:
        """Delta debugging: remove runs of moves, long ones first. True when any went."""
        changed = False
        length = max(1, len(self.best.moves) // 2)
        while True:
            start = 0
            while start < len(self.best.moves):
                moves = self.best.moves
                if self.accept_moves(moves[:start] + moves[start + length :]):
                    changed = True
                else:
                    start += length
            if length == 1:
                return changed
            length //= 2

    def drop_requests(self) -> bool:
        """Remove a request with everything that names it."""
        changed = False
        for req in sorted({move.req for move in self.best.moves if isinstance(move, Add)}):
            changed |= self.accept_moves(
                move
                for move in self.best.moves
                if not (isinstance(move, Add | Extend | Abort) and move.req == req)
            )
        return changed

    def prefill_instead(self) -> bool:
        """Steps that only generate tokens go when the prompt brings these tokens instead."""
        changed = False
        index = 0
        while index < len(self.best.moves):
            if isinstance(self.best.moves[index], Add):
                for candidate in simpler.prefilled(self.best.moves, index):
                    if self.accept_moves(candidate):
                        changed = True
                        break
            index += 1
        return changed

    def plainer_moves(self) -> bool:
        changed = False
        index = 0
        while index < len(self.best.moves):
            for candidate in simpler.moves(self.best.moves[index]):
                moves = self.best.moves
                if self.accept_moves((*moves[:index], candidate, *moves[index + 1 :])):
                    changed = True
                    break
            else:
                index += 1
                continue
            # The same move may get plainer still; when the history lost moves, go on behind them.
            index = min(index, len(self.best.moves))
        return changed

    def shorter_prompts(self) -> bool:
        """Cut all prompts to a common length, or drop the same position from each."""
        changed = False
        for candidate in simpler.common_cuts(self.best.moves):
            changed |= self.accept_moves(candidate)
        return changed

    def plainer_setup(self) -> bool:
        changed = False
        progress = True
        while progress:
            progress = False
            for setup in simpler.setups(self.best.setup):
                if self.accept(msgspec.structs.replace(self.best, setup=setup)):
                    changed = progress = True
                    break
        return changed

    def rename(self) -> None:
        """Call the requests a, b, c in order of arrival, when that keeps the finding."""
        names: dict[str, str] = {}
        for move in self.best.moves:
            if isinstance(move, Add):
                names.setdefault(move.req, chr(ord("a") + len(names) % 26) * (len(names) // 26 + 1))
        moves = tuple(
            msgspec.structs.replace(move, req=names.get(move.req, move.req))
            if isinstance(move, Add | Extend | Abort)
            else move
            for move in self.best.moves
        )
        self._keep(self._play(msgspec.structs.replace(self.best, moves=moves)))


def shrink(
    target: Target,
    session: Session,
    *,
    finding: Finding | None = None,
    make_judge: MakeJudge = monitor,
    max_replays: int = DEFAULT_REPLAYS,
) -> Shrunk:
    """The smallest history with the same finding that ``max_replays`` replays lead to.

    ``finding`` is one of the session's; by default the one that ended it.

    Raises:
        ValueError: the session has no finding.
    """
    chosen = finding or session.finding
    if chosen is None:
        raise ValueError("nothing to shrink: the session has no finding")
    # What the run did after the finding has no part in it.
    moves = tuple(session.moves[: session.owners[chosen.index] + 1])
    history = msgspec.structs.replace(session.history(), moves=moves)
    search = _Search(target, history, chosen, make_judge, max_replays)
    passes: tuple[Callable[[], bool], ...] = (
        search.drop_moves,
        search.drop_requests,
        search.prefill_instead,
        search.plainer_setup,
        search.shorter_prompts,
        search.plainer_moves,
    )
    complete = False
    try:
        while not complete:
            # A list: every pass gets its turn, also after one that changed something.
            complete = not any([attempt() for attempt in passes])  # noqa: C419
    except _Spent:
        pass
    search.rename()
    return Shrunk(search.best, search.finding, search.replays, complete)
