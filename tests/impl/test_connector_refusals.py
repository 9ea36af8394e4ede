"""What the connector and its host tier refuse at the start: each in one line that says why.

This file runs itself once inside the release and prints what was said; the tests read that. The
connector is constructed as the engine does it, in both roles; nothing else runs.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from typing import Any

import pytest

from kvproof.conformance.engines.base import GroupSetup, Setup
from kvproof.conformance.errors import UsageError
from kvproof.conformance.releases import child_environment

pytestmark = pytest.mark.vllm

RELEASE = "0.32.0"
KNOWN = (
    "backpressure, block_size, blocks_per_chunk, cache_policy_module_path, canonical_layout,"
    " cpu_bytes_to_use, enable_telemetry, eviction_policy, max_tracker_size, offload_prompt_only,"
    " secondary_tiers, self_describing_kv_events, shadow, spec_module_path, spec_name,"
    " store_threshold"
)
HOST: dict[str, Any] = {
    "spec_name": "HostOffloadingSpec",
    "spec_module_path": "kvproof.impl.connector.spec",
    "cpu_bytes_to_use": 1 << 20,
}
PLACE = "in kv_connector_extra_config"

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown key": (
        {"cpu_bytes_to_use": 1 << 20, "block_per_chunk": 2, "a": 1},
        f"unknown key {PLACE}: a, block_per_chunk; known are {KNOWN}",
    ),
    "an unknown key beside our own tier": (
        {**HOST, "threads": 2},
        f"unknown key {PLACE}: threads; known are {KNOWN}",
    ),
    "a number in quotes": (
        {"cpu_bytes_to_use": 1 << 20, "blocks_per_chunk": "2"},
        f"blocks_per_chunk {PLACE} must be an integer, not str",
    ),
    "true for a number": (
        {"cpu_bytes_to_use": 1 << 20, "store_threshold": True},
        f"store_threshold {PLACE} must be an integer, not bool",
    ),
    "a number for true": (
        {"cpu_bytes_to_use": 1 << 20, "offload_prompt_only": 1},
        f"offload_prompt_only {PLACE} must be true or false, not int",
    ),
    "a size with a unit": (
        {"cpu_bytes_to_use": "8GB"},
        f"cpu_bytes_to_use {PLACE} must be a number, not str",
    ),
    "a list for a policy": (
        {"cpu_bytes_to_use": 1 << 20, "eviction_policy": ["lru"]},
        f"eviction_policy {PLACE} must be a string, not list",
    ),
    "a number for shadow": (
        {"cpu_bytes_to_use": 1 << 20, "shadow": 1},
        f"shadow {PLACE} must be true or false, not int",
    ),
    "less than a chunk": (
        {"cpu_bytes_to_use": 100},
        f"cpu_bytes_to_use {PLACE} must be at least 4096, the bytes of one chunk",
    ),
    "no size": ({}, f"cpu_bytes_to_use must be specified {PLACE}"),
}


@functools.cache
def said() -> dict[str, Any]:
    """What was said inside the release, by case and role; None for no refusal."""
    try:
        environment = child_environment(RELEASE)
    except UsageError as missing:
        pytest.skip(str(missing))
    command = [sys.executable, "-P", __file__]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    seen: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return seen


@pytest.mark.parametrize("case", REFUSED)
def test_both_roles_refuse(case: str) -> None:
    message = REFUSED[case][1]
    assert said()[case] == [message, message]


@pytest.mark.parametrize("case", ["the stock tier", "our own tier", "a foreign tier"])
def test_what_is_served_is_not_refused(case: str) -> None:
    assert said()[case] == [None, None]


def test_context_parallelism_is_refused() -> None:
    message = "context parallelism is not supported by this connector yet"
    assert said()["context parallelism"] == [message, message]


def test_the_size_flag_finds_the_connector_by_its_name() -> None:
    assert said()["size flag"] == {
        "class": "kvproof.impl.connector.connector.OffloadingConnector",
        "role": "kv_both",
        "policy": "recompute",
        "extra": {"blocks_per_chunk": 2, "cpu_bytes_to_use": 0.5 * (1 << 30)},
        "roles": [None, None],
    }


def test_a_retention_interval_that_is_not_in_chunks_is_refused() -> None:
    message = "prefix_cache_retention_interval (24) must be a multiple of tokens_per_chunk (16)."
    # Workers keep no chunks.
    assert said()["odd retention"] == [message, None]


def test_shadow_needs_the_plain_tier_in_host_memory() -> None:
    message = f"shadow {PLACE} needs the tier of CPUOffloadingSpec, not OtherManager"
    assert said()["shadow elsewhere"] == [message, None]


def test_recurrent_states_at_odd_places_are_refused() -> None:
    message = "KV-cache groups of kind MambaSpec are not supported"
    assert said()["unaligned states"][0] == message


def test_the_host_tier_wants_room_for_a_chunk() -> None:
    assert said()["too small"] == (
        f"cpu_bytes_to_use {PLACE} must be at least 8192, the bytes of one chunk"
    )


def test_the_host_tier_serves_host_memory_only() -> None:
    assert said()["elsewhere"] == (
        "HostOffloadingSpec serves KV caches in host memory, not on meta; leave spec_name out there"
    )


def test_the_host_tier_does_not_guess_at_an_unknown_layout() -> None:
    assert said()["odd layout"] == ("a KV cache of int8 and shape (3, 8) is not blocks of 16 bytes")


# --- inside the release ---


def line(make: Any, *arguments: Any) -> str | None:
    try:
        make(*arguments)
    except Exception as refusal:
        return str(refusal)
    return None


def look() -> dict[str, Any]:
    import importlib

    from kvproof.conformance.engines.vllm.configs import build
    from kvproof.conformance.engines.vllm.features import detect
    from kvproof.conformance.engines.vllm.release import load, module

    release = load()
    connector: Any = importlib.import_module("kvproof.impl.connector").OffloadingConnector
    offload_config = module(
        "vllm.distributed.kv_transfer.kv_connector.v1.offloading.config"
    ).build_offloading_config

    def configured(extra: dict[str, Any], *groups: GroupSetup) -> Any:
        setup = Setup(groups=groups or (GroupSetup("full", 16),))
        config = build(release, detect(release), setup)
        config.vllm_config.kv_transfer_config.kv_connector_extra_config = extra
        return config

    def roles(config: Any) -> list[str | None]:
        return [
            line(connector, config.vllm_config, role, config.kv_cache_config)
            for role in release.connector_role
        ]

    found: dict[str, Any] = {case: roles(configured(extra)) for case, (extra, _) in REFUSED.items()}
    found["the stock tier"] = roles(configured({"cpu_bytes_to_use": float(1 << 20)}))
    found["our own tier"] = roles(configured(HOST))
    faulty = {"spec_name": "FaultySpec", "spec_module_path": "kvproof.conformance.e2e.faults"}
    found["a foreign tier"] = roles(configured({**HOST, **faulty, "anything": 1}))

    parallel = configured(HOST)
    parallel.vllm_config.parallel_config.decode_context_parallel_size = 2
    found["context parallelism"] = roles(parallel)

    plain = configured(HOST)
    flagged = plain.vllm_config
    transfer = release.config.KVTransferConfig(
        kv_connector_module_path="kvproof.impl.connector",
        kv_load_failure_policy="recompute",
        kv_connector_extra_config={"blocks_per_chunk": 2},
    )
    flagged.kv_transfer_config = transfer
    flagged.cache_config.kv_offloading_size = 0.5
    flagged._post_init_kv_transfer_config()
    kind = release.connector_factory.get_connector_class(transfer)
    found["size flag"] = {
        "class": f"{kind.__module__}.{kind.__qualname__}",
        "role": transfer.kv_role,
        "policy": transfer.kv_load_failure_policy,
        "extra": dict(transfer.kv_connector_extra_config),
        "roles": [
            line(kind, flagged, role, plain.kv_cache_config) for role in release.connector_role
        ],
    }

    retained = configured(HOST, GroupSetup("full", 16), GroupSetup("window", 16, 32))
    retained.vllm_config.cache_config.prefix_cache_retention_interval = 24
    found["odd retention"] = roles(retained)

    cpu: Any = importlib.import_module("vllm.v1.kv_offload.cpu.manager")
    spec_module: Any = importlib.import_module("vllm.v1.kv_offload.cpu.spec")
    own = cpu.CPUOffloadingManager
    spec_module.CPUOffloadingManager = type("OtherManager", (own,), {})
    found["shadow elsewhere"] = roles(configured({**HOST, "shadow": True}))
    spec_module.CPUOffloadingManager = own

    recurrent = configured(HOST, GroupSetup("full", 16), GroupSetup("recurrent", 16))
    for group in recurrent.kv_cache_config.kv_cache_groups:
        if type(group.kv_cache_spec).__name__ == "MambaSpec":
            object.__setattr__(group.kv_cache_spec, "mamba_cache_mode", "all")
    found["unaligned states"] = roles(recurrent)

    spec_class: Any = importlib.import_module(HOST["spec_module_path"]).HostOffloadingSpec
    torch: Any = importlib.import_module("torch")

    def worker(extra: dict[str, Any], tensor: Any, page: int) -> str | None:
        config = configured(extra)
        spec = spec_class(offload_config(config.vllm_config, config.kv_cache_config))
        base = release.offload
        caches = base.CanonicalKVCaches(
            [base.CanonicalKVCacheTensor(tensor, page)], [[base.CanonicalKVCacheRef(0, page)]]
        )
        return line(spec.get_worker, caches)

    small = {**HOST, "cpu_bytes_to_use": 4096, "blocks_per_chunk": 2}
    found["too small"] = worker(small, torch.zeros((3, 8), dtype=torch.int8), 8)
    meta = torch.zeros((3, 8), dtype=torch.int8, device="meta")
    found["elsewhere"] = worker(HOST, meta, 8)
    found["odd layout"] = worker(HOST, torch.zeros((3, 8), dtype=torch.int8), 16)
    return found


if __name__ == "__main__":
    print(json.dumps(look()))
