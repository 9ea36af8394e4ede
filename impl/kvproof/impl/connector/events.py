"""What entered and left the tier, told to vLLM; across a reset, too (E5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from vllm.distributed.kv_transfer.kv_connector.v1.offloading.events import (
    OffloadingEventsTracker,
)
from vllm.v1.kv_offload.base import OffloadingEvent, OffloadingKVEventsConfig

from kvproof.impl.scheduler.geometry import Group
from kvproof.impl.scheduler.views import Key


class EventStream:
    """The stock translation of events, which a reset does not leave with keys that are gone.

    The keys that were announced are remembered only while events are switched on.

    Args:
        config: what is told at all.
        layouts: the stock description of each group, by its number; of events that describe
            themselves.

    Attributes:
        describes: whether events are to carry the tokens of full attention's chunks.
    """

    def __init__(self, config: OffloadingKVEventsConfig, layouts: dict[int, Any]) -> None:
        self._enabled = config.enable_kv_cache_events
        self._tracker = OffloadingEventsTracker(config)
        self._layouts = layouts
        self.describes = self._tracker.self_describing_enabled
        self._announced: dict[tuple[Any, Any, Any], set[bytes]] = {}
        self._waiting: list[Any] = []

    @property
    def waiting(self) -> bool:
        """Whether there is something to say that no step has brought about."""
        return bool(self._waiting)

    def take(self, events: Iterable[OffloadingEvent]) -> list[Any]:
        """Translate what the manager says, after what a reset left to say."""
        waiting, self._waiting = self._waiting, []
        return [*waiting, *self._tracker.take_events(self._noted(events))]

    def reset(self, events: Iterable[OffloadingEvent]) -> None:
        """The tier was emptied; ``events`` are what it had to say before."""
        if self._enabled:
            told = list(self._noted(events))
            for (medium, locality, ownership), keys in self._announced.items():
                if keys:
                    told.append(OffloadingEvent(list(keys), medium, True, locality, ownership))
            self._waiting += self._tracker.take_events(told)
        self._announced.clear()
        self._tracker.reset()

    def stored(self, request: Any, group: Group, keys: Sequence[tuple[Key, int]]) -> None:
        """Remember what to say of chunks that are being stored: (key, number of the chunk)."""
        for key, number in keys:
            self._tracker.record_store(request, self._layouts[group.index], number, key)

    def found(self, request: Any, group: Group, keys: Sequence[tuple[Key, int]]) -> None:
        """Remember what to say of chunks that are there, as far as it is not known."""
        for key, number in keys:
            self._tracker.record_lookup(request, self._layouts[group.index], number, key)

    def _noted(self, events: Iterable[OffloadingEvent]) -> Iterator[OffloadingEvent]:
        for event in events:
            if self._enabled:
                place = (event.medium, event.locality, event.ownership)
                known = self._announced.setdefault(place, set())
                if event.removed and known.isdisjoint(event.keys):
                    continue  # a tier that tells of a reset itself: ``reset`` has told already
                (known.difference_update if event.removed else known.update)(event.keys)
            yield event
