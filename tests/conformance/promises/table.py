"""The two lists of histories: those whose last move breaks a promise, and those that hold.

Each history is a function over a fresh scene; its name is its sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kvproof.conformance.mutation import histories
from kvproof.model.contract import Content
from tests.model.scene import Scene

Move = tuple[Callable[..., None], *tuple[int, ...]]
"""What to call, and the parameters."""

Bad = Callable[[Scene], Move]
Good = Callable[[Scene], None]

BAD: dict[str, tuple[str, Bad]] = {}
"""Name -> (the id that the last move breaks, as a play of the corpus has it; the history)."""

GOOD: dict[str, Good] = {}
"""Name -> the history."""

D = Content(8)
"""A content that no key of the scene names."""


def breaks(id: str) -> Callable[[Bad], Bad]:
    """All moves of the history hold but the one that it returns, which breaks ``id``."""

    def register(history: Bad) -> Bad:
        assert history.__name__ not in BAD
        BAD[history.__name__] = (id, history)
        return history

    return register


def holds(history: Good) -> Good:
    """All moves of the history hold."""
    assert history.__name__ not in GOOD
    GOOD[history.__name__] = history
    return history


def concludes(id: str, *changes: tuple[str, *tuple[int, ...]]) -> Callable[[Bad], Bad]:
    """The last move breaks nothing, until a field that ``id`` is concluded from is changed by hand.

    Makes one history for each change.
    """

    def register(history: Bad) -> Bad:
        for change, *row in changes:

            def altered(s: Scene, change: str = change, row: Sequence[int] = tuple(row)) -> Move:
                move = history(s)
                histories.alter(s.reference, change, *row)
                return move

            name = f"{history.__name__}, {change}{tuple(row)}"
            assert name not in BAD
            BAD[name] = (f"conclude {id}", altered)
        GOOD[history.__name__] = lambda s: made(history(s))
        return history

    return register


def by_hand(id: str, change: str, *row: int) -> Callable[[Bad], Bad]:
    """Like ``breaks``, once a field is changed by hand: no history of moves comes there."""

    def register(history: Bad) -> Bad:
        def altered(s: Scene) -> Move:
            move = history(s)
            histories.alter(s.reference, change, *row)
            return move

        BAD[history.__name__] = (id, altered)
        return history

    return register


def made(move: Move) -> None:
    """Make the move."""
    call, *params = move
    call(*params)
