"""From events to moves: lookups, and what is offered for storing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kvproof.conformance.monitor.economy.lookup import moving, prospects
from kvproof.conformance.monitor.promotions import Promotions
from kvproof.conformance.monitor.world import World
from kvproof.conformance.trace import events as ev
from kvproof.model.contract import Request

Move = tuple[str, tuple[int, ...]]
"""The name of a reference action and its parameters."""

MOST_POLLS = 128
"""How often a lookup may be put off with nothing left to wait for: a bound, not a goal.

A poll between which and the last one no copy has ended, while some are under way, does not count:
slow workers are no fault of a scheduler's.
"""


class LookupReaders:
    """Reads questions, answers and offers."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.promotions = Promotions(world)
        self.tier_is_told = False
        self.boundary: dict[Request, int] = {}
        self.uncertain: set[Request] = set()
        self.unlooked: set[Request] = set()
        self.reported = 0
        self._polled_at: dict[Request, int] = {}
        self._idle_polls: Counter[Request] = Counter()
        self.untaken: list[tuple[Request, int]] = []

    # --- lookups ---

    def _ask(self, event: ev.Ask) -> Iterator[Move]:
        r = self.world.request(event.req)
        self.world.asked_from[r] = event.computed
        self.uncertain.discard(r)
        self.unlooked.add(r)
        yield "ask", (r,)

    def _probe(self, event: ev.Probe) -> Iterator[Move]:
        r = self.world.request(event.req)
        yield from self._tier_call(r)
        yield from self._use(r, event.key)
        if r in self.unlooked:
            self.unlooked.discard(r)
            yield "look", (r,)
        match event.result:
            case "hit":
                yield "hit", (r, self.world.residency(event.key))
            case "pending" if self.world.residency(event.key) not in self.promotions.moving:
                yield "await_key", (r, self.world.residency(event.key))
            case "pending" | "retry":
                # The tier does not know yet, or brings the key back itself: waiting may show more
                # than the monitor can see.
                self.uncertain.add(r)

    def _answer(self, event: ev.Answer) -> Iterator[Move]:
        r = self.world.request(event.req)
        if event.tokens is None:
            yield from self._put_off(r)
            return
        known = len(self.world.marks[r]) - 1
        most = self.world.limits[r].to_load(known)
        yield "answer", (r, self.world.asked_from[r], event.tokens, known, most)

    def _put_off(self, r: Request) -> Iterator[Move]:
        now_best, could_be = prospects(self.world, r)
        could_be += r in self.uncertain
        on_its_way = int(moving(self.world, r, now_best))
        if self.world.has_own_job(r):
            yield "judge_own_wait", (r, now_best, could_be, on_its_way)
        under_way = self.world.reference.unreported or self.promotions.moving
        if self._polled_at.get(r) == self.reported and under_way:
            self._idle_polls[r] += 1
        self._polled_at[r] = self.reported
        most = MOST_POLLS + self._idle_polls[r]
        yield "defer", (r, most, now_best, could_be, on_its_way)

    def _allocated(self, event: ev.Allocated) -> Iterator[Move]:
        r = self.world.request(event.req)
        start = self.world.asked_from.get(r, 0)
        end = start + event.external
        self.boundary[r] = end
        for number, group in enumerate(self.world.header.groups):
            table = self.world.tables.get(r, {}).get(number, {})
            size = group.tokens_per_block
            for index in range(start // size, -(-end // size) if event.external else 0):
                if index in table:
                    yield "expect", (table[index],)

    # --- the tier is told ---

    def _tier_request(self, event: ev.TierRequest) -> Iterator[Move]:
        self.tier_is_told = True
        yield f"tier_{event.phase}", (self.world.request(event.req),)

    def _tier_call(self, r: Request) -> Iterator[Move]:
        # Early releases tell their tier of no request at all; then there is no order to keep.
        if self.tier_is_told:
            yield "tier_call", (r,)

    def _touch(self, event: ev.Touch) -> Iterator[Move]:
        yield from self._tier_call(self.world.request(event.req))

    def _use(self, r: Request, key: str) -> Iterator[Move]:
        yield "use_key", self.world.named_and_own(r, key)

    # --- offers ---

    def _offers(self, r: Request, event: ev.PrepareStore) -> Iterator[Move]:
        most = self.world.limits[r].to_store(len(self.world.marks[r]) - 1)
        taken = {key for key, _ in event.accepted}
        for key in event.keys:
            yield from self._use(r, key)
            depth = self.world.depth_named_by(key)
            positions = self.world.positions_named_by(key)
            had = [q for q in positions if (r, q) in self.world.reference.had]
            yield "offer", (r, (had or positions)[-1], depth, most)
            # What was taken is judged by its bytes, when the copy starts (S2).
            if key not in taken:
                self.untaken.append((r, depth))

    def _judge_offers(self) -> Iterator[Move]:
        """The window closes: what was offered in it must be computed now."""
        offers, self.untaken = self.untaken, []
        for r, depth in offers:
            yield "offer_is_computed", (r, depth)
