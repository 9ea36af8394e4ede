"""What is said inside an action's body, and how it is collected."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kvproof.spec import ir
from kvproof.spec.expressions import Bool, SpecError

_said: list[ir.Statement] | None = None


@contextmanager
def collecting() -> Iterator[list[ir.Statement]]:
    """Collect the statements that are made meanwhile."""
    global _said
    _said = []
    try:
        yield _said
    finally:
        _said = None


def emit(statement: ir.Statement) -> None:
    """Make a statement.

    Raises:
        SpecError: outside an action's body.
    """
    if _said is None:
        raise SpecError("guards and updates belong into an action's body")
    _said.append(statement)


def assume(cond: Bool) -> None:
    """What the owner of this action promises; breaking it convicts the owner."""
    emit(ir.Guard("assume", "", cond.node))


def oblige(id: str, cond: Bool) -> None:
    """What the scheduler promises by invariant ``id``; breaking it convicts the scheduler."""
    emit(ir.Guard("oblige", id, cond.node))


def conclude(id: str, cond: Bool) -> None:
    """What follows from all promises kept so far: proved here, and checked on every history."""
    emit(ir.Guard("conclude", id, cond.node))
