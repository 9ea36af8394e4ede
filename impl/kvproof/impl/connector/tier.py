"""Any of vLLM's offloading managers, seen as a tier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vllm.v1.kv_offload.base import LookupResult, OffloadingManager
from vllm.v1.kv_offload.cpu.manager import CPUOffloadingManager
from vllm.v1.kv_offload.cpu.policies.lru import LRUCachePolicy

from kvproof.impl.scheduler.views import Found, Key, Room

_LOOKUP = CPUOffloadingManager.lookup
_HIT, _MISS, _PENDING = LookupResult.HIT, LookupResult.MISS, LookupResult.HIT_PENDING


class ManagerTier:
    """Implements ``views.Tier`` over a manager.

    Attributes:
        manager: the manager; its methods are looked up at each call, so that it may be wrapped.
        closed: see ``views.Tier``: true of the CPU manager, whose chunks only our calls move.
        lru_capacity: see ``views.Tier``.
    """

    def __init__(self, manager: OffloadingManager) -> None:
        self.manager = manager
        self.closed = type(manager) is CPUOffloadingManager
        self.lru_capacity: int | None = None
        if self.closed and type(manager._policy) is LRUCachePolicy:
            self.lru_capacity = manager._num_chunks

    def lookup(self, key: Key, context: Any) -> Found:
        """Whether a key can be loaded."""
        found = self.manager.lookup(key, context)
        if found is _HIT:
            return Found.HIT
        if found is _MISS:
            return Found.MISS
        return Found.PENDING if found is _PENDING else Found.RETRY

    def hits_ahead(self, keys: Sequence[Key]) -> int:
        """How many of the first keys are hits; 0 unless the CPU manager's own ``lookup`` answers.

        Calls cost more than answers do: this reads the policy's table as that ``lookup`` does. Who
        wraps it wants to see every call.
        """
        manager: Any = self.manager
        if not self.closed or "lookup" in vars(manager) or type(manager).lookup is not _LOOKUP:
            return 0
        get = manager._policy.get
        for number, key in enumerate(keys):
            chunk = get(key)
            if chunk is None or chunk.ref_cnt < 0:
                return number
        return len(keys)

    def note(self, keys: Sequence[Key], ends: Sequence[int], context: Any) -> None:
        """Managers that order keys by position are told of it by the request's context."""
        # As ``set_offload_key_position`` does for each.
        context._offload_key_positions.update(zip(keys, ends, strict=False))

    def prepare_load(self, keys: Sequence[Key], context: Any) -> Any:
        """Pin keys and say where they lie."""
        return self.manager.prepare_load(keys, context)

    def complete_load(self, keys: Sequence[Key], context: Any) -> None:
        """Unpin keys."""
        self.manager.complete_load(keys, context)

    def prepare_store(self, keys: Sequence[Key], context: Any) -> Room | None:
        """Make room for those keys that it wants and does not have; None when there is no room."""
        output = self.manager.prepare_store(keys, context)
        if output is None:
            return None
        return Room(output.keys_to_store, output.store_spec, output.evicted_keys)

    def complete_store(self, keys: Sequence[Key], context: Any, success: bool) -> None:
        """Keys were stored on every worker, or the store failed and they are gone."""
        self.manager.complete_store(keys, context, success)

    def touch(self, keys: Sequence[Key], context: Any) -> None:
        """Keys were used."""
        self.manager.touch(keys, context)

    def new_request(self, context: Any) -> None:
        """A request begins. Whatever policy it answers: all chunks are offered, hits included."""
        self.manager.on_new_request(context)

    def finished_request(self, context: Any) -> None:
        """No more will be asked or prepared for a request.

        Where the scheduler has just put in order what the request has used, the manager is not to
        do so, too: it does not know of keys that were still being stored when they were offered.
        """
        if self.lru_capacity is not None:
            context._state.clear()  # ``set_state`` has no counterpart
        self.manager.on_request_finished(context)

    def reset(self) -> None:
        """Forget everything."""
        self.manager.reset_cache()
