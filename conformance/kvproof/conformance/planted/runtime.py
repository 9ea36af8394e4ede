"""Faults at the boundary of the runtime: an edge that is missing, a word that is not true."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kvproof.impl.transfer.plan import CopyPlan
from kvproof.impl.transfer.runtime import Edge, Reads


class Through:
    """Any runtime, as it is."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class Without(Through):
    """Lacks one order between streams."""

    def __init__(self, inner: Any, edge: Edge) -> None:
        super().__init__(inner)
        self._edge = edge

    def order(self, stream: Any, event: Any, why: Edge) -> None:
        """Not for this reason."""
        if why is not self._edge:
            self._inner.order(stream, event, why)


class WaitsForNothing(Through):
    """A flush that comes back at once."""

    def wait(self, event: Any) -> None:
        """Not at all."""


class ToldEarly(Through):
    """Every copy is said to have ended as soon as somebody asks."""

    def done(self, event: Any) -> bool:
        """A lie."""
        return True


class ReadsAhead(Through):
    """Every copy may read its source before its turn."""

    def copy(self, stream: Any, plan: CopyPlan, reads: Reads) -> Any:
        """As early as can be."""
        return self._inner.copy(stream, plan, Reads.AT_ANY_TIME)


def without(edge: Edge) -> Callable[[Any], Any]:
    """Makes any runtime one that lacks an order."""
    return lambda inner: Without(inner, edge)
