"""Statistics under the stock connector's names, and a few of our own.

Those of ours begin with ``kvproof:`` instead of ``vllm:``; all travel in the stock payload, so logs
and Prometheus treat both alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar

from prometheus_client import REGISTRY
from vllm.distributed.kv_transfer.kv_connector.v1.offloading.common import (
    DirectionalTransferStats,
    TransferStats,
)
from vllm.distributed.kv_transfer.kv_connector.v1.offloading.metrics import (
    OffloadingConnectorStats,
    OffloadPromMetrics,
)
from vllm.distributed.kv_transfer.kv_connector.v1.offloading.metrics import (
    _ConnectorMetricName as Names,
)
from vllm.distributed.kv_transfer.kv_connector.v1.offloading.metrics import (
    _TransferMetricName as Transfers,
)
from vllm.v1.kv_offload.base import OffloadingCounterMetadata, OffloadingMetricMetadata

_PREFIX = "kvproof:kv_offload_"

COUNTED: Mapping[str, str] = {
    "cold": "Contradictions after which nothing was offloaded any more: 0 or 1 an engine.",
    "cold_faults": "Calls of the tier that failed after that, while it was told to let go.",
    "failed_loads": "Loads that a worker could not carry out.",
    "failed_stores": "Stores that a worker could not carry out.",
    "lost_loads": "Loads that were promised and could not be made.",
    "shadow_answers": "Lookups of which the stock scheduler's answer and ours were compared.",
    "shadow_differences": "Lookups, and ended requests, of which the two schedulers differ.",
}
"""What is counted beyond the stock statistics, and what it means."""


def definitions() -> dict[str, OffloadingMetricMetadata]:
    """Our own metrics, as the stock ones are defined."""
    return {
        _PREFIX + name: OffloadingCounterMetadata(documentation=meaning)
        for name, meaning in COUNTED.items()
    }


class Statistics:
    """Gathers between two looks; ``take`` starts afresh."""

    def __init__(self) -> None:
        self._lookups: list[float] = []
        self._waits: list[float] = []
        self._transfers = TransferStats()
        self._deferred: dict[str, float] = {}
        self._seen: Counter[str] = Counter()

    def lookup(self, request_id: str, began: float, ended: float, deferred: bool) -> None:
        """A lookup took from ``began`` to ``ended``, in seconds; it may have been put off."""
        self._lookups.append(ended - began)
        if deferred:
            self._deferred.setdefault(request_id, began)
        elif self._deferred:
            self.resolved(request_id, ended)

    def resolved(self, request_id: str, now: float) -> None:
        """A lookup that was put off has its answer, or its request has ended."""
        began = self._deferred.pop(request_id, None)
        if began is not None:
            self._waits.append(now - began)

    @property
    def waiting(self) -> bool:
        """Whether a lookup is put off."""
        return bool(self._deferred)

    def transfers(self, ended: TransferStats) -> None:
        """Workers have ended transfers."""
        if not ended.is_empty():
            self._transfers = self._transfers.aggregate(ended)

    def take(self, counts: Mapping[str, int]) -> OffloadingConnectorStats | None:
        """What was gathered; ``counts`` are the scheduler's, which only grow."""
        stats = OffloadingConnectorStats()
        load, store = self._transfers.load, self._transfers.store
        _add(stats, load, Transfers.LOAD_BYTES, Transfers.LOAD_TIME, Transfers.LOAD_SIZE)
        _add(stats, store, Transfers.STORE_BYTES, Transfers.STORE_TIME, Transfers.STORE_SIZE)
        for name, samples in (
            (Names.LOOKUP_SYNC_DELAY, self._lookups),
            (Names.LOOKUP_ASYNC_DELAY, self._waits),
        ):
            for sample in samples:
                stats.observe_histogram(name, sample)
        self._lookups, self._waits, self._transfers = [], [], TransferStats()
        refused = counts.get("refused_offers", 0) - self._seen["refused_offers"]
        if refused:
            stats.increase_counter(Names.ALLOCATION_FAILURE, refused)
        for name in COUNTED:
            more = counts.get(name, 0) - self._seen[name]
            if more:
                stats.increase_counter(_PREFIX + name, more)
        self._seen = Counter(counts)
        return None if stats.is_empty() else stats


def _add(
    stats: OffloadingConnectorStats,
    ended: DirectionalTransferStats,
    size_in_all: str,
    time_in_all: str,
    size: str,
) -> None:
    if ended.is_empty():
        return
    stats.increase_counter(size_in_all, ended.bytes)
    stats.increase_counter(time_in_all, ended.time)
    for each in ended.sizes:
        stats.observe_histogram(size, each)


class PromMetrics(OffloadPromMetrics):
    """The stock metrics, and our own.

    A process that makes one engine after another shows the last one's: vLLM takes back its own
    metrics then, and knows only those by their names.
    """

    _shown: ClassVar[list[Any]] = []

    def __init__(
        self,
        vllm_config: Any,
        metric_types: Any,
        labelnames: list[str],
        per_engine_labelvalues: dict[int, list[object]],
    ) -> None:
        super().__init__(vllm_config, metric_types, labelnames, per_engine_labelvalues)
        for earlier in self._shown:
            with suppress(KeyError):  # somebody has emptied the registry
                REGISTRY.unregister(earlier)
        self._shown.clear()
        ours = definitions()
        self._offloading_metric_metadata.update(ours)
        for name, metadata in ours.items():
            metric = self._create_metric(name, metadata)
            self._offloading_metric_defs[name] = metric
            self._shown.append(metric)
