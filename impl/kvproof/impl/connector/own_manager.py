"""Our own CPU tier as one of vLLM's offloading managers, for our scheduler and the stock one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from vllm.distributed.kv_transfer.kv_connector.v1.offloading.metrics import (
    OffloadingConnectorStats,
)
from vllm.v1.kv_offload.base import (
    LookupResult,
    Medium,
    OffloadingEvent,
    OffloadingManager,
    PrepareStoreOutput,
    RequestOffloadingContext,
)
from vllm.v1.kv_offload.cpu.common import CPULoadStoreSpec, CPUOffloadingMetrics
from vllm.v1.metrics.cache_hit_source import CacheHitSource

from kvproof.impl.connector.tier import ManagerTier
from kvproof.impl.scheduler.geometry import Geometry, Kind
from kvproof.impl.scheduler.views import Found, Key, Room
from kvproof.impl.tier.tier import CpuTier

_ANSWERS = {
    Found.MISS: LookupResult.MISS,
    Found.PENDING: LookupResult.HIT_PENDING,
    Found.HIT: LookupResult.HIT,
}


class SlotSpec(CPULoadStoreSpec):
    """Slots, as vLLM's workers are told of them; an array only where it is read."""

    def __init__(self, slots: Sequence[int]) -> None:
        self._slots = slots

    @property
    def block_ids(self) -> Any:
        """The slots, an array of int32."""
        return np.array(self._slots, np.int32)


class _Used:
    """What a request has used, in a state that its context carries; ``tier`` knows the keys.

    ``life`` is how often the tier had been emptied.
    """

    def __init__(self, life: int) -> None:
        self.keys: dict[Key, None] = {}
        self.life = life


class KvproofManager(OffloadingManager):
    """vLLM's calls, answered by a ``CpuTier``.

    Attributes:
        tier: the tier.
        remembers: what each request used is touched when it ends, heads last to leave; switched off
            by a scheduler that touches keys itself.
    """

    def __init__(self, tier: CpuTier) -> None:
        self.tier = tier
        self.remembers = True
        self._life = 0
        # Two requests that are there at the same time may have one id; their contexts are two.
        self._users: dict[int, int] = {}
        self._next_user = 0
        self._declined = 0
        self._offers: Counter[int] = Counter()

    @property
    def capacity(self) -> int:
        """How many slots there are."""
        return self.tier.capacity

    def user(self, context: Any) -> int:
        """Whom the tier knows a request as, until it has ended."""
        user = self._users.get(id(context))
        if user is None:
            user = self._users[id(context)] = self._next_user
            self._next_user += 1
        return user

    # --- questions ---

    def lookup(self, key: Key, req_context: Any) -> LookupResult:
        """Whether a key can be loaded."""
        return _ANSWERS[self.tier.lookup(key)]

    def get_load_source(self, key: Key, req_context: Any) -> CacheHitSource:
        """All of it lies in host memory."""
        return CacheHitSource.HOST

    # --- transfers ---

    def prepare_load(self, keys: Collection[Key], req_context: Any) -> SlotSpec:
        """Pin keys and say where they lie."""
        asked = list(keys)
        slots = self.tier.prepare_load(asked)
        self._use(asked, req_context)
        return SlotSpec(slots)

    def complete_load(self, keys: Collection[Key], req_context: Any) -> None:
        """Unpin keys."""
        self.tier.complete_load(list(keys))

    def prepare_store(self, keys: Collection[Key], req_context: Any) -> PrepareStoreOutput | None:
        """Make room for those keys that are wanted and not here; None when there is none."""
        offered = list(keys)
        self._use(offered, req_context)
        room = self.tier.prepare_store(offered, self.user(req_context))
        if room is None:
            return None
        self.granted(len(room.keys))
        return PrepareStoreOutput(list(room.keys), SlotSpec(room.place), list(room.evicted))

    def complete_store(self, keys: Collection[Key], req_context: Any, success: bool = True) -> None:
        """Keys were stored on every worker, or the store failed and they are gone."""
        self.tier.complete_store(list(keys), success=success)

    def granted(self, chunks: int) -> None:
        """So many chunks were taken of an offer."""
        if chunks:
            self._offers[chunks] += 1

    # --- uses ---

    def touch(self, keys: Collection[Key], req_context: Any) -> None:
        """Keys were used, the first of them latest."""
        self.tier.touch(list(keys), self.user(req_context))

    def _use(self, keys: Iterable[Key], context: Any) -> None:
        if self.remembers:
            used = context.get_state(_Used)
            if used is None or used.life != self._life:
                used = _Used(self._life)
                context.set_state(used)
            used.keys.update(dict.fromkeys(keys))

    def on_new_request(self, req_context: Any) -> RequestOffloadingContext:
        """A request begins."""
        self.tier.new_request(self.user(req_context))
        return RequestOffloadingContext()

    def on_request_finished(self, req_context: Any) -> None:
        """A request has ended: what it used was used now."""
        user, used = self.user(req_context), req_context.get_state(_Used)
        if used is not None and used.life == self._life and used.keys:
            self.tier.touch(_in_order(list(used.keys), req_context), user)
            used.keys.clear()
        self.tier.finished_request(user)
        del self._users[id(req_context)]

    # --- everything ---

    def reset_cache(self) -> None:
        """Forget everything."""
        self._life += 1
        self.tier.reset()

    def take_events(self) -> Iterator[OffloadingEvent]:
        """What became readable and what was removed since the last call; by a reset, too."""
        for change in self.tier.take_changes():
            yield OffloadingEvent(list(change.keys), Medium.CPU, change.removed)

    def get_stats(self) -> OffloadingConnectorStats:
        """What vLLM counts of its own CPU tier, under the same names."""
        tier, stats = self.tier, OffloadingConnectorStats()
        for name, slots in (
            (CPUOffloadingMetrics.CPU_CACHE_USAGE_PERC, tier.storing + tier.loading),
            (CPUOffloadingMetrics.CPU_CACHE_WRITE_USAGE_PERC, tier.storing),
            (CPUOffloadingMetrics.CPU_CACHE_READ_USAGE_PERC, tier.loading),
        ):
            stats.set_gauge(name, slots / max(1, tier.capacity))
        offers, self._offers = self._offers, Counter()
        for chunks in offers.elements():
            stats.observe_histogram(CPUOffloadingMetrics.CPU_ALLOCATION_SIZE, chunks)
        if tier.has_threshold:
            declined, self._declined = self._declined, tier.counts.declined
            stats.increase_counter(
                CPUOffloadingMetrics.STORES_SKIPPED, tier.counts.declined - declined
            )
        return stats


def _in_order(keys: list[Key], context: Any) -> list[Key]:
    """Keys by where they end in their request, if that is known of all."""
    ends = {key: context.get_offload_key_position(key) for key in keys}
    if None not in ends.values():
        keys.sort(key=ends.__getitem__)
    return keys


# --- for our scheduler ---


class OwnTier(ManagerTier):
    """Our own tier without the way through vLLM's words, unless somebody listens to a call.

    Whoever puts something in the place of one of the manager's methods sees every call of it.
    """

    manager: KvproofManager

    def __init__(self, manager: KvproofManager, sizes: Geometry) -> None:
        super().__init__(manager)
        self.closed = True
        self._tier = manager.tier
        self._heard = vars(manager)
        manager.remembers = False
        # All of a full group is needed at once, so its heads must outlive its tails (E7).
        self._tier.policy.chained = frozenset(
            group.suffix for group in sizes.groups if group.kind is Kind.FULL
        )

    def lookup(self, key: Key, context: Any) -> Found:
        """Whether a key can be loaded."""
        if "lookup" in self._heard:
            return super().lookup(key, context)
        return self._tier.lookup(key)

    def hits_ahead(self, keys: Sequence[Key]) -> int:
        """How many of the first keys are hits; 0 where every single lookup is to be heard."""
        return 0 if "lookup" in self._heard else self._tier.hits_ahead(keys)

    def note(self, keys: Sequence[Key], ends: Sequence[int], context: Any) -> None:
        """Where keys end in their request."""
        self._tier.note(keys, ends)

    def prepare_store(self, keys: Sequence[Key], context: Any) -> Room | None:
        """Make room for those keys that it wants and does not have; None when there is no room."""
        if "prepare_store" in self._heard:
            return super().prepare_store(keys, context)
        room = self._tier.prepare_store(keys, self.manager.user(context))
        if room is None:
            return None
        self.manager.granted(len(room.keys))
        return Room(room.keys, SlotSpec(room.place), room.evicted)

    def complete_store(self, keys: Sequence[Key], context: Any, success: bool) -> None:
        """Keys were stored on every worker, or the store failed and they are gone."""
        if "complete_store" in self._heard:
            super().complete_store(keys, context, success)
        else:
            self._tier.complete_store(keys, success=success)


def tier_of(manager: OffloadingManager, sizes: Geometry) -> ManagerTier:
    """A manager as the scheduler's tier."""
    if isinstance(manager, KvproofManager):
        return OwnTier(manager, sizes)
    return ManagerTier(manager)
