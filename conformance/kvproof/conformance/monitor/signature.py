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
    "in part"               a lookup waits for a chunk that is stored without all its blocks
    "prefix"                a lookup waits, and found nothing on its way but in full attention
    "one more"              it is about a lookup, and a window is whole chunks and one token more
    "local"                 it is about a lookup, and a group attends to its own span of tokens only
    "capped"                it is about a lookup, and its client caps what is loaded
    "extended"              the request that lost the chunk is a session that went on
    "behind a load"         the chunk that was lost ends where its request loaded up to, or before
    "put back"              the request that lost the chunk was preempted, and began anew
    "shared"                the blocks that it is about are also another request's, or were
    "refused"               the tier had no room for the key when the request offered it
    "retained"              it is about a key that was lost, and not every boundary is retained
    "ahead"                 it is about a key that was lost, and steps are scheduled ahead
    "preempted"             a flush is for a store of a request that was put back in this step
    "after a reset"         it is about events, and the tier was reset before
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kvproof.conformance.monitor.about import About, Elements
from kvproof.conformance.monitor.world import World
from kvproof.conformance.trace import events as ev
from kvproof.model.contract import Lease, Position, Request

_ABOUT_LOOKUPS = (ev.Ask, ev.Answer, ev.Probe, ev.PrepareLoad, ev.Stalled)

_ABOUT_LOSSES = frozenset({"judge_need", "judge_chunk", "judge_tail"})

_HOW = {"slide": "slid", "finish": "finished", "preempt": "preempted", "advance": "advanced"}


class Circumstances:
    """Remembers what the reference forgets, and names the kind of a finding."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._left: dict[tuple[Request, Lease], str] = {}
        self._passed: Counter[tuple[Request, str]] = Counter()
        self._arrived_in: dict[Request, int] = {}
        self._extended: set[Request] = set()
        self._loaded_to: dict[Request, int] = {}
        self._refused: set[tuple[Request, str]] = set()
        self._waited_for: dict[Request, set[str]] = {}
        # By the trace's numbers: a lease has no other name before it is announced.
        self._had: dict[int, set[Request]] = {}
        self._shared: set[tuple[Request, Position]] = set()

    def see(self, event: ev.AnyEvent) -> None:
        """Take note of an event that is about to be judged."""
        world = self.world
        match event:
            case ev.Arrive(req=req):
                self._arrived_in[world.request(req)] = world.reference.epoch
            case ev.Free(req=req, lease=lease, why=why):
                self._left[world.request(req), world.lease(lease)] = _HOW.get(why, "let go")
            case ev.Ask(req=req):
                self._waited_for[world.request(req)] = set()
            case ev.Probe(req=req, key=key, result="pending" | "retry"):
                kind = world.header.groups[int(key.rpartition(":")[2])].kind
                self._waited_for.setdefault(world.request(req), set()).add(kind)
            case ev.Extended(req=req):
                self._extended.add(world.request(req))
            case ev.Lease(lease=lease, req=req):
                self._had[lease] = {world.request(req)}
            case ev.Share():
                self._share(event)
            case ev.PrepareStore(req=req, keys=keys, refused=False):
                self._passed.update((world.request(req), key) for key in keys)
            case ev.PrepareStore(req=req, keys=keys):
                self._refused.update((world.request(req), key) for key in keys)
            case ev.PrepareLoad(req=req, keys=keys):
                r = world.request(req)
                self._passed.update((r, key) for key in keys)
                depth = max((world.depth_named_by(key) for key in keys), default=0)
                self._loaded_to[r] = max(self._loaded_to.get(r, 0), depth)
            case _:
                pass

    def _share(self, event: ev.Share) -> None:
        """Remember the chunk of everybody who has, or had, the lease that is shared."""
        owners = self._had.setdefault(event.lease, set())
        owners.add(self.world.request(event.req))
        if len(owners) > 1:
            position = self.world.position(event.group, event.position)
            self._shared.update((r, position) for r in owners)

    def requests(self, event: ev.Event, elements: Elements) -> set[Request]:
        """Whom a finding about ``elements`` is about: empty when neither names any request."""
        about = About(self.world, event, elements)
        if about.request is not None:
            return {about.request}
        if isinstance(event, ev.Stalled):
            return {self.world.request(req) for req in event.reqs}
        if about.lease is None:
            return set()
        holders = self.world.reference.holds.match(None, about.lease)
        return {r for r, _ in holders} | {r for r, lease in self._left if lease == about.lease}

    def kind(self, event: ev.Event, elements: Elements, action: str) -> str:
        """The kind of a finding about ``elements``, made by ``action``."""
        about = About(self.world, event, elements)
        words = [self._group(about), *self._store(about), *self._load(about)]
        if isinstance(event, ev.Filled):
            words.append("filled")
        if isinstance(event, _ABOUT_LOOKUPS):
            words += self._request(about)
        if isinstance(event, ev.Answer) and event.tokens is None:
            words += self._wait(about)
        if isinstance(event, ev.Answer):
            words += self._reach(about)
        if action == "judge_flush":
            words += self._flushed(about)
        elif action in _ABOUT_LOSSES:
            words += self._lost(about, elements)
        elif action == "judge_events" and self.world.reference.epoch > 0:
            words.append("after a reset")
        return ", ".join(word for word in words if word)

    def _group(self, about: About) -> str:
        number = about.group
        return "" if number is None else self.world.header.groups[number].kind

    def _store(self, about: About) -> Iterator[str]:
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

    def _load(self, about: About) -> Iterator[str]:
        reference = self.world.reference
        x, j = about.residency, about.job
        if x is None or j is None or j not in reference.load:
            return
        if x not in reference.resident:
            yield "gone"

    def _request(self, about: About) -> Iterator[str]:
        r = about.request
        if r is None:
            return
        if self._arrived_in.get(r, self.world.reference.epoch) < self.world.reference.epoch:
            yield "across a reset"

    def _wait(self, about: About) -> Iterator[str]:
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
        if self._waited_for.get(r) == {"full"}:
            yield "prefix"

    def _reach(self, about: About) -> Iterator[str]:
        """Of which groups a lookup may take more to be needed than any forward reads; a cap."""
        header = self.world.header
        chunks = [(g.window, g.tokens_per_block * header.blocks_per_chunk) for g in header.groups]
        if any(window and window % size == 1 for window, size in chunks):
            yield "one more"
        if any(group.kind == "chunked" for group in header.groups):
            yield "local"
        r = about.request
        if r is not None and r in self.world.limits and self.world.limits[r].max_load is not None:
            yield "capped"

    def _flushed(self, about: About) -> Iterator[str]:
        """Why a store is waited for, none of whose blocks anybody changes."""
        r, j, world = about.request, about.job, self.world
        if r is None or j is None:
            return
        if world.preempted_in.get(r) == world.reference.now:
            yield "preempted"
        for _, piece in world.reference.pieces.match(j, None):
            number = world.names.original("Lease", world.reference.piece_lease[piece])
            if isinstance(number, int) and len(self._had.get(number, ())) > 1:
                yield "shared"
                return

    def _lost(self, about: About, elements: Elements) -> Iterator[str]:
        """What had happened to a chunk that one of the requests did not leave in the tier."""
        key, world = about.key, self.world
        if key is None:
            return
        requests = [Request(value) for sort, value in elements.values() if sort == "Request"]
        depth, positions = world.depth_named_by(key), world.positions_named_by(key)
        if any(r in self._extended for r in requests):
            yield "extended"
        if any(depth <= self._loaded_to.get(r, 0) for r in requests):
            yield "behind a load"
        if any(r in world.preempted_in for r in requests):
            yield "put back"
        if any((r, position) in self._shared for r in requests for position in positions):
            yield "shared"
        if any((r, key) in self._refused for r in requests):
            yield "refused"
        if world.header.options.get("retention_interval") is not None:
            yield "retained"
        if world.header.options.get("asynchronous"):
            yield "ahead"

    def _stored_in_part(self, r: Request) -> bool:
        """Whether a chunk of the request's own prefix is being stored, or loaded for somebody, that
        is stored without all of its blocks.
        """
        world, reference = self.world, self.world.reference
        for number in range(len(world.header.groups)):
            for mark in world.marks[r]:
                key = world.key_of(mark, number)
                x = None if key is None else reference.where.get(key)
                if x is None:
                    continue
                if x not in reference.storing and reference.pinned.none(x, None):
                    continue
                offsets = range(world.header.blocks_per_chunk)
                if any(world.place(x, offset) not in reference.cover for offset in offsets):
                    return True
        return False
