"""What happened before what: vector clocks of streams and of the calling thread."""

from __future__ import annotations

from collections.abc import Mapping


class Clock:
    """How much of each stream has ended, for certain: stream -> number of its operations."""

    def __init__(self, known: Mapping[int, int] | None = None) -> None:
        self._known = dict(known or {})

    def copy(self) -> Clock:
        """A clock of its own."""
        return Clock(self._known)

    def join(self, other: Clock) -> None:
        """Know what the other one knows, too."""
        for stream, count in other._known.items():
            if count > self._known.get(stream, 0):
                self._known[stream] = count

    def tick(self, stream: int, number: int) -> None:
        """Know that operation ``number`` of a stream, from 1, has ended."""
        self._known[stream] = number

    def knows(self, stream: int, number: int) -> bool:
        """Has this operation ended for certain?"""
        return self._known.get(stream, 0) >= number
