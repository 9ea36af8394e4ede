"""What the two roles tell each other: the stock messages, and failures."""

from __future__ import annotations

from dataclasses import dataclass, field

from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorWorkerMetadata
from vllm.distributed.kv_transfer.kv_connector.v1.offloading.common import (
    OffloadingConnectorMetadata,
    OffloadingWorkerMetadata,
)


@dataclass
class StepMetadata(OffloadingConnectorMetadata):
    """A step's transfers. ``lost``: requests to be told that their load failed: it cannot be."""

    lost: list[str] = field(default_factory=list)


@dataclass
class WorkerReport(OffloadingWorkerMetadata):
    """What a worker has ended. ``failed_jobs`` are those of ``completed_jobs`` that failed."""

    failed_jobs: set[int] = field(default_factory=set)

    def aggregate(self, other: KVConnectorWorkerMetadata) -> WorkerReport:
        """Both reports in one: a job failed when it failed anywhere."""
        merged = super().aggregate(other)
        failed = set(self.failed_jobs)
        if isinstance(other, WorkerReport):
            failed |= other.failed_jobs
        return WorkerReport(merged.completed_jobs, merged.transfer_stats, failed)
