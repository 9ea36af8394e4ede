"""Setups that a release cannot run, each with its reason."""

from __future__ import annotations

from kvproof.conformance.engines.base import GroupSetup, Setup
from kvproof.conformance.engines.vllm.features import Features
from kvproof.conformance.planted import FAULTS


def refusal(setup: Setup, features: Features) -> str | None:
    """None, or one line saying why this release cannot run ``setup``."""
    sizes = {group.tokens_per_block for group in setup.groups}
    kinds = {group.kind for group in setup.groups}
    recurrent = {group.tokens_per_block for group in setup.groups if group.kind == "recurrent"}
    unknown = kinds - {"full", "window", "chunked", "recurrent"}
    reasons = [
        (not setup.groups, "a setup needs at least one group"),
        (bool(unknown), f"unknown group kinds: {sorted(unknown)}"),
        (
            not features.hybrid and (kinds != {"full"} or len(setup.groups) > 1),
            "the connector of this release takes one group, of full attention",
        ),
        (
            "recurrent" in kinds and not features.recurrent,
            "the core of this release refuses external tokens for recurrent groups",
        ),
        (
            "recurrent" in kinds and not setup.prefix_caching,
            "recurrent states are kept at block ends only with the prefix cache on",
        ),
        (len(recurrent) > 1, "recurrent groups need one block size"),
        (
            features.recurrent_in_batch and max(recurrent, default=0) > setup.max_batch_tokens,
            "a recurrent block must fit into one step here",
        ),
        (
            "chunked" in kinds and not features.chunked_local,
            "the connector of this release refuses chunked local attention",
        ),
        (
            "chunked" in kinds and len(sizes) > 1,
            "chunked local attention needs groups of one block size",
        ),
        (
            any(group.window is None for group in setup.groups if _windowed(group)),
            "windowed groups need a window",
        ),
        (setup.prompt_only and not features.prompt_only, "offload_prompt_only does not exist here"),
        (
            setup.retention_interval is not None and not features.retention_interval,
            "sparse retention of the prefix cache does not exist here",
        ),
        (
            setup.blocks_per_chunk > 1 and len(sizes) > 1 and not features.chunk_in_blocks,
            "chunks of several blocks need groups of one block size here",
        ),
        (
            setup.retention_interval is not None and not kinds & {"window", "recurrent"},
            "sparse retention needs a sliding-window or a recurrent group",
        ),
        (
            bool(setup.sync_load_bytes) and not features.sync_loads,
            "synchronous loads do not exist here",
        ),
        (
            any(group.draft for group in setup.groups) and not features.draft_groups,
            "the connector of this release knows no draft groups",
        ),
        (
            any(group.draft for group in setup.groups) and setup.asynchronous,
            "draft groups need a synchronous engine: drafts scheduled ahead are not played",
        ),
        (
            any(group.draft for group in setup.groups) and setup.second_connector,
            "draft groups go with no second connector: the core pads its full hits with drafts",
        ),
        (setup.eviction not in ("lru", "arc"), f"unknown eviction policy: {setup.eviction}"),
        (
            setup.load_failure not in ("recompute", "fail"),
            f"unknown policy for failed loads: {setup.load_failure}",
        ),
        (setup.num_slots < 1, "the tier needs at least one slot"),
        (setup.tier not in ("cpu", "tiering", "ours"), f"unknown tier: {setup.tier}"),
        (
            setup.tier == "ours" and not features.own_tier,
            "kvproof's own tier cannot be loaded beside this release",
        ),
        (setup.device not in ("", "simulated"), f"unknown device: {setup.device}"),
        (
            setup.device == "simulated" and not features.own_tier,
            "kvproof's own transfers cannot be loaded beside this release",
        ),
        (
            setup.device == "simulated" and bool(kinds & {"recurrent"}),
            "the simulated device computes no recurrent states",
        ),
        (
            setup.device == "simulated" and setup.second_connector,
            "the simulated device has no bytes of another connector",
        ),
        (
            bool(setup.planted) and setup.planted not in FAULTS,
            f"no fault {setup.planted!r} can be planted; known are {', '.join(FAULTS)}",
        ),
        (
            bool(setup.planted) and (setup.device, setup.tier) != ("simulated", "ours"),
            "faults are planted in kvproof's own tier and transfers",
        ),
        (
            setup.tier == "tiering" and not features.tiering,
            "this release has no second tier that can be followed",
        ),
        (
            setup.tier == "tiering" and setup.store_threshold > 0,
            "the release refuses a store threshold over its second tier",
        ),
    ]
    return next((reason for applies, reason in reasons if applies), None)


def _windowed(group: GroupSetup) -> bool:
    return group.kind in ("window", "chunked")
