"""A job of the engine, from its submission until its end is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic

from kvproof.impl.transfer.layout import Layout
from kvproof.impl.transfer.order import LastTouch
from kvproof.impl.transfer.pieces import Pieces
from kvproof.impl.transfer.plan import CopyPlan
from kvproof.impl.transfer.runtime import Edge, EventT, StreamT, TransferError


@dataclass(frozen=True, slots=True)
class Ended:
    """How a job ended: the bytes that it moved and the seconds that this took.

    ``error`` says why it failed, in one line; None when it did not. ``seconds`` is None where the
    device could not tell.
    """

    job: int
    size: int
    seconds: float | None
    error: str | None = None


@dataclass(slots=True)
class Job(Generic[EventT]):
    """A job whose end has not been told."""

    number: int
    size: int = 0
    start: EventT | None = None
    end: EventT | None = None
    held: Any = None
    ended: bool = False
    error: str | None = None


@dataclass(slots=True)
class Direction(Generic[StreamT, EventT]):
    """Stores or loads; ``jobs`` has those under way, by their place in the order of submission."""

    stream: StreamT
    plan: Callable[[Layout, list[Pieces]], CopyPlan]
    touched: LastTouch
    after_compute: Edge
    after_slot: Edge
    after_block: Edge
    jobs: dict[int, Job[EventT]]


def said(error: Exception) -> str:
    """One line; what is no error of ours says its kind."""
    text = str(error).partition("\n")[0]
    return text if isinstance(error, TransferError) else f"{type(error).__name__}: {text}"


def quietly(call: Callable[..., Any], *arguments: Any) -> Any:
    """The call's answer, or None where it fails: nothing depends on it."""
    try:
        return call(*arguments)
    except Exception:
        return None
