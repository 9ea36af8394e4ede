"""The connector that vLLM loads: two roles behind one class."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vllm.distributed.kv_transfer.kv_connector.v1 import KVConnectorRole, SupportsHMA
from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorBase_V1,
    KVConnectorTransferResults,
)
from vllm.distributed.kv_transfer.kv_connector.v1.metrics import (
    KVConnectorPromMetrics,
    KVConnectorStats,
)
from vllm.distributed.kv_transfer.kv_connector.v1.offloading.common import (
    OffloadingConnectorMetadata,
    OffloadingWorkerMetadata,
)
from vllm.distributed.kv_transfer.kv_connector.v1.offloading.config import (
    build_offloading_config,
    get_offloading_group_ids,
)
from vllm.distributed.kv_transfer.kv_connector.v1.offloading.metrics import (
    OffloadingConnectorStats,
)
from vllm.v1.kv_offload.factory import OffloadingSpecFactory
from vllm.v1.metrics.cache_hit_source import CacheHitSource

from kvproof.impl.connector.config import check, check_room
from kvproof.impl.connector.scheduler import SchedulerRole
from kvproof.impl.connector.shadow import ShadowRole, StockWorker
from kvproof.impl.connector.statistics import PromMetrics
from kvproof.impl.connector.worker import OffloadWorker


class OffloadingConnector(KVConnectorBase_V1, SupportsHMA):
    """KV-cache offloading for full, windowed, chunked-local and recurrent groups."""

    def __init__(self, vllm_config: Any, role: KVConnectorRole, kv_cache_config: Any) -> None:
        check(vllm_config, kv_cache_config)
        super().__init__(vllm_config, role, kv_cache_config)
        spec = OffloadingSpecFactory.create_spec(
            build_offloading_config(vllm_config, kv_cache_config)
        )
        check_room(spec)
        self.connector_scheduler: SchedulerRole | ShadowRole | None = None
        self.connector_worker: OffloadWorker | StockWorker | None = None
        shadow = vllm_config.kv_transfer_config.kv_connector_extra_config.get("shadow", False)
        if role == KVConnectorRole.SCHEDULER:
            kind = ShadowRole if shadow else SchedulerRole
            self.connector_scheduler = kind(spec, vllm_config, kv_cache_config)
        else:
            worker = StockWorker if shadow else OffloadWorker
            self.connector_worker = worker(spec, vllm_config, kv_cache_config)
        offloaded = set(get_offloading_group_ids(kv_cache_config))
        self._bounding = tuple(
            number
            for number, group in enumerate(kv_cache_config.kv_cache_groups)
            if group.kv_cache_spec.prefix_cacheable and number not in offloaded
        )

    @property
    def _scheduler(self) -> SchedulerRole | ShadowRole:
        if self.connector_scheduler is None:
            raise RuntimeError("this connector has the worker role")
        return self.connector_scheduler

    @property
    def _worker(self) -> OffloadWorker | StockWorker:
        if self.connector_worker is None:
            raise RuntimeError("this connector has the scheduler role")
        return self.connector_worker

    # --- both roles ---

    @property
    def requires_kv_delivery(self) -> bool:
        """A store that is dropped is a hit less, not an error."""
        return False

    @classmethod
    def get_required_kvcache_layout(cls, vllm_config: Any) -> str | None:
        """Layers first, each block in one piece."""
        hisparse = vllm_config.attention_config.hisparse_config is not None
        return "BLHNC" if hisparse else "LBHNC"

    @classmethod
    def build_kv_connector_stats(cls, data: dict[str, Any] | None = None) -> KVConnectorStats:
        """Statistics as they come back from another process."""
        return OffloadingConnectorStats() if data is None else OffloadingConnectorStats(data=data)

    @classmethod
    def build_prom_metrics(
        cls,
        vllm_config: Any,
        metric_types: Any,
        labelnames: list[str],
        per_engine_labelvalues: dict[int, list[object]],
    ) -> KVConnectorPromMetrics:
        """Where statistics are shown to Prometheus."""
        return PromMetrics(vllm_config, metric_types, labelnames, per_engine_labelvalues)

    def get_kv_connector_stats(self) -> KVConnectorStats | None:
        """What was counted since the last call; workers count for their scheduler."""
        return self.connector_scheduler and self.connector_scheduler.get_stats()

    def shutdown(self) -> None:
        """End whichever role this is."""
        for role in (self.connector_worker, self.connector_scheduler):
            if role is not None:
                role.shutdown()

    # --- worker ---

    def register_kv_caches(self, kv_caches: dict[str, Any]) -> None:
        """The KV caches are there: copies can begin."""
        self._worker.register_kv_caches(kv_caches)

    def handle_preemptions(self, kv_connector_metadata: Any) -> None:
        """Before the step changes any block."""
        self._worker.handle_preemptions(kv_connector_metadata)

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        """Submit what is due."""
        self._worker.start_kv_transfers(self._metadata())

    def wait_for_layer_load(self, layer_name: str) -> None:
        """Loads end between steps, never within one."""

    def save_kv_layer(
        self, layer_name: str, kv_layer: Any, attn_metadata: Any, **kwargs: Any
    ) -> None:
        """Stores take whole blocks after the step."""

    def wait_for_save(self) -> None:
        """Keep this step's stores for the next launch."""
        self._worker.prepare_store_kv(self._metadata())

    def get_finished(self, finished_req_ids: set[str]) -> tuple[set[str], set[str]]:
        """Requests whose loads have ended."""
        return self._worker.get_finished(finished_req_ids)

    def get_transfer_results(self, finished_req_ids: set[str]) -> KVConnectorTransferResults:
        """Requests whose loads have ended, and which of those failed."""
        return self._worker.results()

    def build_connector_worker_meta(self) -> OffloadingWorkerMetadata | None:
        """What the worker has to report."""
        return self.connector_worker and self.connector_worker.build_connector_worker_meta()

    def _metadata(self) -> Any:
        meta = self._get_connector_metadata()
        if not isinstance(meta, self._worker.message):
            raise RuntimeError(f"the step carries {type(meta).__name__}, not this connector's own")
        return meta

    # --- scheduler ---

    def bind_kv_cache_manager(self, kv_cache_manager: Any) -> None:
        """The core's block tables, which stores are planned from."""
        super().bind_kv_cache_manager(kv_cache_manager)
        self._scheduler.tables.bind(kv_cache_manager)

    def on_new_request(self, request: Any) -> None:
        """A request enters."""
        self._scheduler.on_new_request(request)

    def get_num_new_matched_tokens(
        self, request: Any, num_computed_tokens: int
    ) -> tuple[int | None, bool]:
        """How many tokens beyond those computed can be loaded; None: ask again."""
        bound = self._most_loadable(request, num_computed_tokens) if self._bounding else None
        return self._scheduler.get_num_new_matched_tokens(request, num_computed_tokens, bound)

    def _most_loadable(self, request: Any, computed: int) -> int:
        """Groups that are not offloaded bound a load by their own GPU prefix."""
        core: Any = self._kv_cache_manager
        _, hits = core.coordinator.find_longest_cache_hit_per_group(
            request.block_hashes, request.num_tokens - 1
        )
        most: int = min(hits[group] for group in self._bounding)
        return max(0, most - computed)

    def get_external_cache_hit_sources(
        self, request: Any, num_external_tokens: int
    ) -> dict[CacheHitSource, int]:
        """Which tiers supply the tokens that were just taken."""
        return self._scheduler.get_external_cache_hit_sources(request, num_external_tokens)

    def update_state_after_alloc(self, request: Any, blocks: Any, num_external_tokens: int) -> None:
        """Blocks were handed out."""
        self._scheduler.update_state_after_alloc(request, blocks, num_external_tokens)

    def build_connector_meta(self, scheduler_output: Any) -> OffloadingConnectorMetadata:
        """The transfers of the step that was just scheduled."""
        return self._scheduler.build_connector_meta(scheduler_output)

    def update_connector_output(self, connector_output: Any) -> None:
        """Workers have ended jobs."""
        self._scheduler.update_connector_output(connector_output)

    def request_finished(
        self, request: Any, block_ids: list[int]
    ) -> tuple[bool, dict[str, Any] | None]:
        """A request of a model with one group ends."""
        return self.request_finished_all_groups(request, (block_ids,))

    def request_finished_all_groups(
        self, request: Any, block_ids: tuple[list[int], ...]
    ) -> tuple[bool, dict[str, Any] | None]:
        """A request ends; its blocks may be freed at once, the fence sees to the rest."""
        self._scheduler.request_finished(request, block_ids)
        return False, None

    def has_pending_push_work(self) -> bool:
        """Whether the engine must go on stepping."""
        return self._scheduler.has_pending_push_work()

    def take_events(self) -> Iterable[Any]:
        """What entered and left the tier."""
        return self._scheduler.take_events()

    def reset_cache(self) -> bool | None:
        """Forget everything; always possible."""
        self._scheduler.reset_cache()
        return True
