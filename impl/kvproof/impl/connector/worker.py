"""The worker role: hands jobs to the copier in an order that is safe, and brings failures back.

Per step, before anything changes a block: stores of earlier steps are submitted, then the flush
set's jobs of earlier steps are waited for (dead loads too), and only then are the flush set's
stores of this very step submitted and waited for. The order matters: a store that is flushed in its
own step may have been given the slot of a dead load, and must not overtake it (S7).
"""

from __future__ import annotations

from typing import Any

from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorTransferResults
from vllm.distributed.kv_transfer.kv_connector.v1.offloading.worker import (
    OffloadingConnectorWorker,
)
from vllm.logger import init_logger

from kvproof.impl.connector.messages import StepMetadata, WorkerReport

logger = init_logger(f"vllm.{__name__}")  # vLLM shows what is below its own name


class OffloadWorker(OffloadingConnectorWorker):
    """Registration and layouts are the stock worker's; the order of jobs and failures are ours."""

    message = StepMetadata

    def __init__(self, spec: Any, vllm_config: Any, kv_cache_config: Any) -> None:
        super().__init__(spec, vllm_config, kv_cache_config)
        self._connector_worker_meta = WorkerReport()
        self._stores: dict[int, tuple[Any, Any]] = {}
        self._lost: set[str] = set()

    # --- before the forward ---

    def handle_preemptions(self, kv_connector_metadata: Any) -> None:
        """Wait for what this step's flush set names."""
        meta = kv_connector_metadata
        self._submit_stores()
        flush = set(meta.jobs_to_flush or ())
        if not flush:
            return
        own = {job for job in flush if job in meta.store_jobs}
        if earlier := flush - own:
            self._wait(earlier)
        if own:
            for job in sorted(own):
                self._keep(job, meta.store_jobs.pop(job))
            self._submit_stores()
            self._wait(own)

    def start_kv_transfers(self, metadata: StepMetadata) -> None:
        """Submit what is due: earlier stores, then this step's loads."""
        self._submit_stores()
        for job, entry in metadata.load_jobs.items():
            self._load_jobs[job] = entry.req_id
            self._try(job, self._copier.submit_load, entry.src_spec, entry.dst_spec)
        self._lost.update(metadata.lost)

    def prepare_store_kv(self, metadata: StepMetadata) -> None:
        """Keep this step's stores for the next launch: sampling comes before them."""
        for job, entry in metadata.store_jobs.items():
            self._keep(job, entry)

    # --- after it ---

    def get_finished(self, finished_req_ids: set[str]) -> tuple[set[str], set[str]]:
        """Requests whose loads have ended, failed or not: for cores that are told no more."""
        return set(), self.results().finished_recving

    def results(self) -> KVConnectorTransferResults:
        """What has ended since the last call, failed or not."""
        found = KVConnectorTransferResults()
        for result in self._copier.get_finished():
            self._ended(result.job_id, result.success, result.transfer_size, result.transfer_time)
        for job in [job for job in self._load_jobs if job in self._report.completed_jobs]:
            request_id = self._load_jobs.pop(job)
            found.finished_recving.add(request_id)
            if job in self._report.failed_jobs:
                found.failed_recving.add(request_id)
        found.finished_recving |= self._lost
        found.failed_recving |= self._lost
        self._lost.clear()
        return found

    def build_connector_worker_meta(self) -> WorkerReport | None:
        """The report of what has ended, once."""
        if not self._report.completed_jobs:
            return None
        report, self._connector_worker_meta = self._report, WorkerReport()
        return report

    def shutdown(self) -> None:
        """Forget all jobs and end the copier."""
        self._stores.clear()
        self._lost.clear()
        super().shutdown()
        self._connector_worker_meta = WorkerReport()

    # --- jobs ---

    @property
    def _report(self) -> WorkerReport:
        return self._connector_worker_meta

    @property
    def _copier(self) -> Any:
        if self.worker is None:
            raise RuntimeError("KV caches were not registered before the first step")
        return self.worker

    def _keep(self, job: int, entry: Any) -> None:
        if self._is_store_writer:
            self._stores[job] = (entry.src_spec, entry.dst_spec)
        else:
            self._report.mark_completed(job)

    def _submit_stores(self) -> None:
        stores, self._stores = self._stores, {}
        for job, (source, target) in stores.items():
            self._try(job, self._copier.submit_store, source, target)

    def _try(self, job: int, submit: Any, source: Any, target: Any) -> None:
        """Hand a job to the copier; one that it cannot take has failed."""
        try:
            taken = submit(job, source, target)
        except Exception:
            logger.exception("KV transfer job %d could not be submitted", job)
            taken = False
        if not taken:
            self._ended(job, False, None, None)

    def _wait(self, jobs: set[int]) -> None:
        """Wait for jobs; the copier passes over those that it does not have."""
        self._copier.wait(jobs)

    def _ended(self, job: int, ok: bool, size: int | None, seconds: float | None) -> None:
        self._report.mark_completed(job)
        if not ok:
            self._report.failed_jobs.add(job)
        if size is not None and seconds is not None:
            stats = self._report.transfer_stats
            (stats.load if job in self._load_jobs else stats.store).record(size, seconds)
