"""What a broken guard is about: the request, job, lease and residency among its elements."""

from __future__ import annotations

from collections.abc import Mapping

from kvproof.conformance.monitor.world import World
from kvproof.conformance.trace import events as ev
from kvproof.model.contract import Job, Key, Lease, Piece, Place, Position, Request, Residency

Elements = Mapping[str, tuple[str, int]]
"""What a broken guard is about: (sort, element) by the name that the spec gives it."""


class About:
    """The request, job, lease and residency that a guard is about.

    What its quantifiers bound (the store that still reads a block, say) comes after the parameters
    of its action, and counts before them.
    """

    def __init__(self, world: World, event: ev.Event, elements: Elements) -> None:
        self.world = world
        found = {sort: value for sort, value in elements.values() if value >= 0}
        reference = world.reference
        self.lease = Lease(found["Lease"]) if "Lease" in found else None
        self.job = Job(found["Job"]) if "Job" in found else None
        self.residency = Residency(found["Residency"]) if "Residency" in found else None
        place = Place(found["Place"]) if "Place" in found else None
        if "Piece" in found:
            piece = Piece(found["Piece"])
            self.job, self.lease = reference.piece_job[piece], reference.piece_lease[piece]
            place = reference.piece_place[piece]
        if place is not None:
            self.residency = reference.place_residency[place]
        self._key = Key(found["Key"]) if "Key" in found else None
        self._request = Request(found["Request"]) if "Request" in found else None
        self._named = getattr(event, "req", None)

    @property
    def request(self) -> Request | None:
        """Whose it is: the job's before the one that the guard or the event names."""
        if self.job is not None and self.job in self.world.reference.job_request:
            return self.world.reference.job_request[self.job]
        if self._request is not None:
            return self._request
        return self.world.request(self._named) if self._named else None

    @property
    def key(self) -> str | None:
        """The offload key, as the trace writes it."""
        key = self._key
        if key is None and self.residency is not None:
            key = self.world.reference.residency_key.get(self.residency)
        return None if key is None else str(self.world.names.original("Key", key))

    @property
    def group(self) -> int | None:
        """The group of the key, else of the lease."""
        if self.key is not None:
            return int(self.key.rpartition(":")[2])
        if self.lease is None:
            return None
        position = self.world.reference.lease_position.get(self.lease, Position(-1))
        return self.world.group_of(position)
