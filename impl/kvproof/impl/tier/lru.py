"""Least recently used."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence

from kvproof.impl.scheduler.views import Key
from kvproof.impl.tier.order import Order
from kvproof.impl.tier.policy import Policy


class Lru(Policy):
    """Gives up what was used longest ago.

    Chunks of chained groups are stored from head to tail, so in the plain order of their use a
    prompt larger than the tier would push out its own beginning, without which the rest is worth
    nothing. So the tail leaves first, and a request gives up nothing that it uses itself.
    """

    def __init__(self, pins: Sequence[int], keys: Sequence[Key]) -> None:
        super().__init__(pins, keys)
        self._order = Order(pins, self.ranks)

    def use(self, slots: Sequence[int], user: Hashable) -> None:
        """See ``Policy``."""
        use(self._order, slots, user, self)

    def touch(self, slots: Sequence[int], user: Hashable) -> None:
        """See ``Policy``."""
        self._order.touch(slots, user)

    def give_up(self, count: int, spared: Collection[int], user: Hashable) -> list[int] | None:
        """See ``Policy``."""
        found = self._order.oldest(count, spared, user, not self.chained)
        if len(found) < count:
            return None
        self._order.remove(found)
        return found

    def remove(self, slot: int) -> None:
        """See ``Policy``."""
        self._order.remove((slot,))

    def begin(self, user: Hashable) -> None:
        """See ``Policy``."""
        self._order.begin(user)

    def forget(self, user: Hashable) -> None:
        """See ``Policy``."""
        self._order.forget(user)

    def clear(self) -> None:
        """See ``Policy``."""
        self._order.clear()


def use(order: Order, slots: Sequence[int], user: Hashable, policy: Policy) -> None:
    """An offer is a use; where nothing is said of groups, its head is the last to leave."""
    if policy.chained:
        order.use(slots, user)
    else:
        order.touch(slots, user)
