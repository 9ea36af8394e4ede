"""Keeps what running requests use younger than what their own later stores push out (E7).

A tier that evicts what was used longest ago orders a request's chunks as they came, so of a request
that runs for long the head would be the first to leave, and with it all use of the rest. So before
an offer that may evict, whoever's keys may be among the oldest uses all of its own again, the head
last. When that may be is counted, not asked: each use, and each key that leaves, brings what is
there at most one place nearer to the old end.
"""

from __future__ import annotations

from operator import attrgetter, itemgetter

from kvproof.impl.scheduler.geometry import Geometry, Group
from kvproof.impl.scheduler.keys import keys_of
from kvproof.impl.scheduler.ledger import Ledger
from kvproof.impl.scheduler.request import RequestState
from kvproof.impl.scheduler.storing import NEVER
from kvproof.impl.scheduler.views import Key

KEYS_PER_OFFER = 256
"""How many keys are used again for each offer that may evict, on average (E6)."""

MOST_SAVED = 64 * KEYS_PER_OFFER
"""How much of that is saved up, so that a long request is used again in one go."""


class Recency:
    """Who uses keys of a tier, and how far these are from being the oldest.

    Attributes:
        users: requests that may have keys in the tier. Two that live at the same time may have one
            id, one of them about to make its last offer.
    """

    def __init__(self, geometry: Geometry, ledger: Ledger) -> None:
        self.users: dict[int, RequestState] = {}
        self._geometry = geometry
        self._ledger = ledger
        # No key of a user can be the oldest before so many keys have moved.
        self._least = NEVER
        self._saved = MOST_SAVED

    def enter(self, state: RequestState, keys: int, tokens: int) -> None:
        """A request uses ``keys`` keys, of chunks that end with its first ``tokens`` tokens."""
        if self._ledger.tier.lru_capacity is None:
            return
        if id(state) not in self.users:
            self.users[id(state)] = state
            state.used_to = 0
            self._mark(state, keys)
        state.used_to = max(state.used_to, tokens)

    @staticmethod
    def uses(state: RequestState, group: Group, chunk: int) -> None:
        """A request offers or loads a chunk, and those that follow it."""
        if chunk < state.since.get(group.place, NEVER):
            state.since[group.place] = chunk

    def leave(self, state: RequestState) -> None:
        """A request has ended."""
        self.users.pop(id(state), None)

    def forget(self) -> None:
        """The tier is empty."""
        self.users.clear()
        self._least = NEVER

    def before_offer(self, keys: int) -> None:
        """Up to ``keys`` keys are about to be offered."""
        ledger = self._ledger
        lacking = ledger.lacking(keys)
        if lacking <= 0:
            return
        self._saved = min(MOST_SAVED, self._saved + KEYS_PER_OFFER)
        held_back = lacking + ledger.busy
        if ledger.moved + held_back <= self._least or self._saved <= 0:
            return
        for state in sorted(self.users.values(), key=attrgetter("young")):
            # What one uses again is younger than what others have.
            if state.young >= ledger.moved + held_back or self._saved <= 0:
                break
            self._saved -= self.use_again(state, state.used_to)
        self._least = min((state.young for state in self.users.values()), default=NEVER)

    def use_again(self, state: RequestState, tokens: int) -> int:
        """Use what a repeat of a request's first tokens needs, heads last to leave: how much."""
        used = 0
        for group in self._geometry.groups:
            last = self._last(state, group, tokens)
            boundary = last * group.tokens_per_chunk
            if boundary:
                first = group.first_needed(boundary) // group.tokens_per_chunk
                self._ledger.touch(keys_of(state.request, group, first, last), state.context)
                used += last - first
        self._mark(state, used)
        return used

    def conclude(self, state: RequestState, tokens: int) -> None:
        """A request has ended: put all that it has used in order, in one order for all groups.

        What a start at a shorter boundary needs leaves after the tail of the longest, so a request
        that has lost some of its tail still serves what is before it.
        """
        if self._ledger.tier.lru_capacity is None:
            self.use_again(state, tokens)
            return
        found: list[tuple[int, Key]] = []
        for group in self._geometry.groups:
            first, last = state.since.get(group.place, NEVER), self._last(state, group, tokens)
            if first < last:
                size = group.tokens_per_chunk
                keys = keys_of(state.request, group, first, last)
                found += zip(range((first + 1) * size, (last + 1) * size, size), keys, strict=True)
        found.sort(key=itemgetter(0))
        self._ledger.touch([key for _, key in found], state.context)

    def _last(self, state: RequestState, group: Group, tokens: int) -> int:
        """How many chunks of a group are complete and keyed with so many tokens."""
        keyed = len(state.request.block_hashes) // group.hashes_per_chunk
        return min(tokens // group.tokens_per_chunk, keyed)

    def _mark(self, state: RequestState, used: int) -> None:
        state.young = self._ledger.moved + self._ledger.held - used
        self._least = min(self._least, state.young)
