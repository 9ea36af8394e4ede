"""A tier in host memory for KV caches in host memory: vLLM's CPU builds, and tests.

    kv_connector_extra_config={
        "spec_name": "HostOffloadingSpec",
        "spec_module_path": "kvproof.impl.connector.spec",
        "cpu_bytes_to_use": 1 << 30,
    }

Manager, sizes and metrics are vLLM's own; its copy worker serves devices only, so this one is ours.
The stock connector can use it as well.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from vllm.v1.kv_offload.base import (
    CanonicalKVCaches,
    CanonicalKVCacheTensor,
    OffloadingWorker,
)
from vllm.v1.kv_offload.cpu.spec import CPUOffloadingSpec

from kvproof.impl.connector.config import UnsupportedSetup
from kvproof.impl.connector.copying import CopyingWorker, parts_of
from kvproof.impl.transfer.host import HostCopier
from kvproof.impl.transfer.memory import Bytes, HostMemory


class HostOffloadingWorker(CopyingWorker):
    """Copies within host memory. ``memory`` has the bytes on both sides."""

    def __init__(self, memory: HostMemory, blocks_per_chunk: int) -> None:
        super().__init__(HostCopier(memory), blocks_per_chunk)
        self.memory = memory


class HostOffloadingSpec(CPUOffloadingSpec):
    """vLLM's CPU tier, with a worker that copies within host memory."""

    worker_class: type[HostOffloadingWorker] = HostOffloadingWorker
    _worker: OffloadingWorker | None

    def get_worker(self, kv_caches: CanonicalKVCaches) -> OffloadingWorker:
        """The worker of these KV caches; the same one on every call.

        Raises:
            UnsupportedSetup: the KV caches are elsewhere, or there is no room for a single chunk.
        """
        if self._worker is None:
            self.check()
            regions = [_bytes(tensor) for tensor in kv_caches.tensors]
            memory = HostMemory(
                regions,
                parts_of(kv_caches),
                self.num_chunks,
                self.blocks_per_chunk,
                self.slots([region.shape[1] for region in regions]),
            )
            self._worker = self.worker_class(memory, self.blocks_per_chunk)
        return self._worker

    def check(self) -> None:
        """See that this tier can serve at all.

        Raises:
            UnsupportedSetup: it cannot.
        """
        if self.config.canonical_layout:
            raise UnsupportedSetup(f"{type(self).__name__} does not serve canonical_layout")
        if self.num_chunks < 1:
            raise UnsupportedSetup(
                f"cpu_bytes_to_use in kv_connector_extra_config must be at least"
                f" {self.kv_bytes_per_chunk}, the bytes of one chunk"
            )

    def slots(self, pages: Sequence[int]) -> Sequence[Bytes] | None:
        """Memory for the tier, of KV caches with pages of so many bytes; see ``HostMemory.chunks``.

        None: memory of this process.
        """
        return None


def _bytes(cache: CanonicalKVCacheTensor) -> Bytes:
    """A KV cache as an array of bytes, (blocks, bytes of a page), in the cache's own memory."""
    tensor = cache.tensor
    if tensor.device.type != "cpu":
        raise UnsupportedSetup(
            f"HostOffloadingSpec serves KV caches in host memory, not on {tensor.device};"
            " leave spec_name out there"
        )
    array: Bytes = tensor.numpy()
    if array.dtype != np.int8 or array.ndim != 2 or array.shape[1] != cache.page_size_bytes:
        raise UnsupportedSetup(
            f"a KV cache of {array.dtype} and shape {array.shape} is not"
            f" blocks of {cache.page_size_bytes} bytes"
        )
    return array
