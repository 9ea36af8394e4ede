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
from typing import Any

import numpy as np
from vllm.logger import init_logger
from vllm.v1.kv_offload.base import (
    CanonicalKVCaches,
    CanonicalKVCacheTensor,
    GPULoadStoreSpec,
    OffloadingWorker,
    TransferResult,
)
from vllm.v1.kv_offload.cpu.spec import CPUOffloadingSpec

from kvproof.impl.connector.config import UnsupportedSetup
from kvproof.impl.transfer.host import HostCopier
from kvproof.impl.transfer.memory import Bytes, HostMemory, Part
from kvproof.impl.transfer.pieces import pieces

logger = init_logger(f"vllm.{__name__}")  # vLLM shows what is below its own name


class HostOffloadingWorker(OffloadingWorker):
    """Gives vLLM's jobs to a copier. ``memory`` has the bytes on both sides."""

    def __init__(self, memory: HostMemory, blocks_per_chunk: int) -> None:
        self.memory = memory
        self._copier = HostCopier(memory)
        self._blocks_per_chunk = blocks_per_chunk

    def submit_store(self, job_id: int, src_spec: GPULoadStoreSpec, dst_spec: Any) -> bool:
        """KV caches to tier."""
        self._copier.submit_store(job_id, self._pieces(src_spec, dst_spec))
        return True

    def submit_load(self, job_id: int, src_spec: Any, dst_spec: GPULoadStoreSpec) -> bool:
        """Tier to KV caches."""
        self._copier.submit_load(job_id, self._pieces(dst_spec, src_spec))
        return True

    def _pieces(self, gpu: GPULoadStoreSpec, tier: Any) -> Any:
        per = self._blocks_per_chunk
        return pieces(gpu.block_ids, gpu.group_sizes, gpu.block_indices, tier.block_ids, per)

    def get_finished(self) -> list[TransferResult]:
        """What has ended since the last call."""
        results = []
        for end in self._copier.ended():
            if end.error is not None:
                logger.error("KV transfer job %d failed: %s", end.job, end.error)
            results.append(TransferResult(end.job, end.error is None, end.size, end.seconds))
        return results

    def wait(self, job_ids: set[int]) -> None:
        """Return when these jobs have ended."""
        self._copier.wait(job_ids)

    def shutdown(self) -> None:
        """Let what is under way end."""
        self._copier.shutdown()


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
            if self.config.canonical_layout:
                raise UnsupportedSetup("HostOffloadingSpec does not serve canonical_layout")
            if self.num_chunks < 1:
                raise UnsupportedSetup(
                    f"cpu_bytes_to_use in kv_connector_extra_config must be at least"
                    f" {self.kv_bytes_per_chunk}, the bytes of one chunk"
                )
            regions = [_bytes(tensor) for tensor in kv_caches.tensors]
            parts = [
                [Part(ref.tensor_idx, ref.page_size_bytes) for ref in group]
                for group in kv_caches.group_data_refs
            ]
            memory = HostMemory(
                regions, parts, self.num_chunks, self.blocks_per_chunk, self.slots(regions)
            )
            self._worker = self.worker_class(memory, self.blocks_per_chunk)
        return self._worker

    def slots(self, regions: Sequence[Bytes]) -> Sequence[Bytes] | None:
        """Memory for the tier, see ``HostMemory.chunks``; None: memory of this process."""
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
