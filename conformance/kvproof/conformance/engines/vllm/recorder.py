"""The state that all taps of one run share: the step, the names of incarnations, the sink."""

from __future__ import annotations

from typing import Any

from kvproof.conformance.engines.base import Emit
from kvproof.conformance.trace.events import SCHEDULER_RANK, Hashed


class Recorder:
    """Numbers steps, names incarnations, and keeps what a raised exception needs for its place.

    Attributes:
        emit: where events go.
        step: the current scheduling window.
        latest: whom the connector or the tier was asked about last.
        fault: call and request of the innermost connector call that an exception passed through.
    """

    def __init__(self, emit: Emit) -> None:
        self.emit = emit
        self.step = 0
        self.fault: tuple[str, str | None] | None = None
        self._lives: dict[str, int] = {}
        self._current: dict[str, str] = {}
        # Requests and contexts are kept, so that no id() is used twice in a run.
        self._requests: dict[int, tuple[Any, str]] = {}
        self._contexts: dict[int, tuple[Any, str]] = {}
        self._hashed: dict[str, int] = {}
        self._asked = self._newest = ""
        self.latest = ""

    def forget(self) -> None:
        """Nobody that was named will be heard of again."""
        for table in (self._lives, self._current, self._requests, self._contexts, self._hashed):
            table.clear()

    def born(self, request: Any) -> str:
        """Name a new incarnation: ``<id>#<life>``, lives counted from 0."""
        identity = request.request_id
        life = self._lives.get(identity, -1) + 1
        self._lives[identity] = life
        name = f"{identity}#{life}"
        self._current[identity] = self._newest = name
        self._requests[id(request)] = (request, name)
        self._hashed[name] = 0
        return name

    def of_request(self, request: Any) -> str:
        """Incarnation of a request object."""
        return self._requests[id(request)][1]

    def of_id(self, identity: str) -> str:
        """The latest incarnation of a request id."""
        return self._current[identity]

    def asked(self, name: str) -> None:
        """The connector is being asked about ``name``; contexts without an id belong to it."""
        self._asked = self.latest = name

    def of_context(self, context: Any) -> str:
        """Incarnation that a tier call's request context belongs to, settled at first sight."""
        known = self._contexts.get(id(context))
        if known is None:
            identity = getattr(context, "req_id", None)
            # A scheduler may call a request otherwise when it announces it: that is the newest one.
            name = self._asked if identity is None else self._current.get(identity, self._newest)
            known = self._contexts[id(context)] = (context, name)
        self.latest = known[1]
        return known[1]

    def context(self, context: Any, name: str) -> None:
        """A request context belongs to ``name``, unless it was seen before."""
        self._contexts.setdefault(id(context), (context, name))

    def hashes(self, request: Any) -> None:
        """Emit the block hashes of ``request`` that became known since last time."""
        name = self.of_request(request)
        first = self._hashed[name]
        fresh = request.block_hashes[first:]
        if fresh:
            self._hashed[name] = first + len(fresh)
            self.emit(
                Hashed(self.step, SCHEDULER_RANK, name, first, [bytes(h).hex() for h in fresh])
            )

    def rehashed(self, request: Any, before: list[Any]) -> None:
        """Emit what differs from the hashes ``before``, which the engine took back in part."""
        now = request.block_hashes
        pairs = zip(before, now, strict=False)
        same = next((n for n, (old, new) in enumerate(pairs) if old != new), None)
        kept = min(len(before), len(now)) if same is None else same
        name = self.of_request(request)
        self._hashed[name] = min(self._hashed[name], kept)
        self.hashes(request)

    def blame(self, call: str, name: str | None) -> None:
        """Note the first connector call that the exception in flight came through."""
        if self.fault is None:
            self.fault = (call, name)
