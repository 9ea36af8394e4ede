"""What a tier with least-recently-used replacement does, in lists and loops: for comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from kvproof.impl.scheduler.views import Key

ASIDE = "(aside)"
"""Whose a key is that was met while it was held."""


class PlainTier:
    """Keys in lists, no slots.

    Attributes:
        order: the keys that are here, the oldest first.
        aside: keys that were held when the next to leave was looked for, the oldest first.
        whose: by key, the user among whose keys it stands.
        pending: keys that are being stored.
        pins: by key, how many loads hold it.
        offers: by key, how often it was offered and not refused.
    """

    def __init__(self, capacity: int, chained: Collection[bytes] = (), threshold: int = 0) -> None:
        self.capacity = capacity
        self.chained = chained
        self.threshold = threshold
        self.offers: Counter[Key] = Counter()
        self.reset()

    def reset(self) -> None:
        self.order: list[Key] = []
        self.aside: list[Key] = []
        self.whose: dict[Key, str] = {}
        self.pending: set[Key] = set()
        self.pins: Counter[Key] = Counter()
        self.offers.clear()

    def here(self) -> set[Key]:
        return {*self.order, *self.aside}

    def readable(self) -> set[Key]:
        return self.here() - self.pending

    def held(self, key: Key) -> bool:
        return key in self.pending or self.pins[key] > 0

    # --- uses ---

    def mine(self, user: str) -> list[Key]:
        return [key for key in self.order if self.whose[key] == user]

    def refresh(self, user: str) -> None:
        mine = self.mine(user)
        self.order = [key for key in self.order if key not in mine] + mine

    def move(self, key: Key, user: str, place: int | None = None) -> None:
        for keys in (self.order, self.aside):
            if key in keys:
                keys.remove(key)
        self.order.insert(len(self.order) if place is None else place, key)
        self.whose[key] = user

    def use(self, keys: Sequence[Key], user: str) -> None:
        self.refresh(user)
        for key in keys:
            mine = self.mine(user)
            if key[-4:] not in self.chained or not mine:
                self.move(key, user)
            elif key not in mine:
                if key in self.order:
                    self.order.remove(key)
                self.move(key, user, self.order.index(mine[0]))

    def touch(self, keys: Sequence[Key], user: str) -> None:
        here = self.here()
        if not here.isdisjoint(keys):
            self.refresh(user)
        for key in reversed(keys):
            if key in here:
                self.move(key, user)

    def finish(self, user: str) -> None:
        for key in self.mine(user):
            self.whose[key] = ""

    # --- what comes and goes ---

    def offer(self, keys: Sequence[Key], user: str) -> tuple[list[Key], list[Key]] | None:
        """Keys that are to be stored, and those that leave for them; None: no room."""
        fresh = [key for key in keys if key not in self.here()]
        wanted = [key for key in fresh if self.offers[key] + 1 >= self.threshold]
        leaving: list[Key] = []
        short = len(self.here()) + len(wanted) - self.capacity
        if short > sum(not self.held(key) for key in self.here()):
            return None
        if short > 0:
            self.refresh(user)
            for key in list(self.order):
                if len(leaving) == short or (self.chained and self.whose[key] == user):
                    break
                if self.held(key):
                    self.order.remove(key)
                    self.aside.append(key)
                    self.whose[key] = ASIDE
                elif key not in keys:
                    leaving.append(key)
            if len(leaving) < short:
                return None
            for key in leaving:
                self.order.remove(key)
        self.offers.update(keys)
        self.pending.update(wanted)
        used = [key for key in keys if key in wanted or key in self.here()]
        if used and self.chained:
            self.use(used, user)
        elif used:
            self.refresh(user)
            for key in reversed(used):
                self.move(key, user)
        return wanted, leaving

    def let_go(self, key: Key) -> None:
        if key in self.aside:
            self.aside.remove(key)
            self.order.insert(0, key)
            self.whose[key] = ""

    def stored(self, key: Key, success: bool) -> None:
        self.pending.remove(key)
        if success:
            self.let_go(key)
        else:
            for keys in (self.order, self.aside):
                if key in keys:
                    keys.remove(key)

    def pin(self, keys: Sequence[Key]) -> None:
        self.pins.update(keys)

    def unpin(self, keys: Sequence[Key]) -> None:
        for key in keys:
            self.pins[key] -= 1
            if not self.pins[key]:
                self.let_go(key)
