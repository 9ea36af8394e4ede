"""Adaptive replacement (Megiddo and Modha, FAST 2003).

Keys that one request wanted are *recent*, those that several wanted are *frequent*. Each part
remembers the keys that left it last. When one of these comes back, its part was too small, and
grows at the other's cost.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Collection, Hashable, Sequence

from kvproof.impl.scheduler.views import Key
from kvproof.impl.tier.lru import use
from kvproof.impl.tier.order import Order
from kvproof.impl.tier.policy import Policy

Ghosts = OrderedDict[Key, None]
"""Keys that have left, the longest ago first."""


class Arc(Policy):
    """Balances between what was used lately and what is used often.

    Attributes:
        target: how many slots the recent part should have.
    """

    def __init__(self, pins: Sequence[int], keys: Sequence[Key]) -> None:
        super().__init__(pins, keys)
        self._capacity = len(pins)
        self._recent, self._frequent = Order(pins, self.ranks), Order(pins, self.ranks)
        self.clear()

    def clear(self) -> None:
        """See ``Policy``."""
        self.target = 0.0
        self._recent.clear()
        self._frequent.clear()
        # Who brought what lies in a slot: only somebody else's use makes it frequent.
        self._brought: list[Hashable] = [None] * self._capacity
        self._left_recent: Ghosts = OrderedDict()
        self._left_frequent: Ghosts = OrderedDict()

    def use(self, slots: Sequence[int], user: Hashable) -> None:
        """See ``Policy``."""
        recent: list[int] = []
        frequent: list[int] = []
        for slot in slots:
            known = slot in self._recent or slot in self._frequent
            if not known:
                self._brought[slot] = user
            often = self._promote(slot, user) if known else self._back(self.keys[slot])
            (frequent if often else recent).append(slot)
        for part, mine in ((self._recent, recent), (self._frequent, frequent)):
            if mine:
                use(part, mine, user, self)
        self._trim()

    def touch(self, slots: Sequence[int], user: Hashable) -> None:
        """See ``Policy``."""
        often = [self._promote(slot, user) for slot in slots]
        for part, wanted in ((self._recent, False), (self._frequent, True)):
            mine = [slot for slot, is_often in zip(slots, often, strict=True) if is_often is wanted]
            if mine:
                part.touch(mine, user)

    def _promote(self, slot: int, user: Hashable) -> bool:
        """Whether a slot that is here is frequent with this use; then it is recent no more."""
        if slot in self._frequent:
            return True
        if self._brought[slot] == user:
            return False
        self._recent.remove((slot,))
        return True

    def _back(self, key: Key) -> bool:
        """Whether a key had left not long ago; the part that it left grows."""
        recent, frequent = len(self._left_recent), len(self._left_frequent)
        if key in self._left_recent:
            del self._left_recent[key]
            self.target = min(float(self._capacity), self.target + max(1.0, frequent / recent))
        elif key in self._left_frequent:
            del self._left_frequent[key]
            self.target = max(0.0, self.target - max(1.0, recent / frequent))
        else:
            return False
        return True

    def give_up(self, count: int, spared: Collection[int], user: Hashable) -> list[int] | None:
        """See ``Policy``."""
        own = not self.chained
        recent = self._recent.oldest(count, spared, user, own)
        frequent = self._frequent.oldest(count, spared, user, own)
        if len(recent) + len(frequent) < count:
            return None
        # The recent part gives while it has more than its share, and when the other has no more.
        excess = max(0, math.ceil(len(self._recent) - self.target))
        given = min(count, len(recent), max(excess, count - len(frequent)))
        given_up = recent[:given], frequent[: count - given]
        for part, left, slots in (
            (self._recent, self._left_recent, given_up[0]),
            (self._frequent, self._left_frequent, given_up[1]),
        ):
            part.remove(slots)
            left.update(dict.fromkeys(self.keys[slot] for slot in slots))
        return [*given_up[0], *given_up[1]]

    def remove(self, slot: int) -> None:
        """See ``Policy``."""
        (self._recent if slot in self._recent else self._frequent).remove((slot,))

    def _trim(self) -> None:
        """Remember as many keys as there are slots, and of recent ones no more than have room."""
        while self._left_recent and len(self._recent) + len(self._left_recent) > self._capacity:
            self._left_recent.popitem(last=False)
        here = len(self._recent) + len(self._frequent)
        while here + len(self._left_recent) + len(self._left_frequent) > 2 * self._capacity:
            (self._left_frequent or self._left_recent).popitem(last=False)

    def begin(self, user: Hashable) -> None:
        """See ``Policy``."""
        self._recent.begin(user)
        self._frequent.begin(user)

    def forget(self, user: Hashable) -> None:
        """See ``Policy``."""
        self._recent.forget(user)
        self._frequent.forget(user)
