"""The tier against lists and loops, whatever is asked of it in whatever order."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from kvproof.impl.scheduler.views import Found, Key
from kvproof.impl.tier.arc import Arc
from kvproof.impl.tier.lru import Lru
from kvproof.impl.tier.tier import CpuTier
from tests.impl.plain_tier import PlainTier

CHAINED, PLAIN = bytes(4), bytes(3) + b"\x01"
KEYS: list[Key] = [bytes([number]) + group for number in range(8) for group in (CHAINED, PLAIN)]
USERS = ("a", "b", "c")

some_keys = st.lists(st.sampled_from(KEYS), unique=True, min_size=1, max_size=4).map(sorted)
users = st.sampled_from(USERS)


class Tiers(RuleBasedStateMachine):
    """Both tiers, and what is under way in them."""

    policy: Any = Lru
    exact = True

    def __init__(self) -> None:
        super().__init__()
        self.stores: list[list[Key]] = []
        self.loads: list[list[Key]] = []
        self.told: set[Key] = set()

    @initialize(
        capacity=st.integers(1, 5),
        chained=st.sampled_from([(), (CHAINED,)]),
        threshold=st.sampled_from([0, 0, 0, 2, 3]),
    )
    def begin(self, capacity: int, chained: tuple[bytes, ...], threshold: int) -> None:
        self.tier = CpuTier(capacity, self.policy, threshold, tells=True)
        self.tier.policy.chained = chained
        self.plain = PlainTier(capacity, chained, threshold)

    @rule(keys=some_keys, user=users)
    def store(self, keys: list[Key], user: str) -> None:
        """Most stores succeed, and soon."""
        before = len(self.stores)
        self.offer(keys, user)
        if len(self.stores) > before:
            self.complete(self.stores.pop(), True)

    @rule(keys=some_keys, user=users)
    def offer(self, keys: list[Key], user: str) -> None:
        slots = {key: self.tier._slots[key] for key in self.tier._slots}
        self.tier.note(keys, [key[0] for key in keys])
        room = self.tier.prepare_store(keys, user)
        if not self.exact:
            self.offer_to_any(keys, user, room)
        else:
            expected = self.plain.offer(keys, user)
            assert (room and (room.keys, list(room.evicted))) == expected
        if room is not None:
            taken = {slot for key, slot in slots.items() if key not in room.evicted}
            assert taken.isdisjoint(room.place)
            assert len(set(room.place)) == len(room.place) == len(room.keys)
            if room.keys:
                self.stores.append(list(room.keys))

    def offer_to_any(self, keys: list[Key], user: str, room: Any) -> None:
        """Whatever the policy picks may leave, and the rest of the answer follows from that."""
        plain = self.plain
        here, idle = plain.here(), {key for key in plain.here() if not plain.held(key)}
        wanted = [
            key for key in keys if key not in here and plain.offers[key] + 1 >= plain.threshold
        ]
        short = max(0, len(here) + len(wanted) - plain.capacity)
        if room is None:
            assert short > len(idle - set(keys)) or plain.chained
            return
        assert room.keys == wanted
        assert len(room.evicted) == short
        assert set(room.evicted) <= idle - set(keys)
        for key in room.evicted:
            plain.order.remove(key)
        plain.offers.update(keys)
        plain.pending.update(wanted)
        plain.order += wanted

    @precondition(lambda self: self.stores)
    @rule(data=st.data(), success=st.booleans())
    def end_store(self, data: st.DataObject, success: bool) -> None:
        keys = self.stores.pop(data.draw(st.integers(0, len(self.stores) - 1)))
        self.complete(keys, success)

    def complete(self, keys: list[Key], success: bool) -> None:
        self.tier.complete_store(keys, "", success)
        for key in keys:
            self.plain.stored(key, success)

    @precondition(lambda self: self.plain.readable())
    @rule(data=st.data())
    def load(self, data: st.DataObject) -> None:
        readable = sorted(self.plain.readable())
        keys = data.draw(st.lists(st.sampled_from(readable), unique=True, min_size=1, max_size=3))
        assert self.tier.prepare_load(keys) == [self.tier._slots[key] for key in keys]
        self.plain.pin(keys)
        self.loads.append(keys)

    @precondition(lambda self: self.loads)
    @rule(data=st.data())
    def end_load(self, data: st.DataObject) -> None:
        keys = self.loads.pop(data.draw(st.integers(0, len(self.loads) - 1)))
        self.tier.complete_load(keys)
        self.plain.unpin(keys)

    @rule(keys=some_keys, user=users)
    def touch(self, keys: list[Key], user: str) -> None:
        self.tier.touch(keys, user)
        if self.exact:
            self.plain.touch(keys, user)

    @rule(user=users)
    def begin_request(self, user: str) -> None:
        self.tier.new_request(user)
        if self.exact:
            self.plain.begin(user)

    @rule(user=users)
    def finish(self, user: str) -> None:
        self.tier.finished_request(user)
        self.plain.finish(user) if self.exact else None

    @rule()
    def reset(self) -> None:
        self.tier.reset()
        self.plain.reset()
        self.stores.clear()
        self.loads.clear()

    @rule(keys=some_keys)
    def complete_what_is_not_under_way(self, keys: list[Key]) -> None:
        self.tier.complete_store([key for key in keys if key not in self.plain.pending])
        self.tier.complete_load([key for key in keys if not self.plain.pins[key]])

    @invariant()
    def the_same_keys_are_there(self) -> None:
        if not hasattr(self, "tier"):
            return
        tier, plain = self.tier, self.plain
        assert set(tier.resident()) == plain.readable()
        found = {key: Found.PENDING if key in plain.pending else Found.HIT for key in plain.here()}
        assert [tier.lookup(key) for key in KEYS] == [found.get(key, Found.MISS) for key in KEYS]
        hits = [key in plain.readable() for key in KEYS]
        assert [tier.hits_ahead(KEYS[first:]) for first in range(len(KEYS))] == [
            [*hits[first:], False].index(False) for first in range(len(KEYS))
        ]

    @invariant()
    def slots_and_keys_match(self) -> None:
        if not hasattr(self, "tier"):
            return
        tier, plain = self.tier, self.plain
        used = sorted(tier._slots.values())
        assert sorted([*used, *tier._free]) == list(range(tier.capacity))
        assert all(tier._keys[slot] == key for key, slot in tier._slots.items())
        pinned = sum(1 for key in plain.readable() if plain.pins[key])
        assert (tier.used, tier.storing, tier.loading) == (
            len(plain.here()),
            len(plain.pending),
            pinned,
        )

    @invariant()
    def events_tell_who_is_there(self) -> None:
        if not hasattr(self, "tier"):
            return
        for change in self.tier.take_changes():
            if change.removed:
                assert self.told >= set(change.keys)
                self.told -= set(change.keys)
            else:
                assert self.told.isdisjoint(change.keys)
                self.told |= set(change.keys)
        assert self.told == self.plain.readable()

    @invariant()
    def the_order_is_the_same(self) -> None:
        if not hasattr(self, "tier") or not self.exact:
            return
        policy: Any = self.tier.policy
        order = [self.tier._keys[slot] for slot in policy._order]
        assert order == self.plain.order
        assert len(policy._order) == len(order)


class ArcTiers(Tiers):
    policy = Arc
    exact = False

    @invariant()
    def a_slot_is_in_one_part(self) -> None:
        if hasattr(self, "tier"):
            arc: Any = self.tier.policy
            parts = [*arc._recent, *arc._frequent]
            assert sorted(parts) == sorted(self.tier._slots.values())
            assert len(arc._recent) + len(arc._left_recent) <= self.tier.capacity
            remembered = len(arc._left_recent) + len(arc._left_frequent)
            assert len(parts) + remembered <= 2 * self.tier.capacity
            assert 0 <= arc.target <= self.tier.capacity


def test_the_tier_does_what_lists_and_loops_do() -> None:
    run_state_machine_as_test(Tiers, settings=settings(max_examples=100, stateful_step_count=40))


def test_with_arc_only_what_may_leave_does() -> None:
    run_state_machine_as_test(ArcTiers, settings=settings(max_examples=100, stateful_step_count=40))
