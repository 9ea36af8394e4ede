"""The two lists of histories: those whose last move breaks a promise, and those that hold.

Each history is a function over a fresh scene; its name is its sentence.
"""

from __future__ import annotations

from collections.abc import Callable

from kvproof.model.contract import Content, Contract
from tests.model.scene import Scene

Move = tuple[Callable[..., None], *tuple[int, ...]]
"""What to call, and the parameters."""

Bad = Callable[[Scene], Move]
Good = Callable[[Scene], None]

BAD: dict[str, tuple[str, Bad]] = {}
"""Name -> (the id that the last move breaks, the history)."""

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


def behind_the_guards(reference: Contract, change: str, *row: int) -> None:
    """Change a field by hand, as no action would: ``change`` is ``"<field>.<method>"``.

    A conclusion follows from what was promised, so no history of moves breaks it. It is there for
    the day on which the proof does not speak of what runs; this makes such a day.
    """
    field, _, method = change.partition(".")
    getattr(getattr(reference, field), method)(*row)
