"""Circumstances of a finding: what tells faults apart that break one guard in the same action.

Read off the elements that the broken guard is about, and off what happened to them; nothing here
knows a release. A kind is a few words, from coarse to fine, each there only when it says something:

    the group's kind        "full", "window", "chunked", "recurrent": whose block or key it is
    how the block went      "slid", "finished", "preempted", ...: the request gave the lease up, so
    "at the end"            the store was issued when its request had ended
    "again"                 its request had loaded the key, or offered it without refusal, before
    "gone"                  the key that is to be loaded has left the tier
    "filled"                another connector writes the block
    "across a reset"        it is about a lookup, of a request that arrived before a reset
    "forbidden"             a lookup waits, of a request that lets nothing be loaded
    "drafts"                a lookup waits, and a group's last chunk counts for nothing
    "in part"               a lookup waits for a chunk that is being stored without all its blocks
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from kvproof.conformance.monitor.world import World
from kvproof.conformance.trace import events as ev
from kvproof.model.contract import Job, Key, Lease, Piece, Place, Position, Request, Residency

Elements = Mapping[str, tuple[str, int]]
"""What a broken guard is about: (sort, element) by the name that the spec gives it."""

_ABOUT_LOOKUPS = (ev.Ask, ev.Answer, ev.Probe, ev.PrepareLoad, ev.Stalled)

_HOW = {"slide": "slid", "finish": "finished", "preempt": "preempted", "advance": "advanced"}


class Circumstances:
    """Remembers what the reference forgets, and names the kind of a finding."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._left: dict[tuple[Request, Lease], str] = {}
        self._passed: Counter[tuple[Request, str]] = Counter()
        self._arrived_in: dict[Request, int] = {}

    def see(self, event: ev.AnyEvent) -> None:
        """Take note of an event that is about to be judged."""
        world = self.world
        match event:
            case ev.Arrive(req=req):
                self._arrived_in[world.request(req)] = world.reference.epoch
            case ev.Free(req=req, lease=lease, why=why):
                self._left[world.request(req), world.lease(lease)] = _HOW.get(why, "let go")
            case ev.PrepareStore(req=req, keys=keys, refused=False):
                self._passed.update((world.request(req), key) for key in keys)
            case ev.PrepareLoad(req=req, keys=keys):
                self._passed.update((world.request(req), key) for key in keys)
            case _:
                pass

    def requests(self, event: ev.Event, elements: Elements) -> set[Request]:
        """Whom a finding about ``elements`` is about: empty when neither names any request."""
        about = _About(self.world, event, elements)
        if about.request is not None:
            return {about.request}
        if isinstance(event, ev.Stalled):
            return {self.world.request(req) for req in event.reqs}
        if about.lease is None:
            return set()
        holders = self.world.reference.holds.match(None, about.lease)
        return {r for r, _ in holders} | {r for r, lease in self._left if lease == about.lease}

    def kind(self, event: ev.Event, elements: Elements) -> str:
        """The kind of a finding about ``elements``."""
        about = _About(self.world, event, elements)
        words = [self._group(about), *self._store(about), *self._load(about)]
        if isinstance(event, ev.Filled):
            words.append("filled")
        if isinstance(event, _ABOUT_LOOKUPS):
            words += self._request(about)
        if isinstance(event, ev.Answer) and event.tokens is None:
            words += self._wait(about)
        return ", ".join(word for word in words if word)

    def _group(self, about: _About) -> str:
        number = about.group
        return "" if number is None else self.world.header.groups[number].kind

    def _store(self, about: _About) -> Iterator[str]:
        r, j = about.request, about.job
        reference = self.world.reference
        if r is None or j is None or j not in reference.store:
            return
        if about.lease is not None and (r, about.lease) not in reference.holds:
            yield self._left.get((r, about.lease), "")
        ended = self.world.ended_in.get(r)
        if ended is not None and j in reference.job_step and ended <= reference.job_step[j]:
            yield "at the end"
        key = about.key
        if key is not None and self._passed[r, key] > 1:
            yield "again"

    def _load(self, about: _About) -> Iterator[str]:
        reference = self.world.reference
        x, j = about.residency, about.job
        if x is None or j is None or j not in reference.load:
            return
        if x not in reference.resident:
            yield "gone"

    def _request(self, about: _About) -> Iterator[str]:
        r = about.request
        if r is None:
            return
        if self._arrived_in.get(r, self.world.reference.epoch) < self.world.reference.epoch:
            yield "across a reset"

    def _wait(self, about: _About) -> Iterator[str]:
        """Why waiting was in vain, where it is not a plain matter of which chunks are there."""
        r, world = about.request, self.world
        if r is None or r not in world.limits:
            return
        if world.limits[r].to_load(len(world.marks[r]) - 1) == 0:
            yield "forbidden"
        if any(group.draft for group in world.header.groups):
            yield "drafts"
        if self._stored_in_part(r):
            yield "in part"

    def _stored_in_part(self, r: Request) -> bool:
        """Whether a chunk of the request's own prefix is being stored without all of its blocks."""
        world, reference = self.world, self.world.reference
        for number in range(len(world.header.groups)):
            for mark in world.marks[r]:
                key = world.key_of(mark, number)
                x = None if key is None else reference.where.get(key)
                if x is None or x not in reference.storing:
                    continue
                offsets = range(world.header.blocks_per_chunk)
                if any(world.place(x, offset) not in reference.cover for offset in offsets):
                    return True
        return False


class _About:
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
