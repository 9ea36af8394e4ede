"""A trace's header for one run of a release."""

from __future__ import annotations

from kvproof.conformance.engines.base import Setup
from kvproof.conformance.engines.vllm.copier import LANES
from kvproof.conformance.engines.vllm.features import Features
from kvproof.conformance.trace.events import SCHEMA_VERSION, GroupGeometry, Header


def header(target: str, setup: Setup, features: Features, tokens_per_hash: int) -> Header:
    """Sizes, the release's features, and the settings of this run."""
    return Header(
        schema=SCHEMA_VERSION,
        target=target,
        groups=[
            GroupGeometry(group.kind, group.tokens_per_block, group.window, group.draft)
            for group in setup.groups
        ],
        blocks_per_chunk=setup.blocks_per_chunk,
        tokens_per_hash=tokens_per_hash,
        num_gpu_blocks=setup.num_gpu_blocks,
        num_slots=setup.num_slots,
        num_workers=setup.num_workers,
        lanes=LANES,
        features=features.header(),
        options={
            "asynchronous": setup.asynchronous,
            "eviction": setup.eviction,
            "kv_role": setup.kv_role,
            "load_failure": setup.load_failure,
            "max_batch_tokens": setup.max_batch_tokens,
            "max_running": setup.max_running,
            "prefix_caching": setup.prefix_caching,
            "prompt_only": setup.prompt_only,
            "retention_interval": setup.retention_interval,
            "second_connector": setup.second_connector,
            "store_threshold": setup.store_threshold,
            "sync_load_bytes": setup.sync_load_bytes,
            "tier": setup.tier,
            **({"device": setup.device} if setup.device else {}),
        },
    )
