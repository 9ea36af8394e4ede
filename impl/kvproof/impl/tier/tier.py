"""Which key lies in which slot of host memory, and which of them may be read or given up.

A *residency* is one hand-out of a slot to a key. It begins with an offer (the key is pending), is
readable once the key was stored on every worker, and ends when the key is given up for another, its
store fails, or everything is forgotten. No call raises because of what came before it, but for a
load of what cannot be read; a call that makes no sense is counted and changes nothing.

Invariants (S8, S7): ``_slots`` and the slots that are not free are in bijection; what is pending or
pinned is not given up.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from operator import indexOf
from typing import NamedTuple

from kvproof.impl.scheduler.views import Found, Key, Room
from kvproof.impl.tier.counts import Counts
from kvproof.impl.tier.lru import Lru
from kvproof.impl.tier.order import UNCHAINED
from kvproof.impl.tier.policy import Policy
from kvproof.impl.tier.threshold import Threshold

PENDING = -1
"""What ``pins`` has for a slot that is being stored."""

_LAST = 1 << 62
"""Farther along than any key is in its prefix."""


class Change(NamedTuple):
    """Keys became readable, or were ``removed``."""

    keys: Sequence[Key]
    removed: bool


class NotReadable(LookupError):
    """A key is to be loaded that is not there, or not yet."""


class CpuTier:
    """Implements ``views.Tier``; ``context`` is anything hashable that stands for a request.

    Args:
        capacity: how many slots there are.
        policy: which slot is given up next.
        threshold: a key is stored from this offer of it on; 0 and 1: from the first.
        tracked: keys whose offers are counted, at most.
        tells: whether changes are kept for ``take_changes``.

    Attributes:
        closed: see ``views.Tier``: only the calls of this class move keys.
        counts: what came to pass.
    """

    closed = True
    lru_capacity = None

    def __init__(
        self,
        capacity: int,
        policy: type[Policy] = Lru,
        threshold: int = 0,
        tracked: int = 64_000,
        tells: bool = False,
    ) -> None:
        self.capacity = capacity
        self.counts = Counts()
        self._tells = tells
        self._changes: list[Change] = []
        self._threshold = Threshold(threshold, tracked) if threshold > 1 else None
        self._slots: dict[Key, int] = {}
        self._pending: dict[Key, int] = {}
        self._keys: list[Key] = [b""] * capacity
        self._pins = [0] * capacity
        # The last one is handed out first.
        self._free = list(range(capacity - 1, -1, -1))
        self._ends: Mapping[Key, int] = {}
        # Slots that hold a readable key which nobody loads.
        self._idle = 0
        self.policy = policy(self._pins, self._keys)

    # --- questions ---

    def lookup(self, key: Key, context: Hashable = None) -> Found:
        """Whether a key can be loaded."""
        if key not in self._slots:
            return Found.MISS
        return Found.PENDING if key in self._pending else Found.HIT

    def hits_ahead(self, keys: Sequence[Key]) -> int:
        """How many of the first keys can be loaded."""
        try:
            ahead = indexOf(map(self._slots.__contains__, keys), False)
        except ValueError:
            ahead = len(keys)
        if self._pending and not self._pending.keys().isdisjoint(keys[:ahead]):
            ahead = next(n for n, key in enumerate(keys) if key in self._pending)
        return ahead

    def resident(self) -> list[Key]:
        """The keys that can be loaded."""
        return [key for key in self._slots if key not in self._pending]

    @property
    def has_threshold(self) -> bool:
        """Whether keys may be declined."""
        return self._threshold is not None

    @property
    def used(self) -> int:
        """Slots that hold a key, or are about to."""
        return len(self._slots)

    @property
    def storing(self) -> int:
        """Slots that are being stored."""
        return len(self._pending)

    @property
    def loading(self) -> int:
        """Slots that are pinned by loads."""
        return len(self._slots) - len(self._pending) - self._idle

    # --- loads ---

    def prepare_load(self, keys: Sequence[Key], context: Hashable = None) -> list[int]:
        """Pin keys; their slots.

        Raises:
            NotReadable: one of them cannot be read; none is pinned then.
        """
        pins = self._pins
        slots = [slot for slot in map(self._slots.get, keys) if slot is not None]
        if len(slots) < len(keys) or not self._pending.keys().isdisjoint(keys):
            absent = sum(self.lookup(key) is not Found.HIT for key in keys)
            raise NotReadable(f"{absent} of {len(keys)} keys cannot be read")
        for slot in slots:
            if not pins[slot]:
                self._idle -= 1
            pins[slot] += 1
        self.counts.loaded += len(slots)
        return slots

    def complete_load(self, keys: Sequence[Key], context: Hashable = None) -> None:
        """Unpin keys."""
        pins = self._pins
        for key in keys:
            slot = self._slots.get(key)
            if slot is None or pins[slot] < 1:
                self.counts.unasked += 1
                continue
            pins[slot] -= 1
            if not pins[slot]:
                self._idle += 1

    # --- stores ---

    def prepare_store(self, keys: Sequence[Key], context: Hashable = None) -> Room | None:
        """Make room for those keys that are wanted and not here; None when there is none.

        ``Room.place`` has the slots. Of what is offered nothing is given up.
        """
        slots, free = self._slots, self._free
        fresh = [key for key in keys if key not in slots]
        if len(fresh) > 1:
            fresh = list(dict.fromkeys(fresh))
        threshold, offered = self._threshold, len(fresh)
        if threshold is not None:
            fresh = threshold.wanted(fresh)
        evicted: list[Key] = []
        short = len(fresh) - len(free)
        if short > 0 and not self._make_room(short, keys, context, evicted):
            self.counts.refused += 1
            return None
        if threshold is not None:
            threshold.offered(keys)
            self.counts.declined += offered - len(fresh)
        place = []
        for key in fresh:
            slot = free.pop()
            slots[key] = self._pending[key] = slot
            self._pins[slot], self._keys[slot] = PENDING, key
            place.append(slot)
        if self.policy.chained:
            self._rank(fresh, place)
        if len(fresh) == len(keys):
            self.policy.use(place, context)
        elif here := [slots[key] for key in keys if key in slots]:
            self.policy.use(here, context)
        return Room(fresh, place, evicted)

    def _rank(self, keys: Sequence[Key], slots: Sequence[int]) -> None:
        """Note how far along in their prefixes new keys are; those that nobody told come last."""
        ranks, chained, ends = self.policy.ranks, self.policy.chained, self._ends
        for key, slot in zip(keys, slots, strict=True):
            ranks[slot] = ends.get(key, _LAST) if key[-4:] in chained else UNCHAINED

    def _make_room(
        self, count: int, keys: Sequence[Key], context: Hashable, evicted: list[Key]
    ) -> bool:
        """Give up so many slots for ``keys``, and append their keys to ``evicted``; or none."""
        if count > self._idle:
            return False
        slots, names = self._slots, self._keys
        spared = [slots[key] for key in keys if key in slots]
        victims = self.policy.give_up(count, set(spared) if spared else (), context)
        if victims is None:
            return False
        for slot in victims:
            key = names[slot]
            del slots[key]
            evicted.append(key)
        self._free += victims
        self._idle -= count
        self.counts.evicted += count
        if self._tells:
            self._tell(evicted, True)
        return True

    def complete_store(
        self, keys: Sequence[Key], context: Hashable = None, success: bool = True
    ) -> None:
        """Keys were stored on every worker; or not, and they are gone."""
        done: list[Key] = []
        for key in keys:
            slot = self._pending.pop(key, None)
            if slot is None:
                self.counts.unasked += 1
                continue
            self._pins[slot] = 0
            if success:
                self._idle += 1
                done.append(key)
            else:
                del self._slots[key]
                self.policy.remove(slot)
                self._free.append(slot)
                self.counts.failed += 1
        self.counts.stored += len(done)
        self._tell(done, False)

    # --- uses ---

    def note(self, keys: Sequence[Key], ends: Sequence[int], context: Hashable = None) -> None:
        """Where keys that are about to be offered end in their request."""
        if self.policy.chained:
            self._ends = dict(zip(keys, ends, strict=True))

    def touch(self, keys: Sequence[Key], context: Hashable = None) -> None:
        """Keys were used, the first of them latest; those that are not here are passed over."""
        here = [slot for slot in map(self._slots.get, keys) if slot is not None]
        if here:
            self.policy.touch(here, context)

    def new_request(self, context: Hashable = None) -> None:
        """A request begins."""
        self.policy.begin(context)

    def finished_request(self, context: Hashable = None) -> None:
        """A request has ended."""
        self.policy.forget(context)

    # --- everything ---

    def reset(self) -> None:
        """Forget everything, whatever is under way; nothing completes that was.

        Copies of it may still come. Whoever schedules them waits for them before a slot is used
        again (M7); besides, slots that were in use are the last to be handed out.
        """
        self._tell(self.resident(), True)
        held = [slot for slot in self._slots.values() if self._pins[slot]]
        idle = [slot for slot in self._slots.values() if not self._pins[slot]]
        self._free = [*held, *self._free, *reversed(idle)]
        for slot in (*held, *idle):
            self._pins[slot], self._keys[slot] = 0, b""
        self._slots.clear()
        self._pending.clear()
        self._idle = 0
        self.policy.clear()
        if self._threshold is not None:
            # Every request offers everything again: that must not count twice.
            self._threshold.clear()

    def take_changes(self) -> list[Change]:
        """What became readable and what was removed since the last call, in order.

        Folded over what it was before, this is ``resident()`` (E5).
        """
        changes, self._changes = self._changes, []
        return changes

    def _tell(self, keys: Collection[Key], removed: bool) -> None:
        if self._tells and keys:
            self._changes.append(Change(list(keys), removed))
