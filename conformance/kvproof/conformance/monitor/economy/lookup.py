"""What a lookup can be answered: the greatest boundary, now and once what is being stored is."""

from __future__ import annotations

from kvproof.conformance.monitor.economy.geometry import Geometry
from kvproof.conformance.monitor.world import World
from kvproof.model import functions
from kvproof.model.contract import Request, Residency
from kvproof.model.functions import ABSENT, FULL, PENDING, READY, RECURRENT


class Lookup:
    """A request's question, over the tier as it stands: use it at once, and throw it away.

    Attributes:
        floor: tokens that are on the GPU already.
        limit: the greatest boundary that may be answered: the last token is always computed, and
            the client's caps hold.
    """

    def __init__(self, world: World, r: Request, geometry: Geometry | None = None) -> None:
        self._world = world
        self._r = r
        self._geometry = geometry or Geometry.of(world.header)
        known = len(world.marks[r]) - 1
        self.floor = world.asked_from.get(r, 0)
        self.limit = max(self.floor, min(known - 1, self.floor + world.limits[r].to_load(known)))
        self._residencies: dict[tuple[int, int], Residency | None] = {}
        self._statuses: dict[tuple[int, int], int] = {}

    def residency(self, group: int, chunk: int) -> Residency | None:
        """Where a chunk of the request's own content lies; None when it does not."""
        found = (group, chunk)
        if found not in self._residencies:
            self._residencies[found] = self._find(group, chunk)
        return self._residencies[found]

    def _find(self, group: int, chunk: int) -> Residency | None:
        marks = self._world.marks[self._r]
        end = (chunk + 1) * self._geometry.groups[group].tokens_per_chunk
        # Others may have the same tokens hashed; what counts is what the engine shows of this one.
        if end > min(len(marks) - 1, self._world.hashed.get(self._r, 0)):
            return None
        key = self._world.key_of(marks[end], group)
        return None if key is None else self._world.reference.where.get(key)

    def status(self, group: int, block: int) -> int:
        """Whether a block of the request is absent from the tier, being stored, or readable.

        A recurrent group's chunk has a key for the state at its end alone. In a drafter's group a
        chunk counts only together with the one after it. What failed to load is not tried again.
        """
        found = (group, block)
        if found not in self._statuses:
            sizes = self._geometry.groups[group]
            status = self._piece(group, block)
            if sizes.draft and status != ABSENT:
                status = min(status, self._piece(group, block + sizes.blocks_per_chunk))
            self._statuses[found] = status
        return self._statuses[found]

    def _piece(self, group: int, block: int) -> int:
        sizes = self._geometry.groups[group]
        chunk, offset = functions.place_of(block, sizes.blocks_per_chunk)
        if sizes.kind == RECURRENT and offset != sizes.blocks_per_chunk - 1:
            return ABSENT
        x = self.residency(group, chunk)
        reference = self._world.reference
        if x is None or self._world.place(x, offset) not in reference.cover:
            return ABSENT
        if (self._r, x) in reference.spoiled:
            return ABSENT
        return READY if x in reference.ready else PENDING

    def greatest(self, at_least: int) -> int:
        """The greatest boundary that every group serves from what is ``at_least`` so."""
        order = self._geometry.order

        def of_group(number: int, limit: int) -> int:
            group = order[number]
            sizes = self._geometry.groups[group]

            def status(block: int) -> int:
                return self.status(group, block)

            if sizes.kind == FULL:
                limit = min(limit, self._prefix(group, limit, at_least))
            return functions.greatest_served(
                sizes.kind,
                sizes.window,
                sizes.tokens_per_block,
                status,
                self.floor,
                limit,
                at_least,
            )

        return functions.greatest_boundary(len(order), of_group, self.floor, self.limit)

    def _prefix(self, group: int, limit: int, at_least: int) -> int:
        """The end of the run of blocks from the floor on: a bound that saves a search."""
        size = self._geometry.groups[group].tokens_per_block

        def status(block: int) -> int:
            found = self.status(group, block)
            return found if found >= at_least else ABSENT

        first = self.floor // size
        hits, _ = functions.prefix_hits(status, first, -(-limit // size))
        return max(self.floor, (first + hits) * size)

    def serving(self, boundary: int) -> list[Residency]:
        """The residencies that a load up to ``boundary`` reads."""
        found = []
        for group, sizes in enumerate(self._geometry.groups):
            for chunk in sizes.needed(boundary, self.floor) if boundary > self.floor else ():
                x = self.residency(group, chunk)
                if x is not None:
                    found.append(x)
        return found


def prospects(world: World, r: Request) -> tuple[int, int]:
    """The greatest boundary now, and the greatest once everything under way is stored.

    Both count all tokens from the start, those on the GPU included.
    """
    lookup = Lookup(world, r)
    return lookup.greatest(READY), lookup.greatest(PENDING)


def moving(world: World, r: Request, boundary: int) -> bool:
    """Whether a key that serves the boundary is on its way to the GPU for another request."""
    reference = world.reference
    return any(
        reference.job_request[j] != r
        for x in Lookup(world, r).serving(boundary)
        for _, j in reference.pinned.match(x, None)
    )
