"""Workers of vLLM's offloading that give their jobs to one of our copiers."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Protocol

from vllm.logger import init_logger
from vllm.v1.kv_offload.base import (
    CanonicalKVCaches,
    CanonicalKVCacheTensor,
    GPULoadStoreSpec,
    OffloadingWorker,
    TransferResult,
)

from kvproof.impl.connector.config import UnsupportedSetup
from kvproof.impl.transfer.cuda import CudaRuntime, Kernel
from kvproof.impl.transfer.engine import Ended, TransferEngine
from kvproof.impl.transfer.layout import LayoutError
from kvproof.impl.transfer.memory import Bytes, Part, Region, Tier
from kvproof.impl.transfer.pieces import Pieces, pieces
from kvproof.impl.transfer.runtime import Runtime, TransferError

logger = init_logger(f"vllm.{__name__}")  # vLLM shows what is below its own name


class Copier(Protocol):
    """Carries jobs out: ``HostCopier``, or a ``TransferEngine``."""

    def submit_store(self, job: int, moved: Iterable[Pieces]) -> None:
        """KV caches to tier."""
        ...

    def submit_load(self, job: int, moved: Iterable[Pieces]) -> None:
        """Tier to KV caches."""
        ...

    def ended(self) -> Sequence[Ended]:
        """What has ended since the last call."""
        ...

    def wait(self, jobs: Collection[int]) -> None:
        """Return when these have ended."""
        ...

    def shutdown(self) -> None:
        """Let what is under way end."""
        ...


class CopyingWorker(OffloadingWorker):
    """Gives vLLM's jobs to a copier."""

    def __init__(self, copier: Copier, blocks_per_chunk: int) -> None:
        self._copier = copier
        self._blocks_per_chunk = blocks_per_chunk

    def submit_store(self, job_id: int, src_spec: GPULoadStoreSpec, dst_spec: Any) -> bool:
        """KV caches to tier."""
        self._copier.submit_store(job_id, self._pieces(src_spec, dst_spec))
        return True

    def submit_load(self, job_id: int, src_spec: Any, dst_spec: GPULoadStoreSpec) -> bool:
        """Tier to KV caches."""
        self._copier.submit_load(job_id, self._pieces(dst_spec, src_spec))
        return True

    def _pieces(self, gpu: GPULoadStoreSpec, tier: Any) -> list[Pieces]:
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


def parts_of(kv_caches: CanonicalKVCaches) -> list[list[Part]]:
    """Per group, where its blocks lie."""
    return [
        [Part(ref.tensor_idx, ref.page_size_bytes) for ref in group]
        for group in kv_caches.group_data_refs
    ]


def device_worker(
    runtime: Runtime[Any, Any],
    kv_caches: CanonicalKVCaches,
    slots: int,
    blocks_per_chunk: int,
    chunks: Sequence[Bytes],
) -> CopyingWorker:
    """A worker for KV caches on a device.

    Args:
        runtime: the device's.
        kv_caches: where they lie; nothing of them is read here.
        slots: slots of the tier.
        blocks_per_chunk: blocks of a slot.
        chunks: the tier's memory, see ``Tier``.

    Raises:
        UnsupportedSetup: they cannot be copied as they lie, or the device gives no stream.
    """
    try:
        tier = Tier(
            [_region(cache) for cache in kv_caches.tensors],
            parts_of(kv_caches),
            slots,
            blocks_per_chunk,
            chunks,
        )
        engine = TransferEngine(runtime, tier.layout)
    except (ValueError, LayoutError, TransferError) as error:
        raise UnsupportedSetup(f"KV caches cannot be offloaded: {error}") from None
    if engine.unpinned is not None:
        logger.warning("The tier is not pinned, transfers are slower: %s", engine.unpinned)
    return CopyingWorker(engine, blocks_per_chunk)


def cuda_runtime(device: int) -> CudaRuntime:
    """The runtime of one GPU, beside PyTorch's streams.

    Raises:
        UnsupportedSetup: NVIDIA's bindings are not installed, or there is no such GPU.
    """
    import torch

    try:
        return CudaRuntime(
            device, lambda: torch.cuda.current_stream(device).cuda_stream, _kernel(device)
        )
    except TransferError as error:
        raise UnsupportedSetup(str(error)) from None


def _kernel(device: int) -> Kernel | None:
    """The kernel for small pages, where Triton is installed."""
    try:
        module = importlib.import_module("kvproof.impl.transfer.cuda_kernel")
    except ImportError:
        return None
    kernel: Kernel = module.SmallPages(device)
    return kernel


def _region(cache: CanonicalKVCacheTensor) -> Region:
    tensor = cache.tensor
    if tensor.ndim != 2 or tensor.element_size() != 1 or tensor.stride(1) != 1:
        raise ValueError(
            f"a KV cache of {tensor.dtype} and shape {tuple(tensor.shape)} is not blocks of bytes"
        )
    return Region(tensor.data_ptr(), tensor.shape[0], cache.page_size_bytes, tensor.stride(0))
