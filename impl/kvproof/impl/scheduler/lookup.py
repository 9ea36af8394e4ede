"""The greatest boundary that every group can be served at (E1), and whether waiting pays (L3).

Groups that need everything before a boundary are scanned from the left, once. The others need a
few chunks that end at it, so they are probed from the right, and only there: each lowers the
boundary to the next one that it can serve, until none objects. Every chunk is asked for at most
once a lookup.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Any

from kvproof.impl.scheduler.geometry import Geometry, Group, Kind
from kvproof.impl.scheduler.views import Found, Key

Ask = Callable[[Key, Any], Found]
"""A tier's lookup: key and request context to what it says."""

Coverage = dict[Key, int]
"""Keys that were stored without their first blocks -> how many are missing."""


@dataclass(frozen=True, slots=True)
class Answer:
    """``boundary`` tokens can be had, those on the GPU included; or more, after a wait."""

    boundary: int
    worth_waiting: bool = False


class Finder:
    """Answers lookups over one tier."""

    def __init__(self, geometry: Geometry, ask: Ask, coverage: Coverage) -> None:
        self._geometry = geometry
        self._ask = ask
        self._coverage = coverage

    def find(
        self,
        hashes: Sequence[bytes],
        context: Any,
        floor: int,
        limit: int,
        refused: Container[Key] = (),
    ) -> Answer:
        """The greatest boundary in [floor, limit].

        Args:
            hashes: the request's block hashes.
            context: what the tier knows the request by.
            floor: tokens that the GPU has.
            limit: the greatest boundary that is allowed.
            refused: keys that must not be loaded for this request (a load of them failed).
        """
        search = _Search(self, hashes, context, floor, refused)
        ready = maybe = limit
        for group in self._geometry.prefix:
            if maybe <= floor:
                break
            near, far = search.run(group, maybe)
            ready, maybe = min(ready, near), min(maybe, far)
        if maybe <= floor:
            return Answer(floor)
        maybe = search.settle(maybe, Found.RETRY)
        ready = search.settle(min(ready, maybe), Found.HIT)
        return Answer(max(ready, floor), worth_waiting=ready < maybe)

    def needed(
        self, hashes: Sequence[bytes], floor: int, boundary: int
    ) -> dict[Group, tuple[int, int]]:
        """The chunks [first, last) of each group that serve ``boundary``."""
        found = {}
        for group in self._geometry.groups:
            size = group.tokens_per_chunk
            if group.kind is Kind.RECURRENT:
                found[group] = (boundary // size - 1, boundary // size)
            else:
                low = max(floor, group.first_needed(boundary))
                found[group] = (
                    low // size,
                    -(-boundary // size) if low < boundary else low // size,
                )
        return found


class _Search:
    """One lookup: what was asked so far."""

    def __init__(
        self,
        finder: Finder,
        hashes: Sequence[bytes],
        context: Any,
        floor: int,
        refused: Container[Key],
    ) -> None:
        self._geometry = finder._geometry
        self._ask = finder._ask
        self._coverage = finder._coverage
        self._hashes = hashes
        self._context = context
        self._floor = floor
        self._refused = refused
        self._known: dict[tuple[int, int], Found] = {}

    def run(self, group: Group, limit: int) -> tuple[int, int]:
        """Ends, in tokens, of the leading run of readable chunks, and of those not absent."""
        size, per, suffix = group.tokens_per_chunk, group.hashes_per_chunk, group.suffix
        hashes, ask, context, refused = self._hashes, self._ask, self._context, self._refused
        start = self._floor // size
        # A drafter reads one chunk beyond the boundary, so one more must be there.
        stop = min(-(-limit // size) + group.draft, len(hashes) // per)
        hit, miss = Found.HIT, Found.MISS
        near = far = stop
        for chunk in range(start, stop):
            key = hashes[(chunk + 1) * per - 1] + suffix
            found = ask(key, context)
            if found is hit and not (refused and key in refused):
                continue
            if found is miss or key in refused:
                far = chunk
                break
            near = min(near, chunk)
        near = min(near, far)
        return (near - group.draft) * size, (far - group.draft) * size

    def settle(self, boundary: int, least: Found) -> int:
        """The greatest boundary up to ``boundary`` that no group objects to."""
        groups = self._geometry.suffix
        settled = False
        while not settled and boundary > self._floor:
            settled = True
            for group in groups:
                lower = self._lower(group, boundary, least)
                if lower < boundary:
                    boundary, settled = lower, False
        return max(boundary, self._floor)

    def _lower(self, group: Group, boundary: int, least: Found) -> int:
        """The greatest boundary up to ``boundary`` that one group can serve."""
        if group.kind is Kind.RECURRENT:
            return self._lower_state(group, boundary, least)
        size, floor = group.tokens_per_chunk, self._floor
        keyed = len(self._hashes) // group.hashes_per_chunk
        while boundary > floor:
            low = max(floor, group.first_needed(boundary))
            if low >= boundary:
                return boundary
            chunk = (boundary - 1) // size + group.draft
            first = low // size
            absent = keyed if chunk >= keyed else self._absent(group, first, chunk, low, least)
            if absent is None:
                return boundary
            below = (absent - group.draft) * size
            # An attention chunk's own start needs nothing before it.
            boundary = max(below, low) if group.kind is Kind.CHUNKED else below
        return boundary

    def _absent(self, group: Group, first: int, last: int, low: int, least: Found) -> int | None:
        """The last chunk in [first, last] that is not there, None when all are."""
        for chunk in range(last, first - 1, -1):
            found = self._status(group, chunk)
            if found < least:
                return chunk
            missing = self._coverage and self._coverage.get(self._key(group, chunk), 0)
            if missing:
                inside = low - chunk * group.tokens_per_chunk if chunk == first else 0
                if inside < missing * group.tokens_per_block:
                    return chunk
        return None

    def _lower_state(self, group: Group, boundary: int, least: Found) -> int:
        size = group.tokens_per_chunk
        boundary = boundary // size * size
        while boundary > self._floor:
            if self._status(group, boundary // size - 1) >= least:
                return boundary
            boundary -= size
        return boundary

    def _key(self, group: Group, chunk: int) -> Key:
        return self._hashes[(chunk + 1) * group.hashes_per_chunk - 1] + group.suffix

    def _status(self, group: Group, chunk: int) -> Found:
        place = (group.index, chunk)
        found = self._known.get(place)
        if found is None:
            key = self._key(group, chunk)
            found = Found.MISS if key in self._refused else self._ask(key, self._context)
            self._known[place] = found
        return found
