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
    """A request as the last one to use some keys.

    ``used`` are those keys, each with its chunk's number; ``arrived`` and ``ended`` are moments of
    the run, in events.
    """

    life: Life
    arrived: int
    ended: int | None = None
    used: list[dict[Key, int]] = field(default_factory=list)


class Recency:
    """Judges E7, of a tier that evicts what was used longest ago.

    A use is a store, an offer of what was there already, a load or a touch. What a request used
    last is older than what another used when the one had ended before the other arrived.
    """

    def __init__(self, world: World, geometry: Geometry, lives: Lives) -> None:
        self._world = world
        self._geometry = geometry
        self._lives = lives
        self._judged = world.header.options.get("eviction", "lru") == "lru"
        self._moment = 0
        self._users: dict[Life, User] = {}
        self._ended: dict[User, None] = {}
        self._last: dict[Key, User] = {}

    # --- uses ---

    def arrive(self, event: ev.Arrive) -> None:
        """A request enters."""
        if (life := self._lives.get(event.req)) is not None:
            self._moment += 1
            used: list[dict[Key, int]] = [{} for _ in self._geometry.groups]
            self._users[life] = User(life, self._moment, used=used)

    def ended(self, life: Life) -> None:
        """The window closes in which a request ended: it uses nothing any more."""
        self._moment += 1
        user = self._users[life]
        user.ended = self._moment
        self._ended[user] = None

    def use(self, req: str, keys: Iterable[str]) -> None:
        """A request uses those of the keys that are in the tier."""
        life = self._lives.get(req)
        if life is None:
            return
        user = self._users[life]
        for name in keys:
            key, group = self._world.key(name), int(name.rpartition(":")[2])
            if key not in self._world.reference.where:
                continue
            self._drop(key, group)
            size = self._geometry.groups[group].tokens_per_chunk
            user.used[group][key] = self._world.depth_named_by(name) // size - 1
            self._last[key] = user

    def leave(self, names: Iterable[str]) -> None:
        """Keys leave the tier."""
        for name in names:
            self._drop(self._world.key(name), int(name.rpartition(":")[2]))

    def reset(self) -> None:
        """All keys leave the tier."""
        for user in set(self._last.values()):
            for used in user.used:
                used.clear()
        self._last.clear()
        self._ended.clear()

    def _drop(self, key: Key, group: int) -> None:
        user = self._last.pop(key, None)
        if user is not None:
            user.used[group].pop(key, None)
            if user.ended is not None and not any(user.used):
                self._ended.pop(user, None)

    # --- evictions ---

    def judge(self, event: ev.PrepareStore) -> Iterator[Move]:
        """What leaves for an offer, before it does."""
        if not self._judged or not event.evicted:
            return
        where = self._world.reference.where
        safe = {self._world.key(name) for name in (*event.keys, *event.evicted)}
        oldest = self._oldest(safe)
        for name in event.evicted:
            key, group = self._world.key(name), int(name.rpartition(":")[2])
            user = self._last.get(key)
            if user is None or key not in where:
                continue
            other, older = where[key], user
            if oldest is not None and (oldest[1].ended or 0) < user.arrived:
                other, older = oldest
            yield "judge_age", (where[key], other, user.life.number, older.life.number)
            if self._geometry.groups[group].kind == FULL:
                yield from self._judge_order(user, key, group, safe)

    def _judge_order(self, user: User, key: Key, group: int, safe: set[Key]) -> Iterator[Move]:
        used, x = user.used[group], self._world.reference.where[key]
        chunk = used[key]
        tail, tail_chunk = x, chunk
        for other, number in used.items():
            if number > tail_chunk and other not in safe:
                y = self._evictable(other)
                if y is not None:
                    tail, tail_chunk = y, number
        yield "judge_order", (x, tail, chunk, tail_chunk)

    def _oldest(self, safe: set[Key]) -> tuple[Residency, User] | None:
        """A residency that could have left, of the request that ended first."""
        for user in self._ended:
            for used in user.used:
                for key in used:
                    if key not in safe and (x := self._evictable(key)) is not None:
                        return x, user
        return None

    def _evictable(self, key: Key) -> Residency | None:
        reference = self._world.reference
        x = reference.where.get(key)
        if x is None or x not in reference.ready or not reference.pinned.none(x, None):
            return None
        return x
