"""vLLM's offloading connector, as somebody may change it who lets copies fail.

It is loaded by its file name, in both roles. Its worker reports every copy that has ended, well or
not, and tells the core whose load failed; its scheduler is vLLM's own, which takes every job that
was reported for done.
"""

from __future__ import annotations

from typing import Any

from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorTransferResults,
)
from vllm.distributed.kv_transfer.kv_connector.v1.offloading.worker import (
    OffloadingConnectorWorker,
)
from vllm.distributed.kv_transfer.kv_connector.v1.offloading_connector import (
    OffloadingConnector,
)


class FailingWorker(OffloadingConnectorWorker):  # type: ignore[misc]
    """A worker that survives copies that fail."""

    def get_finished(self, finished_req_ids: set[str]) -> tuple[set[str], set[str]]:
        """As vLLM's, without its assertion; ``failed`` are the requests whose load failed."""
        self.failed: set[str] = set()
        received: set[str] = set()
        for result in self.worker.get_finished():
            self._connector_worker_meta.mark_completed(result.job_id)
            request = self._load_jobs.pop(result.job_id, None)
            if request is not None:
                received.add(request)
                if not result.success:
                    self.failed.add(request)
        return set(), received


class FailingConnector(OffloadingConnector):  # type: ignore[misc]
    """vLLM's connector with that worker."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.connector_worker is not None:
            self.connector_worker.__class__ = FailingWorker

    def get_transfer_results(self, finished_req_ids: set[str]) -> Any:
        """What has ended since the last call."""
        sent, received = self.get_finished(finished_req_ids)
        return KVConnectorTransferResults(
            finished_sending=sent,
            finished_recving=received,
            failed_recving=self.connector_worker.failed,
        )
