"""Where vLLM releases differ: found by looking at the release, never by its number.

Everything that another module of this package does differently per release is a field here, so the
differences can be read in one place; they also go into a trace's header.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from pathlib import Path
from typing import Any

import msgspec

from kvproof.conformance.engines.vllm import own, tiering
from kvproof.conformance.engines.vllm.release import Release, module

RETENTION_VARIABLE = "VLLM_PREFIX_CACHE_RETENTION_INTERVAL"


class Features(msgspec.Struct, frozen=True):
    """What the importable release has.

    Attributes:
        numbers_jobs: the connector numbers its transfer jobs and workers report the numbers; before
            that a request is reported when it has ended and its stores are over.
        hybrid: the connector takes several groups, and groups with windows or states.
        connector_reset: the connector forgets on ``reset_cache`` (before that: a reset reaches the
            GPU prefix cache alone).
        drains_itself: the connector asks for steps while its jobs are in flight.
        finish_stores: chunks completed by the last step are stored after the request's end.
        flush_submits_own: the worker submits a flushed store of this very step before it waits.
        prompt_only: ``offload_prompt_only`` exists.
        chunk_in_blocks: chunks are sized by ``blocks_per_chunk``; otherwise in tokens, which
            needs groups of one block size.
        chunked_local: chunked local attention groups are accepted.
        recurrent: the core accepts external tokens for recurrent groups.
        recurrent_in_batch: a recurrent block must fit into one step's tokens.
        retention_interval: where sparse retention of the prefix cache is set: "config",
            "environment", or "" when it does not exist.
        copier_submits: the copier has ``submit_store`` and ``submit_load``; otherwise
            ``transfer_async`` with a pair of specs.
        copier_swallows: the worker catches what the copier raises and asserts on its answer.
        loads: "before_forward", or "after_forward" (unless a load is synchronous).
        save_without_forward: stores planned in a step without a forward are kept for the next.
        failed_loads: the core takes requests whose load failed (``failed_recving``).
        reports_failures: the connector's worker takes a copy that failed; otherwise it asserts that
            every copy succeeded.
        sync_loads: small loads can be made to end before their step's forward; off by default.
        max_load_tokens: clients may cap what is loaded for a request.
        max_offload_tokens: clients may cap what is stored of a request.
        draft_groups: the connector knows groups of a drafter.
        tiering: the release has a manager with a second tier of files, whose moves can be followed.
        own_tier: kvproof's own tier can be loaded beside the release.
        preempts_ahead: a reset that preempts while a step is in flight loses no token; otherwise
            the core drops a token of each preempted request that may never have been sampled, and
            such a request waits for it for ever.
        lookup_enum: lookups answer an enumeration; otherwise True, False or None.
        tier_capacity: the manager's attribute that holds its number of slots.
        loading_table: the connector's attribute with the keys that are being loaded.
    """

    numbers_jobs: bool
    hybrid: bool
    connector_reset: bool
    drains_itself: bool
    finish_stores: bool
    flush_submits_own: bool
    prompt_only: bool
    chunk_in_blocks: bool
    chunked_local: bool
    recurrent: bool
    recurrent_in_batch: bool
    retention_interval: str
    copier_submits: bool
    copier_swallows: bool
    loads: str
    save_without_forward: bool
    failed_loads: bool
    reports_failures: bool
    sync_loads: bool
    max_load_tokens: bool
    max_offload_tokens: bool
    draft_groups: bool
    tiering: bool
    own_tier: bool
    preempts_ahead: bool
    lookup_enum: bool
    tier_capacity: str
    loading_table: str

    def header(self) -> dict[str, bool | int | str | None]:
        """As the header of a trace carries them."""
        return dict(msgspec.structs.asdict(self))


def detect(release: Release) -> Features:
    """Read the features off the release's classes and sources."""
    connector, offload = release.connector_class, release.offload
    scheduler_source = inspect.getsource(release.offload_scheduler)
    package = _package_source(release)
    mixin = inspect.getsource(release.runner_mixin)
    worker_class = module(connector.__module__).OffloadingConnectorWorker
    worker = inspect.getsource(worker_class)
    manager = inspect.getsource(module("vllm.v1.kv_offload.cpu.manager"))
    split = inspect.getsource(release.scheduler_class._mamba_block_aligned_split)
    submits = hasattr(offload, "OffloadingWorker")
    return Features(
        numbers_jobs=release.numbers_jobs,
        hybrid=issubclass(connector, release.supports_hma),
        connector_reset=connector.reset_cache is not release.connector_base.reset_cache,
        drains_itself="has_pending_push_work" in vars(connector),
        finish_stores="finished_req_ids" in scheduler_source,
        flush_submits_own="store_jobs.pop(" in worker,
        prompt_only="offload_prompt_only" in scheduler_source,
        chunk_in_blocks="blocks_per_chunk" in scheduler_source,
        chunked_local="ChunkedLocalAttentionSpec" in package,
        recurrent="External KV connector is not verified" not in split,
        recurrent_in_batch="In Mamba cache align mode, block_size "
        in inspect.getsource(release.config.VllmConfig),
        retention_interval=_retention(release),
        copier_submits=submits,
        copier_swallows=not submits,
        loads="after_forward" if "start_after_forward" in mixin else "before_forward",
        save_without_forward="wait_for_save=False" not in mixin,
        failed_loads="failed_recving" in release.outputs.KVConnectorOutput.__dataclass_fields__,
        reports_failures=takes_failures(worker_class),
        sync_loads="sync_load_budget_bytes" in package,
        max_load_tokens='"max_load_tokens"' in package,
        max_offload_tokens='"max_offload_tokens"' in package,
        draft_groups="is_eagle_group" in package,
        tiering=tiering.exists(),
        own_tier=own.exists(),
        preempts_ahead="discard_latest_async_tokens = True"
        not in inspect.getsource(release.scheduler_class.reset_prefix_cache),
        lookup_enum=hasattr(offload, "LookupResult"),
        tier_capacity="_num_chunks" if "_num_chunks" in manager else "_num_blocks",
        loading_table=(
            "_chunks_being_loaded"
            if "_chunks_being_loaded" in scheduler_source
            else "_blocks_being_loaded"
        ),
    )


def takes_failures(worker_class: Any) -> bool:
    """Whether a connector worker's ``get_finished`` asserts no ``success`` of the copies."""
    return _asserts_no_success(worker_class.get_finished)


@functools.cache
def _asserts_no_success(method: Any) -> bool:
    source = textwrap.dedent(inspect.getsource(method))
    return not any(
        isinstance(part, ast.Attribute) and part.attr == "success"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Assert)
        for part in ast.walk(node.test)
    )


def _package_source(release: Release) -> str:
    """All of the connector's own modules, whichever of them a thing is in."""
    folder = Path(release.offload_scheduler.__file__).parent
    return "".join(file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.py")))


def _retention(release: Release) -> str:
    if "prefix_cache_retention_interval" in release.config.CacheConfig.__dataclass_fields__:
        return "config"
    known = module("vllm.envs").environment_variables
    return "environment" if RETENTION_VARIABLE in known else ""
