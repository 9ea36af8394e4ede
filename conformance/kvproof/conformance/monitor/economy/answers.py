"""What is answered: the greatest hit, now and by what ended requests have left."""

from __future__ import annotations

from collections.abc import Iterator

from kvproof.conformance.monitor.economy.geometry import Geometry
from kvproof.conformance.monitor.economy.lives import Life, Lives
from kvproof.conformance.monitor.economy.lookup import Lookup
from kvproof.conformance.monitor.lookup_readers import Move
from kvproof.conformance.monitor.world import World
from kvproof.conformance.trace import events as ev
from kvproof.model.contract import Content, Key, Request
from kvproof.model.functions import FULL, READY

_IN_FLIGHT = 2
"""Tokens that the workers may be ahead of an asynchronous scheduler."""


class Answers:
    """Judges E1, E2 and E4."""

    def __init__(self, world: World, geometry: Geometry, lives: Lives) -> None:
        self._world = world
        self._geometry = geometry
        self._lives = lives
        self._era = 0
        self._computed: dict[Content, Life] = {}
        drafts = any(group.draft for group in geometry.groups)
        self._extra = geometry.largest_chunk if drafts else 0

    def answer(self, event: ev.Answer) -> Iterator[Move]:
        """An answer, unless it is put off."""
        life = self._lives.get(event.req)
        if event.tokens is None or life is None:
            return
        lookup = self._lookup(life)
        reached = lookup.floor + event.tokens
        greatest = self._greatest(life.r, lookup)
        if not lookup.serving(greatest):
            # Nothing of the tier would be used: no hit to miss.
            greatest = lookup.floor
        yield "judge_answer", (life.r, reached, self._worth_it(lookup, greatest))
        boundary = self._worth_it(lookup, self._agreed(life.r, lookup))
        if boundary > lookup.floor:
            yield from self._judge_repeat(life.r, lookup, reached, boundary)

    def _lookup(self, life: Life) -> Lookup:
        lookup = Lookup(self._world, life.r, self._geometry)
        limit = lookup.limit
        if life.preempted and self._world.header.options.get("asynchronous"):
            limit -= _IN_FLIGHT
        if self._world.limits[life.r].max_load is not None:
            limit = self._aligned(limit)
        lookup.limit = max(limit, lookup.floor)
        return lookup

    def _greatest(self, r: Request, lookup: Lookup) -> int:
        """The greatest boundary that is served; under a cap, whole chunks are loaded."""
        greatest = lookup.greatest(READY)
        while self._world.limits[r].max_load is not None and self._aligned(greatest) < greatest:
            lookup.limit = max(self._aligned(greatest), lookup.floor)
            if (greatest := lookup.greatest(READY)) == lookup.floor:
                break
        return greatest

    def _aligned(self, boundary: int) -> int:
        """The last boundary up to this one at which all groups' chunks end."""
        return boundary // self._geometry.alignment * self._geometry.alignment

    def _worth_it(self, lookup: Lookup, boundary: int) -> int:
        """A load of less than a chunk is nobody's duty."""
        worth = boundary - lookup.floor >= self._geometry.largest_chunk
        return boundary if worth else lookup.floor

    # --- what ended requests have left ---

    def ended(self, life: Life) -> None:
        """A request has ended that was never disturbed: note where it can be followed."""
        self._forget_old()
        if not life.steady or life.era != self._lives.era or life.start is None:
            return
        alignment = self._geometry.alignment
        marks = self._world.marks[life.r]
        first = life.start[1] // alignment * alignment + alignment
        # A drafter needs one chunk more, and may yet have rewritten the last one.
        last = life.horizon - 2 * self._extra
        for boundary in range(first, last + 1, alignment):
            if self._could_be_left(life, boundary):
                self._computed[marks[boundary + self._extra]] = life

    def _could_be_left(self, life: Life, boundary: int) -> bool:
        """Whether the request had, at some time, what a start at the boundary needs of it."""
        interval = self._world.header.options.get("retention_interval")
        if isinstance(interval, int):
            prompt = self._world.limits[life.r].prompt - 1
            if boundary != prompt // self._geometry.alignment * self._geometry.alignment:
                return False
        return all(
            (group, number) in life.could
            for group, sizes in enumerate(self._geometry.groups)
            if sizes.kind != FULL
            for number in sizes.needed(boundary)
        )

    def _forget_old(self) -> None:
        if self._era != self._lives.era:
            self._era = self._lives.era
            self._computed.clear()

    def _agreed(self, r: Request, lookup: Lookup) -> int:
        """The greatest aligned boundary up to which an undisturbed request had the same tokens."""
        self._forget_old()
        if not self._computed:
            return lookup.floor
        marks, alignment = self._world.marks[r], self._geometry.alignment
        last = min(lookup.limit, self._world.hashed.get(r, 0) - self._extra)
        last = last // alignment * alignment
        for boundary in range(last, lookup.floor, -alignment):
            if marks[boundary + self._extra] in self._computed:
                return boundary
        return lookup.floor

    def _judge_repeat(
        self, r: Request, lookup: Lookup, reached: int, boundary: int
    ) -> Iterator[Move]:
        where, ready = self._world.reference.where, self._world.reference.ready
        keys = list(self._needed(r, lookup.floor, boundary))
        offered = {key: self._lives.offered[key] + (key in where) for key in keys}
        least = min(offered, key=lambda key: offered[key])
        yield "judge_need", (r, least, boundary, offered[least])
        if all(key in where and where[key] in ready for key in keys):
            yield "judge_repeat", (r, reached, boundary)

    def _needed(self, r: Request, floor: int, boundary: int) -> Iterator[Key]:
        """The keys that the boundary needs beyond what is on the GPU."""
        marks = self._world.marks[r]
        for group, sizes in enumerate(self._geometry.groups):
            chunks = sizes.needed(boundary, floor)
            for number in range(chunks.start, chunks.stop + sizes.draft):
                key = self._world.key_of(marks[(number + 1) * sizes.tokens_per_chunk], group)
                if key is not None:
                    yield key
