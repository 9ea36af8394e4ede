"""The greatest boundary that every group can be served at (E1), and whether waiting pays (L3).

Groups that need everything before a boundary are scanned from the left, once. The others need a
few chunks that end at it, so they are probed from the right, and only there: each lowers the
boundary to the next one that it can serve, until none objects. Every chunk is asked for at most
once a lookup.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from kvproof.impl.scheduler.geometry import Geometry, Group, Kind
from kvproof.impl.scheduler.views import Found, Key, Tier

_FIRST_BATCH, _FIRST_DOWN = 32, 4
"""Keys that a closed tier is shown at first, of a prompt and of a window: few are hits at times."""

Coverage = dict[Key, int]
"""Keys that were stored without their first blocks -> how many are missing."""


@dataclass(frozen=True, slots=True)
class Answer:
    """``boundary`` tokens can be had, those on the GPU included; or more, after a wait.

    Attributes:
        boundary: see above.
        worth_waiting: see above.
        hits: for each group that needs everything, the chunk up to which all were hits.
        doubts: keys that were no hits, and what they were. While these are that, and no hit is
            lost, the answer stays right.
    """

    boundary: int
    worth_waiting: bool = False
    hits: Sequence[int] = ()
    doubts: Sequence[tuple[Key, Found]] = ()


class Finder:
    """Answers lookups over one tier."""

    def __init__(self, geometry: Geometry, tier: Tier, coverage: Coverage) -> None:
        self._geometry = geometry
        self._tier = tier
        self._coverage = coverage

    def find(
        self,
        hashes: Sequence[bytes],
        context: Any,
        floor: int,
        limit: int,
        refused: Collection[Key] = (),
        known: Sequence[int] = (),
    ) -> Answer:
        """The greatest boundary in [floor, limit].

        Args:
            hashes: the request's block hashes.
            context: what the tier knows the request by.
            floor: tokens that the GPU has.
            limit: the greatest boundary that is allowed.
            refused: keys that must not be loaded for this request (a load of them failed).
            known: ``hits`` of an earlier answer, with a floor no greater; nothing was lost since.
        """
        search = _Search(self, hashes, context, floor, refused)
        ready = maybe = limit
        for number, group in enumerate(self._geometry.prefix):
            if maybe <= floor:
                break
            near, far = search.run(group, maybe, known[number] if number < len(known) else 0)
            ready, maybe = min(ready, near), min(maybe, far)
        if maybe <= floor:
            return Answer(floor, False, search.hits, search.doubts)
        maybe = search.settle(maybe, Found.RETRY)
        ready = search.settle(min(ready, maybe), Found.HIT)
        return Answer(max(ready, floor), ready < maybe, search.hits, search.doubts)

    def needs_a_load(self, floor: int, boundary: int) -> bool:
        """Whether anything serves ``boundary``: a window of one token needs nothing."""
        if self._geometry.prefix:
            return True
        return any(first < last for first, last in self.needed(floor, boundary).values())

    def needed(self, floor: int, boundary: int) -> dict[Group, tuple[int, int]]:
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
    """One lookup: what was asked so far, and what of that the answer rests on."""

    def __init__(
        self,
        finder: Finder,
        hashes: Sequence[bytes],
        context: Any,
        floor: int,
        refused: Collection[Key],
    ) -> None:
        self._geometry = finder._geometry
        self._tier = finder._tier
        self._coverage = finder._coverage
        self._hashes = hashes
        self._context = context
        self._floor = floor
        self._refused = refused
        self._known: dict[tuple[int, int], Found] = {}
        # The last run of hits in each group that needs what ends at a boundary: [first, last].
        self._runs: dict[int, tuple[int, int]] = {}
        self.hits: list[int] = []
        self.doubts: list[tuple[Key, Found]] = []

    def run(self, group: Group, limit: int, known: int) -> tuple[int, int]:
        """Ends, in tokens, of the leading run of readable chunks, and of those not absent.

        All chunks from the floor to ``known`` are hits.
        """
        size, per, suffix = group.tokens_per_chunk, group.hashes_per_chunk, group.suffix
        hashes, context, refused = self._hashes, self._context, self._refused
        # A drafter reads one chunk beyond the boundary, so one more must be there.
        stop = min(-(-limit // size) + group.draft, len(hashes) // per)
        start = self._hits_ahead(group, min(stop, max(self._floor // size, known)), stop)
        near = far = stop
        for chunk in range(start, stop):
            key = hashes[(chunk + 1) * per - 1] + suffix
            found = Found.MISS if key in refused else self._tier.lookup(key, context)
            if found is Found.HIT:
                continue
            # What lies between the first that is no hit and the first miss decides nothing.
            if near == stop or found is Found.MISS:
                self.doubts.append((key, found))
                near = min(near, chunk)
            if found is Found.MISS:
                far = chunk
                break
        self.hits.append(near)
        return (near - group.draft) * size, (far - group.draft) * size

    def _hits_ahead(self, group: Group, start: int, stop: int) -> int:
        """The chunk up to which all from ``start`` on are hits, as far as nobody need be asked."""
        per, suffix, count = group.hashes_per_chunk, group.suffix, _FIRST_BATCH
        while start < stop and not self._refused:
            # Small at first, since most prompts are not there at all.
            end = min(stop, start + count)
            keys = [h + suffix for h in self._hashes[(start + 1) * per - 1 : end * per : per]]
            ahead = self._tier.hits_ahead(keys)
            start += ahead
            if ahead < len(keys):
                break
            count *= 4
        return start

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
        for chunk in range(self._hits_down(group, first, last), first - 1, -1):
            found = self._status(group, chunk)
            if found < least:
                return chunk
            missing = self._coverage and self._coverage.get(self._key(group, chunk), 0)
            # What a drafter's chunk only counts together with is not read.
            if missing and chunk <= last - group.draft:
                inside = low - chunk * group.tokens_per_chunk if chunk == first else 0
                if inside < missing * group.tokens_per_block:
                    return chunk
        return None

    def _hits_down(self, group: Group, first: int, last: int) -> int:
        """The chunk down to which all from ``last`` are hits, as far as nobody need be asked."""
        if self._coverage or self._refused or not self._tier.closed:
            return last
        low, high = self._runs.get(group.index, (0, -1))
        start = low - 1 if low <= last <= high else last
        high = high if start < last else last
        count = _FIRST_DOWN
        while start >= first:
            end = max(first, start - count + 1)
            ahead = self._tier.hits_ahead([self._key(group, c) for c in range(start, end - 1, -1)])
            start -= ahead
            if start >= end:
                break
            count *= 4
        self._runs[group.index] = (start + 1, high)
        return start

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
            found = Found.MISS if key in self._refused else self._tier.lookup(key, self._context)
            self._known[place] = found
            if found is not Found.HIT:
                self.doubts.append((key, found))
        return found
