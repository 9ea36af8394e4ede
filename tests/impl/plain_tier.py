"""What a tier with least-recently-used replacement does, in lists and loops: for comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from kvproof.impl.scheduler.views import Key


class PlainTier:
    """Keys in lists, no slots.

    Attributes:
        order: the keys that are here, the oldest first.
        users: those who have begun and not ended, in the order of their coming.
        whose: by key, the user among whose keys it stands.
        used_by: by key, the users of it that have not ended.
        pending: keys that are being stored.
        pins: by key, how many loads hold it.
        offers: by key, how often it was offered and not refused.
    """

    def __init__(self, capacity: int, chained: Collection[bytes] = (), threshold: int = 0) -> None:
        self.capacity = capacity
        self.chained = chained
        self.threshold = threshold
        self.offers: Counter[Key] = Counter()
        self.users: list[str] = []
        self.reset()

    def reset(self) -> None:
        self.order: list[Key] = []
        self.whose: dict[Key, str] = {}
        self.used_by: dict[Key, set[str]] = {}
        self.pending: set[Key] = set()
        self.pins: Counter[Key] = Counter()
        self.offers.clear()

    def here(self) -> set[Key]:
        return set(self.order)

    def readable(self) -> set[Key]:
        return self.here() - self.pending

    def held(self, key: Key) -> bool:
        return key in self.pending or self.pins[key] > 0

    # --- uses ---

    def mine(self, user: str) -> list[Key]:
        return [key for key in self.order if self.whose[key] == user]

    def begin(self, user: str) -> None:
        self.finish(user)
        self.users.append(user)

    def refresh(self, user: str) -> None:
        """What a user uses becomes young, and above it those among whose keys its own stand."""
        if user not in self.users:
            self.begin(user)
        lenders = {user}
        while more := {one for mine in lenders for one in self.lenders(mine)} - lenders:
            lenders |= more
        for one in [user, *(one for one in self.users if one in lenders - {user})]:
            mine = self.mine(one)
            self.order = [key for key in self.order if key not in mine] + mine

    def lenders(self, user: str) -> set[str]:
        used = [key for key in self.order if user in self.used_by.get(key, ())]
        return {self.whose[key] for key in used} - {user}

    def close(self) -> None:
        """Whoever uses a chained key uses those before it that stand with it."""
        for user in self.users:
            behind: set[str] = set()
            for key in self.mine(user):
                if key[-4:] in self.chained:
                    behind |= self.used_by[key]
                    self.used_by[key] = set(behind)

    def stays(self, key: Key, user: str) -> bool:
        """Whether somebody uses a key who came later than this user."""
        later = self.users[self.users.index(user) + 1 :]
        self.used_by.setdefault(key, set()).add(user)
        return self.whose.get(key) in later and key in self.here()

    def move(self, key: Key, user: str) -> None:
        """To its place among what a user uses: chained ones by their number, the others behind."""
        if key in self.order:
            self.order.remove(key)
        mine = self.mine(user)
        if not mine:
            self.order.append(key)
        elif key[-4:] in self.chained:
            # The oldest first, so the tail comes first.
            place = next((n for n, one in enumerate(mine) if not self.is_behind(one, key)), None)
            if place is None:
                self.order.insert(self.order.index(mine[-1]) + 1, key)
            else:
                self.order.insert(self.order.index(mine[place]), key)
        else:
            self.order.insert(self.order.index(mine[-1]) + 1, key)
        self.whose[key] = user

    def is_behind(self, one: Key, key: Key) -> bool:
        """Whether one is chained, too, and follows the other in the prefix."""
        return one[-4:] in self.chained and one[0] > key[0]

    def use(self, keys: Sequence[Key], user: str) -> None:
        self.refresh(user)
        for key in keys:
            self.use_one(key, user)
        self.close()
        self.refresh(user)

    def use_one(self, key: Key, user: str) -> None:
        chained = key[-4:] in self.chained
        # Asked first: it notes the use.
        if not self.stays(key, user) and not (chained and key in self.mine(user)):
            self.move(key, user)

    def touch(self, keys: Sequence[Key], user: str) -> None:
        here = self.here()
        if not here.isdisjoint(keys):
            self.make_young([key for key in keys if key in here], user)

    def make_young(self, keys: Sequence[Key], user: str) -> None:
        self.refresh(user)
        for key in reversed(keys):
            self.use_one(key, user)
        self.close()
        self.refresh(user)

    def finish(self, user: str) -> None:
        """What it used goes to whoever uses it still and came last, and is young with them."""
        if user in self.users:
            self.users.remove(user)
        for users in self.used_by.values():
            users.discard(user)
        young: set[str] = set()
        for key in self.mine(user):
            heirs = [one for one in self.users if one in self.used_by.get(key, ())]
            self.whose[key] = ""
            if heirs:
                self.move(key, heirs[-1])
                young.add(heirs[-1])
        self.close()
        for heir in [one for one in self.users if one in young]:
            self.refresh(heir)

    def leave(self, key: Key) -> None:
        """A key is here no more."""
        self.order.remove(key)
        self.whose.pop(key, None)
        self.used_by.pop(key, None)

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
            for key in self.order:
                if len(leaving) == short:
                    break
                if self.chained and user in self.used_by.get(key, ()):
                    continue
                if not self.held(key) and key not in keys:
                    leaving.append(key)
            if len(leaving) < short:
                return None
            for key in leaving:
                self.leave(key)
        self.offers.update(keys)
        self.pending.update(wanted)
        used = [key for key in keys if key in wanted or key in self.here()]
        if used and self.chained:
            self.use(used, user)
        elif used:
            self.make_young(used, user)
        return wanted, leaving

    def stored(self, key: Key, success: bool) -> None:
        self.pending.remove(key)
        if not success:
            self.leave(key)

    def pin(self, keys: Sequence[Key]) -> None:
        self.pins.update(keys)

    def unpin(self, keys: Sequence[Key]) -> None:
        for key in keys:
            self.pins[key] -= 1
