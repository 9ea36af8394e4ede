"""Our own CPU tier, with our own transfers, for our connector and for the stock one.

    kv_connector_extra_config={
        "spec_name": "KvproofOffloadingSpec",
        "spec_module_path": "kvproof.impl.connector.own_tier",
        "cpu_bytes_to_use": 1 << 30,
    }

It reads the keys that vLLM's own CPU tier reads: ``eviction_policy`` ("lru", "arc", or a class of
the module at ``cache_policy_module_path``, see ``impl.tier.policy``), ``store_threshold`` and
``max_tracker_size``.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence
from itertools import accumulate

from vllm.v1.kv_offload.base import CanonicalKVCaches, OffloadingManager, OffloadingWorker

from kvproof.impl.connector.config import UnsupportedSetup
from kvproof.impl.connector.copying import cuda_runtime, device_worker
from kvproof.impl.connector.own_manager import KvproofManager
from kvproof.impl.connector.spec import HostOffloadingSpec
from kvproof.impl.tier.policy import policy
from kvproof.impl.tier.region import Region, RegionError
from kvproof.impl.tier.tier import CpuTier
from kvproof.impl.transfer.memory import Bytes


class KvproofOffloadingSpec(HostOffloadingSpec):
    """Sizes are vLLM's own; the manager, the memory and the worker are ours."""

    _manager: OffloadingManager | None

    def get_manager(self) -> KvproofManager:
        """The manager; the same one on every call.

        Raises:
            UnsupportedSetup: there is no such eviction policy.
        """
        if not isinstance(self._manager, KvproofManager):
            try:
                kind = policy(self.eviction_policy, self.cache_policy_module_path)
            except ValueError as error:
                raise UnsupportedSetup(f"eviction_policy: {error}") from None
            self._manager = KvproofManager(
                CpuTier(
                    self.num_chunks,
                    kind,
                    int(self.extra_config.get("store_threshold", 0)),
                    int(self.extra_config.get("max_tracker_size", 64_000)),
                    self.kv_events_config.enable_kv_cache_events,
                )
            )
        return self._manager

    def get_worker(self, kv_caches: CanonicalKVCaches) -> OffloadingWorker:
        """The worker of these KV caches, on a GPU or in host memory; the same one on every call.

        Raises:
            UnsupportedSetup: they are elsewhere, or there is no memory, no GPU or no room.
        """
        kinds = {cache.tensor.device.type for cache in kv_caches.tensors}
        if self._worker is None and kinds == {"cuda"}:
            self.check()
            devices = {cache.tensor.device.index or 0 for cache in kv_caches.tensors}
            if len(devices) > 1:
                raise UnsupportedSetup(f"KV caches of one worker lie on devices {sorted(devices)}")
            self._worker = device_worker(
                cuda_runtime(devices.pop()),
                kv_caches,
                self.num_chunks,
                self.blocks_per_chunk,
                self.slots([cache.page_size_bytes for cache in kv_caches.tensors]),
            )
        return super().get_worker(kv_caches)

    def slots(self, pages: Sequence[int]) -> list[Bytes]:
        """Of each region of the KV caches, the tier's bytes: (slots, blocks of a chunk, page).

        Raises:
            UnsupportedSetup: there is no memory for them.
        """
        shapes = [(self.num_chunks, self.blocks_per_chunk, page) for page in pages]
        # Each begins with a page of memory, since a device pins whole ones.
        ends = list(accumulate(-(-math.prod(s) // mmap.PAGESIZE) * mmap.PAGESIZE for s in shapes))
        parallel = self.config.parallel
        try:
            self._region = Region(
                ends[-1], parallel.world_size, parallel.rank, self.config.engine_id
            )
        except RegionError as error:
            raise UnsupportedSetup(str(error)) from None
        part = self._region.part
        return [
            part[first:][: math.prod(shape)].reshape(shape)
            for first, shape in zip([0, *ends], shapes, strict=False)
        ]
