"""What leaves the tier first: what is oldest, and of one prefix its tail before its head."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kvproof.conformance.monitor.economy.geometry import Geometry
from kvproof.conformance.monitor.economy.lives import Life, Lives
from kvproof.conformance.monitor.lookup_readers import Move
from kvproof.conformance.monitor.world import World
from kvproof.conformance.trace import events as ev
from kvproof.model.contract import Key, Residency
from kvproof.model.functions import FULL


@dataclass(eq=False)
class User:
    """A request that uses keys; ``used`` are those keys per group, with their chunks' numbers."""

    life: Life
    arrived: int
    used: list[dict[Key, int]]


@dataclass(eq=False)
class Use:
    """Who uses a key: those that have not ended, and of all the one that arrived last."""

    latest: User
    now: set[User] = field(default_factory=set)


class Recency:
    """Judges E7, of a tier that evicts what was used longest ago.

    A use is a store, an offer of what was there already, a load or a touch, and lasts until its
    request ends. One key is older than another when its last use was over before a request arrived
    that used the other.
    """

    def __init__(self, world: World, geometry: Geometry, lives: Lives) -> None:
        self._world = world
        self._geometry = geometry
        self._lives = lives
        # A manager of several tiers pins what it copies between them, which no event tells.
        options = world.header.options
        self._judged = (
            options.get("eviction", "lru") == "lru" and options.get("tier", "cpu") != "tiering"
        )
        self._moment = 0
        self._users: dict[Life, User] = {}
        self._uses: dict[Key, Use] = {}
        # Keys whose uses are over, and since when: the oldest first.
        self._idle: dict[Key, int] = {}

    # --- uses ---

    def arrive(self, event: ev.Arrive) -> None:
        """A request enters."""
        if (life := self._lives.get(event.req)) is not None:
            self._moment += 1
            self._users[life] = User(life, self._moment, [{} for _ in self._geometry.groups])

    def ended(self, life: Life) -> None:
        """The window closes in which a request ended: it uses nothing any more."""
        self._moment += 1
        user = self._users.pop(life)
        for key in (key for used in user.used for key in used):
            use = self._uses.get(key)
            if use is not None and user in use.now:
                use.now.discard(user)
                if not use.now:
                    self._idle[key] = self._moment

    def use(self, req: str, keys: Iterable[str], refused: bool = False) -> None:
        """A request uses those of the keys that are in the tier.

        Whether an offer that was refused is a use of those that it has, a tier may decide: they are
        not old while the request lives, and no newer for it.
        """
        life = self._lives.get(req)
        user = None if life is None else self._users.get(life)
        if user is None:
            return
        for name in keys:
            key, group = self._world.key(name), int(name.rpartition(":")[2])
            if key not in self._world.reference.where:
                continue
            size = self._geometry.groups[group].tokens_per_chunk
            user.used[group][key] = self._world.depth_named_by(name) // size - 1
            use = self._uses.setdefault(key, Use(user))
            use.now.add(user)
            if use.latest.arrived < user.arrived and not refused:
                use.latest = user
            self._idle.pop(key, None)

    def leave(self, names: Iterable[str]) -> None:
        """Keys leave the tier."""
        for key in map(self._world.key, names):
            self._uses.pop(key, None)
            self._idle.pop(key, None)

    def reset(self) -> None:
        """All keys leave the tier."""
        self._uses.clear()
        self._idle.clear()

    # --- evictions ---

    def judge(self, event: ev.PrepareStore) -> Iterator[Move]:
        """What leaves for an offer, before it does."""
        if not self._judged or not event.evicted:
            return
        where = self._world.reference.where
        safe = {self._world.key(name) for name in (*event.keys, *event.evicted)}
        oldest = next((key for key in self._idle if key not in safe and self._may_go(key)), None)
        for name in event.evicted:
            key, group = self._world.key(name), int(name.rpartition(":")[2])
            if key not in where or key not in self._uses:
                continue
            user, other = self._uses[key].latest, key
            if oldest is not None and self._idle[oldest] < user.arrived:
                other = oldest
            older = self._uses[other].latest.life.number
            yield "judge_age", (where[key], where[other], user.life.number, older)
            if self._geometry.groups[group].kind == FULL:
                yield "judge_order", self._order(user, key, group, safe)

    def _order(self, user: User, key: Key, group: int, safe: set[Key]) -> tuple[int, int, int, int]:
        """The key, what its user leaves farthest behind it, and both chunks' numbers."""
        where, used = self._world.reference.where, user.used[group]
        left = [
            (number, other)
            for other, number in used.items()
            if other not in safe and self._may_go(other) and self._uses[other].latest is user
        ]
        tail, other = max([(used[key], key), *left], key=lambda pair: pair[0])
        return where[key], where[other], used[key], tail

    def _may_go(self, key: Key) -> bool:
        return key in self._uses and self._is_evictable(self._world.reference.where.get(key))

    def _is_evictable(self, x: Residency | None) -> bool:
        reference = self._world.reference
        return x is not None and x in reference.ready and reference.pinned.none(x, None)
