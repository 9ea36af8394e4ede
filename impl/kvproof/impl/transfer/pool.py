"""Events that are used again: a device makes them slowly, and has not too many of them."""

from __future__ import annotations

from typing import Any, Generic

from kvproof.impl.transfer.runtime import EventT, Runtime, TransferError


class EventPool(Generic[EventT]):
    """Hands out events and takes them back; as many are made as were ever out at once."""

    def __init__(self, runtime: Runtime[Any, EventT]) -> None:
        self._runtime = runtime
        self._free: list[EventT] = []

    def take(self) -> EventT:
        """An event that nobody uses.

        Raises:
            TransferError: the device has no more.
        """
        return self._free.pop() if self._free else self._runtime.event()

    def give(self, event: EventT) -> None:
        """Nobody uses this event any more."""
        self._free.append(event)

    def close(self) -> None:
        """Give those that are not out back to the device."""
        for event in self._free:
            try:
                self._runtime.destroy_event(event)
            except TransferError:
                continue
        self._free.clear()
