"""From vLLM's configuration to ours: sizes, options, and what is refused at the start."""

from __future__ import annotations

from typing import Any

from vllm.distributed.kv_transfer.kv_connector.v1.offloading.scheduler import (
    SchedulerOffloadConfig,
)
from vllm.logger import init_logger
from vllm.v1.kv_cache_interface import (
    ChunkedLocalAttentionSpec,
    FullAttentionSpec,
    MambaSpec,
    SlidingWindowSpec,
)
from vllm.v1.kv_offload.base import OffloadingSpec
from vllm.v1.kv_offload.cpu.spec import CPUOffloadingSpec

from kvproof.impl.scheduler.geometry import Geometry, Kind, geometry
from kvproof.impl.scheduler.scheduler import Options
from kvproof.impl.scheduler.stores import StorePolicy

logger = init_logger(f"vllm.{__name__}")  # vLLM shows what is below its own name

KNOWN_KEYS = frozenset(
    {
        "backpressure",
        "block_size",
        "blocks_per_chunk",
        "cache_policy_module_path",
        "canonical_layout",
        "cpu_bytes_to_use",
        "enable_telemetry",
        "eviction_policy",
        "max_tracker_size",
        "offload_prompt_only",
        "secondary_tiers",
        "self_describing_kv_events",
        "shadow",
        "spec_module_path",
        "spec_name",
        "store_threshold",
    }
)
"""Keys of ``kv_connector_extra_config`` that this connector, or a known tier under it, reads."""

_KNOWN_MODULES = (None, "kvproof.impl.connector.own_tier", "kvproof.impl.connector.spec")
"""Values of ``spec_module_path`` whose tiers read no other keys."""

_TYPES: tuple[tuple[str, tuple[type, ...], str], ...] = (
    ("blocks_per_chunk", (int,), "an integer"),
    ("block_size", (int,), "an integer"),
    ("cpu_bytes_to_use", (int, float), "a number"),  # a share of a GiB comes as a float
    ("offload_prompt_only", (bool,), "true or false"),
    ("store_threshold", (int,), "an integer"),
    ("max_tracker_size", (int,), "an integer"),
    ("canonical_layout", (bool,), "true or false"),
    ("self_describing_kv_events", (bool,), "true or false"),
    ("shadow", (bool,), "true or false"),
    ("eviction_policy", (str,), "a string"),
)


class UnsupportedSetup(ValueError):
    """This connector does not serve such a setup; the message says what stands in the way."""


def check(vllm_config: Any, kv_cache_config: Any) -> None:
    """Refuse what is not served.

    Raises:
        UnsupportedSetup: an unknown key, a wrong type, or a feature that is not built.
    """
    extra = vllm_config.kv_transfer_config.kv_connector_extra_config
    if extra.get("spec_module_path") in _KNOWN_MODULES:
        unknown = sorted(set(extra) - KNOWN_KEYS)
        if unknown:
            raise UnsupportedSetup(
                f"unknown key in kv_connector_extra_config: {', '.join(unknown)};"
                f" known are {', '.join(sorted(KNOWN_KEYS))}"
            )
    for key, types, wanted in _TYPES:
        if key in extra and type(extra[key]) not in types:
            raise UnsupportedSetup(
                f"{key} in kv_connector_extra_config must be {wanted},"
                f" not {type(extra[key]).__name__}"
            )
    parallel = vllm_config.parallel_config
    if parallel.decode_context_parallel_size > 1 or parallel.prefill_context_parallel_size > 1:
        raise UnsupportedSetup("context parallelism is not supported by this connector yet")
    if kv_cache_config.hisparse_host_num_blocks is not None:
        raise UnsupportedSetup("host-resident sparse attention is not supported by this connector")


def check_room(spec: OffloadingSpec) -> None:
    """Refuse a tier in host memory that holds nothing.

    Raises:
        UnsupportedSetup: it has less room than one chunk takes.
    """
    if isinstance(spec, CPUOffloadingSpec) and spec.kv_bytes_per_chunk and spec.num_chunks < 1:
        raise UnsupportedSetup(
            f"cpu_bytes_to_use in kv_connector_extra_config must be at least"
            f" {spec.kv_bytes_per_chunk}, the bytes of one chunk"
        )


def geometry_of(spec: OffloadingSpec, kv_cache_config: Any) -> Geometry:
    """The sizes of the groups that are offloaded.

    Raises:
        UnsupportedSetup: a group's kind is not served, or its sizes do not fit together.
    """
    groups = []
    for group in spec.config.groups:
        cache_group = kv_cache_config.kv_cache_groups[group.group_id]
        kind, window = _kind(cache_group.kv_cache_spec)
        draft = bool(cache_group.is_eagle_group)
        groups.append((group.group_id, kind, group.tokens_per_block, window, draft))
    try:
        return geometry(groups, spec.blocks_per_chunk, spec.tokens_per_hash)
    except ValueError as error:
        raise UnsupportedSetup(str(error)) from None


def _kind(spec: Any) -> tuple[Kind, int]:
    match spec:
        case SlidingWindowSpec():
            return Kind.WINDOW, spec.sliding_window + spec.extra_retained_tokens
        case ChunkedLocalAttentionSpec():
            return Kind.CHUNKED, spec.attention_chunk_size
        case MambaSpec() if spec.mamba_cache_mode == "align":
            return Kind.RECURRENT, 0
        case FullAttentionSpec():
            return Kind.FULL, 0
    raise UnsupportedSetup(f"KV-cache groups of kind {type(spec).__name__} are not supported")


def layouts_of(spec: OffloadingSpec, vllm_config: Any, kv_cache_config: Any) -> dict[int, Any]:
    """The stock description of each group, by its number; events are told with it.

    Raises:
        UnsupportedSetup: the stock connector does not take such a setup.
    """
    try:
        stock = SchedulerOffloadConfig.from_spec(spec, vllm_config, kv_cache_config)
    except (ValueError, AssertionError) as error:
        raise UnsupportedSetup(str(error)) from None
    if stock.supports_partial_tail:
        logger.warning(
            "prefix_match_unit is smaller than a block: what lies beyond a prompt's last whole"
            " block is not offloaded by this connector yet, it is computed"
        )
    return {group.group_idx: group for group in stock.kv_group_configs}


def options_of(spec: OffloadingSpec, vllm_config: Any) -> Options:
    """Settings of one engine."""
    return Options(
        workers=vllm_config.parallel_config.world_size,
        stores=StorePolicy(
            prompt_only=spec.offload_prompt_only,
            retention=vllm_config.cache_config.prefix_cache_retention_interval,
            speculating=vllm_config.speculative_config is not None,
        ),
        avoid_double_loads=vllm_config.cache_config.enable_prefix_caching,
    )
