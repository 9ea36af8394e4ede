"""What entered and left the tier, told to vLLM; across a reset, too (E5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from vllm.distributed.kv_transfer.kv_connector.v1.offloading.events import (
    OffloadingEventsTracker,
)
from vllm.v1.kv_offload.base import OffloadingEvent, OffloadingKVEventsConfig


class EventStream:
    """The stock translation of events, which a reset does not leave with keys that are gone.

    The keys that were announced are remembered only while events are switched on.
    """

    def __init__(self, config: OffloadingKVEventsConfig) -> None:
        self._enabled = config.enable_kv_cache_events
        self._tracker = OffloadingEventsTracker(config)
        self._announced: dict[tuple[Any, Any, Any], set[bytes]] = {}
        self._waiting: list[OffloadingEvent] = []

    def take(self, events: Iterable[OffloadingEvent]) -> Iterator[Any]:
        """Translate what the manager says, after what a reset left to say."""
        waiting, self._waiting = self._waiting, []
        yield from self._tracker.take_events([*waiting, *self._noted(events)])

    def reset(self, events: Iterable[OffloadingEvent]) -> None:
        """The tier was emptied; ``events`` are what it had to say before."""
        if not self._enabled:
            return
        self._waiting += list(self._noted(events))
        for (medium, locality, ownership), keys in self._announced.items():
            if keys:
                self._waiting.append(OffloadingEvent(list(keys), medium, True, locality, ownership))
        self._announced.clear()

    def _noted(self, events: Iterable[OffloadingEvent]) -> Iterator[OffloadingEvent]:
        for event in events:
            if self._enabled:
                place = (event.medium, event.locality, event.ownership)
                known = self._announced.setdefault(place, set())
                (known.difference_update if event.removed else known.update)(event.keys)
            yield event
