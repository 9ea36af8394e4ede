"""A run's KV-cache groups, as the release describes them; built by hand, without a model."""

from __future__ import annotations

import importlib
from typing import Any

from kvproof.conformance.engines.base import GroupSetup, Setup
from kvproof.conformance.engines.vllm.release import Release, call

PAGE_BYTES = 4096
"""Bytes of a block, the same in all groups. The tier rounds a chunk up to 4096 bytes."""


def kv_cache_config_of(release: Release, setup: Setup) -> Any:
    """The release's ``KVCacheConfig`` for ``setup``: one layer a group, all of one page size."""
    interface = release.cache_interface
    names = [f"layers.{index}" for index in range(len(setup.groups))]
    blocks = setup.num_gpu_blocks + 1
    # All groups overlay the same bytes: a block belongs to one group at a time.
    tensor = call(
        interface.KVCacheTensor,
        size=PAGE_BYTES * blocks,
        shared_by=names,
        layers=names,
        layer_stride=0,
        block_stride=PAGE_BYTES if "layers" in _fields(interface.KVCacheTensor) else 0,
    )
    return interface.KVCacheConfig(
        num_blocks=blocks,
        kv_cache_tensors=[tensor],
        kv_cache_groups=[
            interface.KVCacheGroupSpec(
                [name],
                _spec(interface, group),
                **({"is_eagle_group": True} if group.draft else {}),
            )
            for name, group in zip(names, setup.groups, strict=True)
        ],
    )


def _spec(interface: Any, group: GroupSetup) -> Any:
    torch: Any = importlib.import_module("torch")
    if group.kind == "recurrent":
        return interface.MambaSpec(
            block_size=group.tokens_per_block,
            shapes=((16,),),
            dtypes=(torch.float32,),
            page_size_padded=PAGE_BYTES,
            mamba_cache_mode="align",
        )
    attention: dict[str, Any] = {
        "block_size": group.tokens_per_block,
        "num_kv_heads": 1,
        "head_size": 8,
        "dtype": torch.float16,
        "page_size_padded": PAGE_BYTES,
    }
    if group.kind == "window":
        return interface.SlidingWindowSpec(sliding_window=group.window, **attention)
    if group.kind == "chunked":
        return interface.ChunkedLocalAttentionSpec(attention_chunk_size=group.window, **attention)
    return interface.FullAttentionSpec(**attention)


def _fields(kind: Any) -> frozenset[str]:
    return frozenset(kind.__dataclass_fields__)
