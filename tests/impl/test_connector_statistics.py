"""Statistics beside the stock connector's, in one process: the same names, the same meaning.

This file runs itself once inside the release and prints what it saw; the tests read that.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from typing import Any

import pytest

from kvproof.conformance.engines.base import Add, Drain, GroupSetup, Move, ResetCache, Setup, Step
from kvproof.conformance.errors import UsageError
from kvproof.conformance.releases import child_environment

pytestmark = pytest.mark.vllm

RELEASE = "0.32.0"
OURS = "kvproof.impl.connector:OffloadingConnector"
A, B = tuple(range(64)), tuple(range(100, 164))
MOVES: tuple[Move, ...] = (
    *(Add("a", A, 1), Step(finish="none"), Add("b", (*A, *B), 1), Drain()),
    *(ResetCache(connector=False), Add("c", (*A, 7), 1), Add("d", (*A, 8), 1)),
    *(Step(finish="none"), Step(finish="none"), Drain()),
)
"""A prompt is stored; two requests ask for it at once, and one of them is put off."""


@functools.cache
def seen() -> dict[str, Any]:
    """What was seen inside the release."""
    try:
        environment = child_environment(RELEASE)
    except UsageError as missing:
        pytest.skip(str(missing))
    command = [sys.executable, "-P", __file__]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


def test_a_run_is_told_under_the_same_names() -> None:
    stock, ours = seen()["stock"], seen()["ours"]
    assert ours["types"] == stock["types"]
    assert {
        "vllm:kv_offload_lookup_sync_delay_seconds",
        "vllm:kv_offload_lookup_async_delay_seconds",
        "vllm:kv_offload_load_bytes",
        "vllm:kv_offload_store_size",
    } <= set(ours["types"])


def test_what_does_not_depend_on_the_clock_is_the_same() -> None:
    stock, ours = seen()["stock"]["reduced"], seen()["ours"]["reduced"]
    same = [
        name
        for name in stock
        if name.endswith(("_count", "_bytes")) or name.startswith("vllm:kv_offload_cpu")
    ]
    assert {name: ours[name] for name in same} == {name: stock[name] for name in same}
    assert ours["vllm:kv_offload_lookup_async_delay_seconds_count"] == 1
    # A chunk of 4096 bytes: eight were stored, four were loaded.
    assert (ours["vllm:kv_offload_store_bytes"], ours["vllm:kv_offload_load_bytes"]) == (
        8 * 4096,
        4 * 4096,
    )


def test_a_tier_without_room_is_told_as_one() -> None:
    name = "vllm:kv_offload_allocation_failure"
    stock, ours = seen()["stock, no room"]["reduced"], seen()["ours, no room"]["reduced"]
    # The stock scheduler repeats the offer in each step; ours shrinks it, and waits.
    assert stock[name] > 0
    assert ours[name] > 0


def test_where_the_tokens_of_a_hit_come_from_is_told_alike() -> None:
    stock, ours = seen()["stock"]["sources"], seen()["ours"]["sources"]
    assert ours == stock == [{"host": 64}]
    windowed = seen()["ours, window"]["sources"]
    assert windowed == seen()["stock, window"]["sources"]
    assert windowed == [{"external_unspecified": 32, "host": 32}]


def test_prometheus_is_shown_the_stock_metrics_and_ours() -> None:
    metrics = seen()["metrics"]
    assert set(metrics["stock"]) < set(metrics["ours"])
    more = set(metrics["ours"]) - set(metrics["stock"])
    assert more == {
        f"kvproof:kv_offload_{name}_total"
        for name in (
            *("cold", "cold_faults", "failed_loads", "failed_stores", "lost_loads"),
            *("shadow_answers", "shadow_differences"),
        )
    }
    # What was observed is there, under our names and the stock ones.
    assert metrics["ours"]["vllm:kv_offload_load_bytes_total"] == 4 * 4096
    assert metrics["ours"]["kvproof:kv_offload_cold_total"] == 1


def test_one_engine_after_another_in_one_process_shows_the_last_ones() -> None:
    # vLLM takes back what begins with its own name when it makes the next engine.
    assert seen()["again"] == {"registered": 7, "cold": 2.0}


# --- inside the release ---


def look() -> dict[str, Any]:
    import importlib

    from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram

    from kvproof.conformance.engines.vllm import VllmTarget, copier

    v1 = "vllm.distributed.kv_transfer.kv_connector.v1"
    stats_class: Any = importlib.import_module(f"{v1}.offloading.metrics").OffloadingConnectorStats
    stock_class: Any = importlib.import_module(f"{v1}.offloading_connector").OffloadingConnector
    our_class: Any = importlib.import_module("kvproof.impl.connector").OffloadingConnector
    targets = {"stock": VllmTarget(), "ours": VllmTarget(OURS)}
    recording: Any = copier.RecordingCopier
    results = recording.get_finished

    def with_sizes(self: Any) -> Any:
        """What copies report: 4096 bytes a piece, in two seconds."""
        found = results(self)
        for result in found:
            result.transfer_size, result.transfer_time = 4096 * 4, 2.0
        return found

    recording.get_finished = with_sizes

    def run(name: str, slots: int, *groups: GroupSetup) -> dict[str, Any]:
        setup = Setup(groups=groups, num_gpu_blocks=64, num_slots=slots)
        engine = targets[name].start(setup, lambda _event: None)
        connector = engine._scheduler.connector
        gathered, sources = stats_class(), []
        take, allocated = connector.get_kv_connector_stats, connector.update_state_after_alloc

        def taken() -> Any:
            stats = take()
            if stats is not None:
                gathered.aggregate(stats_class(data=stats.data))
            return stats

        def updated(request: Any, blocks: Any, external: int) -> Any:
            found = allocated(request, blocks, external)
            if external:
                told = connector.get_external_cache_hit_sources(request, external)
                sources.append({source.value: tokens for source, tokens in told.items()})
            return found

        connector.get_kv_connector_stats = taken
        connector.update_state_after_alloc = updated
        for move in MOVES:
            assert engine.play(move), move
        assert not engine.crashed
        engine.close()
        return {
            "types": dict(gathered.data["types"]),
            "reduced": gathered.reduce(),
            "sources": sources,
            "data": gathered,
            "config": connector._vllm_config,
        }

    full, window = GroupSetup("full", 16), GroupSetup("window", 16, 32)
    found = {name: run(name, 64, full) for name in targets}
    found |= {f"{name}, no room": run(name, 2, full) for name in targets}
    found |= {f"{name}, window": run(name, 64, window) for name in targets}

    def shown(kind: Any, gathered: Any, config: Any) -> dict[str, float]:
        registry = CollectorRegistry()
        types = {
            metric: functools.partial(metric, registry=registry)
            for metric in (Counter, Gauge, Histogram)
        }
        metrics = kind.build_prom_metrics(config, types, ["engine"], {0: ["0"]})
        metrics.observe(gathered.data, 0)
        return {
            sample.name: sample.value
            for metric in registry.collect()
            for sample in [*metric.samples, *_named(metric)]
            if not sample.name.endswith(("_created", "_bucket", "_sum", "_count"))
        }

    gathered, config = found["ours"]["data"], found["ours"]["config"]
    theirs = shown(stock_class, gathered, config)
    gathered.increase_counter("kvproof:kv_offload_cold")
    metrics = {"stock": theirs, "ours": shown(our_class, gathered, config)}
    prometheus: Any = importlib.import_module("vllm.v1.metrics.prometheus")
    for times in (1, 2):
        prometheus.unregister_vllm_metrics()
        kinds = {kind: kind for kind in (Counter, Gauge, Histogram)}
        shown_by_all = our_class.build_prom_metrics(config, kinds, ["engine"], {0: ["0"]})
        gathered.increase_counter("kvproof:kv_offload_cold", times - 1)
        shown_by_all.observe(gathered.data, 0)
    ours = [metric for metric in REGISTRY.collect() if metric.name.startswith("kvproof:")]
    again = {
        "registered": len(ours),
        "cold": REGISTRY.get_sample_value("kvproof:kv_offload_cold_total", {"engine": "0"}),
    }
    for one in found.values():
        del one["data"], one["config"]
    return {**found, "metrics": metrics, "again": again}


def _named(metric: Any) -> list[Any]:
    """A metric that has no sample yet, since nobody has used its labels."""
    from prometheus_client.samples import Sample

    name = f"{metric.name}_total" if metric.type == "counter" else metric.name
    return [] if metric.samples else [Sample(name, {}, 0.0)]


if __name__ == "__main__":
    print(json.dumps(look()))
