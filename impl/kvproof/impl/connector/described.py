"""Requests kept for events that describe themselves: what a chunk holds is read off its request."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kvproof.impl.connector.events import EventStream
from kvproof.impl.scheduler.geometry import Group, Kind
from kvproof.impl.scheduler.loads import PlannedLoad
from kvproof.impl.scheduler.plan import Plan
from kvproof.impl.scheduler.scheduler import OffloadScheduler
from kvproof.impl.scheduler.views import Key


class Described:
    """Keeps nothing unless such events are asked for."""

    def __init__(self, events: EventStream, groups: Sequence[Group]) -> None:
        self._events = events
        self._groups = {group.suffix: group for group in groups if group.kind is Kind.FULL}
        self._requests: dict[str, Any] = {}
        self._ended: list[str] = []

    def arrive(self, request: Any) -> None:
        """A request enters."""
        if self._events.describes:
            self._requests[request.request_id] = request

    def end(self, request_id: str) -> None:
        """A request ends; its last stores are planned in the next step."""
        if self._events.describes:
            self._ended.append(request_id)

    def found(self, request: Any, load: PlannedLoad | None) -> None:
        """A request loads chunks."""
        if load is not None and load.state.request is request:
            for group, keys in self._numbered(zip(load.keys, load.ends, strict=False)):
                self._events.found(request, group, keys)

    def stored(self, plan: Plan, scheduler: OffloadScheduler) -> None:
        """Chunks are being stored."""
        for number, transfer in plan.stores.items():
            job, request = scheduler.job(number), self._requests.get(transfer.request_id)
            if job is None or request is None:
                continue
            position = job.context.get_offload_key_position
            for group, keys in self._numbered((key, position(key)) for key in job.keys):
                self._events.stored(request, group, keys)
        for request_id in self._ended:
            self._requests.pop(request_id, None)
        self._ended.clear()

    def _numbered(
        self, keys: Iterable[tuple[Key, int]]
    ) -> Iterator[tuple[Group, list[tuple[Key, int]]]]:
        """Keys of full attention with the numbers of their chunks, by group."""
        found: defaultdict[bytes, list[tuple[Key, int]]] = defaultdict(list)
        for key, end in keys:
            group = self._groups.get(key[-4:])
            if group is not None:
                found[group.suffix].append((key, end // group.tokens_per_chunk - 1))
        for suffix, numbered in found.items():
            yield self._groups[suffix], numbered
