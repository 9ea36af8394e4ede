"""Lookups and the loads that follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kvproof.impl.scheduler.geometry import Geometry
from kvproof.impl.scheduler.keys import keys_of
from kvproof.impl.scheduler.ledger import Ledger
from kvproof.impl.scheduler.lookup import Answer, Finder
from kvproof.impl.scheduler.plan import Transfer
from kvproof.impl.scheduler.recency import Recency
from kvproof.impl.scheduler.request import RequestState
from kvproof.impl.scheduler.views import Found, Key, RequestView

MOST_DOUBTS = 64
"""Up to how many keys are asked for to find out that a lookup would find nothing new."""

MOST_POLLS = 100
"""How often a lookup is put off when all jobs that it waited for at first have ended."""


class PlannedLoad(NamedTuple):
    """A load from ``computed`` to ``boundary`` tokens.

    Attributes:
        state: the request that it is for.
        keys: what it takes, group by group.
        ends: where the chunks of ``keys`` end, in tokens.
        first_positions: as in ``Transfer``.
    """

    state: RequestState
    computed: int
    boundary: int
    keys: Sequence[Key]
    ends: Sequence[int]
    first_positions: Sequence[int]


class Loads:
    """Answers the engine's questions, and plans what it then takes.

    Attributes:
        planned: loads of the step that is being scheduled, by job number.
        lost: requests whose load was promised and cannot be made; they compute instead.
        latest: the last load that was planned.
    """

    def __init__(
        self, geometry: Geometry, ledger: Ledger, recency: Recency, avoid_double_loads: bool
    ) -> None:
        self.geometry = geometry
        self.ledger = ledger
        self.recency = recency
        self.avoid_double_loads = avoid_double_loads
        self.planned: dict[int, Transfer] = {}
        self.lost: list[str] = []
        self.latest: PlannedLoad | None = None
        self._finder = Finder(geometry, ledger.tier, ledger.coverage)

    # --- questions ---

    def lookup(self, state: RequestState, computed: int, bound: int | None) -> int | None:
        """How many tokens beyond ``computed`` can be loaded; None: ask again."""
        request, limits = state.request, state.limits
        if limits.skip_reading or state.given_up:
            return 0
        limit = request.num_tokens - 1
        for most in (bound, limits.max_load):
            if most is not None:
                limit = min(limit, computed + most)
        answer = self._answer(state, computed, limit)
        wait = answer.worth_waiting or self._on_its_way(request, computed, answer)
        if wait and self._may_wait(state):
            return None
        state.awaits, state.polls = None, 0
        tokens = answer.boundary - computed
        # There would be nothing to load, and so nobody to say that the load has ended.
        if tokens <= 0 or not self._finder.needs_a_load(computed, answer.boundary):
            return 0
        return tokens if self._is_there_still(state, computed, answer) else 0

    def _is_there_still(self, state: RequestState, computed: int, answer: Answer) -> bool:
        """Whether the lookup itself has not driven out what it had found.

        A tier that brings back what it is asked for makes room for it first.
        """
        if self.ledger.tier.closed or all(found is Found.MISS for _, found in answer.doubts):
            return True
        needed = self._finder.needed(computed, answer.boundary)
        lookup, context = self.ledger.tier.lookup, state.context
        return all(
            lookup(key, context) is Found.HIT
            for group, (first, last) in needed.items()
            for key in keys_of(state.request, group, first, last)
        )

    def _answer(self, state: RequestState, computed: int, limit: int) -> Answer:
        """What the tier has for a request: asked no more than its changes since call for."""
        ledger, request, asked = self.ledger, state.request, state.asked
        now = (computed, limit, ledger.changes)
        # While nothing was lost, hits are hits still, and only what was no hit may have changed.
        kept = ledger.tier.closed and asked is not None and state.losses == ledger.losses
        if kept and self._stands(state, now):
            state.whole = False
        else:
            known = state.answer.hits if kept and asked and asked[0] <= computed else ()
            state.whole = not any(known)
            refused = ledger.refused(request.request_id)
            state.answer = self._finder.find(
                request.block_hashes, state.context, computed, limit, refused, known
            )
        state.asked, state.losses = now, ledger.losses
        return state.answer

    def _stands(self, state: RequestState, now: tuple[int, int, int]) -> bool:
        """Whether a lookup would find again what it found; nothing was lost since then."""
        if state.asked == now:
            return True
        doubts = state.answer.doubts
        if state.asked is None or state.asked[:2] != now[:2] or len(doubts) > MOST_DOUBTS:
            return False
        lookup, context = self.ledger.tier.lookup, state.context
        return all(lookup(key, context) is found for key, found in doubts)

    def _on_its_way(self, request: RequestView, computed: int, answer: Answer) -> bool:
        """Whether somebody loads a chunk that the answer needs (L3)."""
        loading = self.ledger.loading
        if not (loading and self.avoid_double_loads and answer.boundary > computed):
            return False
        needed = self._finder.needed(computed, answer.boundary)
        return any(
            key in loading
            for group, (first, last) in needed.items()
            for key in keys_of(request, group, first, last)
        )

    def _may_wait(self, state: RequestState) -> bool:
        """Bounds how often a lookup is put off (L1)."""
        jobs = self.ledger.jobs
        if state.awaits is None:
            state.awaits = jobs.next_number
        elif jobs.oldest() >= state.awaits:
            state.polls += 1
        return state.polls <= MOST_POLLS

    # --- answers that are taken ---

    def take(
        self, state: RequestState, blocks: Sequence[Sequence[int]], external: int, computed: int
    ) -> None:
        """The engine takes ``external`` tokens of the last answer; see ``OffloadScheduler``."""
        request = state.request
        boundary = computed + external
        keys, ends, transfer = self._plan(request, blocks, computed, boundary)
        if not self._readable(state, keys, computed, boundary):
            # It would be promised again, and again in vain.
            state.given_up = True
            self.lose(request.request_id)
            return
        place = self.ledger.pin(keys, ends, state.context)
        # Before anything that nobody uses now it must not leave, once it is no longer pinned (E7).
        self.ledger.touch(keys, state.context)
        for group, first in zip(self.geometry.groups, transfer.first_positions, strict=True):
            self.recency.uses(state, group, first // group.blocks_per_chunk)
        self.recency.enter(state, len(keys), boundary)
        job = self.ledger.issue_load(request.request_id, keys, state.context)
        self.planned[job.number] = transfer._replace(place=place)
        self.latest = PlannedLoad(state, computed, boundary, keys, ends, transfer.first_positions)

    def lose(self, request_id: str) -> None:
        """A load that was promised cannot be made: the request computes instead."""
        self.ledger.counts["lost_loads"] += 1
        self.lost.append(request_id)

    def _plan(
        self, request: RequestView, blocks: Sequence[Sequence[int]], computed: int, boundary: int
    ) -> tuple[list[Key], list[int], Transfer]:
        """The chunks, their ends and the blocks that bring a request to ``boundary``."""
        keys: list[Key] = []
        ends: list[int] = []
        ids: list[int] = []
        sizes, firsts = [], []
        for group, own in zip(self.geometry.groups, blocks, strict=True):
            size = group.tokens_per_block
            first, last = -(-computed // size), -(-boundary // size)
            if group.first_needed(boundary) >= boundary:
                last = first  # a window of one token: its block is there for what comes next
            while first < last and (first >= len(own) or own[first] == 0):
                first += 1
            ids += own[first:last]
            sizes.append(last - first)
            firsts.append(first)
            if first < last:
                start, size = first // group.blocks_per_chunk, group.tokens_per_chunk
                stop = -(-boundary // size)
                keys += keys_of(request, group, start, stop)
                ends += range((start + 1) * size, (stop + 1) * size, size)
        return keys, ends, Transfer(request.request_id, ids, sizes, firsts, None)

    def _readable(
        self, state: RequestState, keys: Sequence[Key], computed: int, boundary: int
    ) -> bool:
        """Whether the answer covers these keys, or the tier still has every one of them (S5).

        An answer that rests on what was found for an earlier question covers none.
        """
        if not keys:
            return False
        asked = state.asked
        answered = asked is not None and asked[::2] == (computed, self.ledger.changes)
        tier = self.ledger.tier
        if answered and tier.closed and state.whole and state.answer.boundary == boundary:
            return True
        rest = keys[tier.hits_ahead(keys) :]
        return all(tier.lookup(key, state.context) is Found.HIT for key in rest)
