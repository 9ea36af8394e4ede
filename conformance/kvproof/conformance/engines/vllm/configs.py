"""A run's configuration: from ``Setup`` to the release's own configuration objects.

The model configuration costs seconds, so it is built once a process; a run copies the parts that
it changes. No weights exist: the model is a tiny ``config.json`` that only the core's checks read.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import json
import math
import os
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from kvproof.conformance.engines.base import Setup, Unsupported
from kvproof.conformance.engines.vllm.features import RETENTION_VARIABLE, Features
from kvproof.conformance.engines.vllm.groups import PAGE_BYTES, kv_cache_config_of
from kvproof.conformance.engines.vllm.release import Release, call

MAX_MODEL_LEN = 4096

_MODEL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "num_hidden_layers": 2,
    "vocab_size": 256,
    "max_position_embeddings": MAX_MODEL_LEN,
    "rms_norm_eps": 1e-6,
    "torch_dtype": "float32",
    "bos_token_id": 1,
    "eos_token_id": 2,
}


class RunConfig(msgspec.Struct, frozen=True):
    """All that a run's parts are built from.

    Attributes:
        vllm_config: the scheduler's configuration.
        worker_configs: one configuration a worker; they differ in rank.
        kv_cache_config: groups, blocks and pages.
        scheduler_block_size: the core's token alignment.
        tokens_per_hash: tokens of one block hash.
    """

    vllm_config: Any
    worker_configs: list[Any]
    kv_cache_config: Any
    scheduler_block_size: int
    tokens_per_hash: int


def build(release: Release, features: Features, setup: Setup) -> RunConfig:
    """Configuration objects for one run.

    Raises:
        Unsupported: the release itself refuses the combination.
    """
    config = copy.copy(_base(release))
    for part in ("cache_config", "scheduler_config", "parallel_config", "kv_transfer_config"):
        setattr(config, part, copy.copy(getattr(config, part)))
    _scheduler(config.scheduler_config, setup)
    _cache(config.cache_config, setup, features)
    _parallel(config.parallel_config, setup.num_workers, 0)
    _transfer(config.kv_transfer_config, setup, features)
    if any(group.draft for group in setup.groups):
        config.speculative_config = _drafter(release)
    kv_cache_config = kv_cache_config_of(release, setup)
    try:
        block_size, hash_size = release.cache_utils.resolve_kv_cache_block_sizes(
            kv_cache_config, config
        )
    except (ValueError, AssertionError) as error:
        raise Unsupported(f"this release refuses these groups: {error}") from None
    if hasattr(kv_cache_config, "hash_block_size"):
        # Later engine cores resolve these once for the scheduler and the workers.
        kv_cache_config.hash_block_size = hash_size
        kv_cache_config.prefix_cache_retention_interval = setup.retention_interval
        kv_cache_config.cache_hit_alignment_tokens = (
            release.cache_utils.resolve_cache_hit_alignment_tokens(
                kv_cache_config, config, block_size, hash_size
            )
        )
    return RunConfig(
        vllm_config=config,
        worker_configs=[_for_rank(config, setup, rank) for rank in range(setup.num_workers)],
        kv_cache_config=kv_cache_config,
        scheduler_block_size=block_size,
        tokens_per_hash=hash_size,
    )


def _for_rank(config: Any, setup: Setup, rank: int) -> Any:
    worker = copy.copy(config)
    worker.parallel_config = copy.copy(config.parallel_config)
    _parallel(worker.parallel_config, setup.num_workers, rank)
    return worker


def _scheduler(config: Any, setup: Setup) -> None:
    config.max_num_batched_tokens = setup.max_batch_tokens
    config.max_num_seqs = setup.max_running
    config.async_scheduling = setup.asynchronous


def _cache(config: Any, setup: Setup, features: Features) -> None:
    recurrent = [g.tokens_per_block for g in setup.groups if g.kind == "recurrent"]
    # The core reads a recurrent group's block size from here, and releases that hash at the
    # cache's size need one that divides every group's.
    config.block_size = (
        recurrent[0] if recurrent else math.gcd(*(g.tokens_per_block for g in setup.groups))
    )
    config.num_gpu_blocks = setup.num_gpu_blocks + 1
    config.enable_prefix_caching = setup.prefix_caching
    config.mamba_cache_mode = "align" if recurrent else "none"
    if features.retention_interval == "config":
        config.prefix_cache_retention_interval = setup.retention_interval
    elif features.retention_interval == "environment":
        # Read by the core when a scheduler is made, that is: right after this.
        os.environ.pop(RETENTION_VARIABLE, None)
        if setup.retention_interval is not None:
            os.environ[RETENTION_VARIABLE] = str(setup.retention_interval)


def _parallel(config: Any, num_workers: int, rank: int) -> None:
    config.world_size = config.tensor_parallel_size = num_workers
    config.rank = rank


def _transfer(config: Any, setup: Setup, features: Features) -> None:
    chunk_bytes = PAGE_BYTES * setup.num_workers * setup.blocks_per_chunk
    extra: dict[str, Any] = {"cpu_bytes_to_use": chunk_bytes * setup.num_slots}
    if features.chunk_in_blocks:
        extra["blocks_per_chunk"] = setup.blocks_per_chunk
    elif setup.blocks_per_chunk > 1:
        extra["block_size"] = setup.groups[0].tokens_per_block * setup.blocks_per_chunk
    if features.prompt_only:
        # Prompt-only is the default of later releases, so it is always said.
        extra["offload_prompt_only"] = setup.prompt_only
    if setup.store_threshold:
        extra["store_threshold"] = setup.store_threshold
    if setup.eviction != "lru":
        extra["eviction_policy"] = setup.eviction
    if setup.sync_load_bytes:
        extra["sync_load_budget_bytes"] = setup.sync_load_bytes
    config.kv_connector_extra_config = extra
    config.kv_role = setup.kv_role
    config.kv_load_failure_policy = setup.load_failure


@functools.cache
def _drafter(release: Release) -> Any:
    """The release's own ``SpeculativeConfig`` for a drafter of one token, without its model."""
    kind = release.config.SpeculativeConfig
    config = object.__new__(kind)
    for field in dataclasses.fields(kind):
        if field.default is not dataclasses.MISSING:
            object.__setattr__(config, field.name, field.default)
    config.method = "eagle"
    config.num_speculative_tokens = 1
    return config


@functools.cache
def _base(release: Release) -> Any:
    config = release.config
    with tempfile.TemporaryDirectory(prefix="kvproof-model-") as folder:
        (Path(folder) / "config.json").write_text(json.dumps(_MODEL))
        model = call(
            config.ModelConfig,
            model=folder,
            skip_tokenizer_init=True,
            dtype="float32",
            max_model_len=MAX_MODEL_LEN,
            seed=0,
        )
    scheduler = call(
        config.SchedulerConfig,
        max_num_seqs=8,
        max_num_batched_tokens=MAX_MODEL_LEN,
        max_model_len=MAX_MODEL_LEN,
        enable_chunked_prefill=True,
        is_encoder_decoder=False,
        async_scheduling=False,
    )
    cache = call(
        config.CacheConfig,
        block_size=16,
        gpu_memory_utilization=0.5,
        cache_dtype="auto",
        enable_prefix_caching=True,
    )
    transfer = config.KVTransferConfig(
        kv_connector="OffloadingConnector",
        kv_role="kv_both",
        kv_connector_extra_config={"cpu_bytes_to_use": PAGE_BYTES},
    )
    return config.VllmConfig(
        model_config=model,
        scheduler_config=scheduler,
        cache_config=cache,
        parallel_config=config.ParallelConfig(),
        kv_transfer_config=transfer,
        kv_events_config=config.KVEventsConfig(enable_kv_cache_events=True, publisher="null"),
        device_config=config.DeviceConfig("cpu"),
    )
