"""Shadow mode: the stock scheduler serves, ours listens and says where it would have differed.

Ours has a tier of the same size that holds no bytes. It is told all that the stock scheduler is
told, and that every load is somebody else's. Its stores end when the stock scheduler's stores of
the same keys have ended. Two things are compared: each answer to a lookup, and, when a request has
ended, which of its chunks each tier has. Whatever goes wrong in our scheduler ends the listening,
never the service.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorTransferResults
from vllm.distributed.kv_transfer.kv_connector.v1.offloading.common import (
    OffloadingConnectorMetadata,
)
from vllm.distributed.kv_transfer.kv_connector.v1.offloading.metrics import (
    OffloadingConnectorStats,
)
from vllm.distributed.kv_transfer.kv_connector.v1.offloading.scheduler import (
    OffloadingConnectorScheduler,
)
from vllm.distributed.kv_transfer.kv_connector.v1.offloading.worker import (
    OffloadingConnectorWorker,
)
from vllm.logger import init_logger
from vllm.v1.kv_offload.base import LookupResult, OffloadingManager, OffloadingSpec
from vllm.v1.kv_offload.cpu.manager import CPUOffloadingManager
from vllm.v1.metrics.cache_hit_source import CacheHitSource

from kvproof.impl.connector.config import UnsupportedSetup
from kvproof.impl.connector.scheduler import SchedulerRole
from kvproof.impl.connector.statistics import Statistics
from kvproof.impl.connector.tables import CoreTables
from kvproof.impl.scheduler.keys import keys_of
from kvproof.impl.scheduler.views import Key

logger = init_logger(f"vllm.{__name__}")  # vLLM shows what is below its own name

MOST_LINES = 100
"""How many differences are logged one by one; all are counted."""


class StockWorker(OffloadingConnectorWorker):
    """The stock worker, with the one call that the core makes of it in other words."""

    message = OffloadingConnectorMetadata

    def results(self) -> KVConnectorTransferResults:
        """Requests whose loads have ended; the stock worker knows no failures."""
        sending, receiving = self.get_finished(set())
        return KVConnectorTransferResults(finished_sending=sending, finished_recving=receiving)


class ShadowRole:
    """Has the calls of ``SchedulerRole``.

    Attributes:
        manager: the manager of the tier that serves.
        ours: our scheduler, over a tier of its own.
        counts: ``shadow_answers`` and ``shadow_differences``.
    """

    def __init__(self, spec: OffloadingSpec, vllm_config: Any, kv_cache_config: Any) -> None:
        self._stock = OffloadingConnectorScheduler(spec, vllm_config, kv_cache_config)
        self.manager: OffloadingManager = self._stock.manager
        if type(self.manager) is not CPUOffloadingManager:
            raise UnsupportedSetup(
                "shadow in kv_connector_extra_config needs the tier of CPUOffloadingSpec,"
                f" not {type(self.manager).__name__}"
            )
        # Nobody would take its events.
        twin = type(spec)(replace(spec.config, enable_kv_cache_events=False))
        self.ours = SchedulerRole(twin, vllm_config, kv_cache_config)
        self.counts: Counter[str] = Counter()
        self._workers = vllm_config.parallel_config.world_size
        self._statistics = Statistics()
        self._listens = True
        self._said: dict[str, tuple[int, int]] = {}
        self._storing: set[int] = set()
        self._ended: list[Any] = []

    @property
    def tables(self) -> CoreTables:
        """The engine's block tables, which ours reads."""
        return self.ours.tables

    # --- what the engine asks ---

    def on_new_request(self, request: Any) -> None:
        """A request enters."""
        self._listen(self.ours.on_new_request, request)
        self._stock.on_new_request(request)

    def get_num_new_matched_tokens(
        self, request: Any, num_computed_tokens: int, bound: int | None = None
    ) -> tuple[int | None, bool]:
        """How many tokens the stock scheduler can load."""
        answer: tuple[int | None, bool]
        answer = self._stock.get_num_new_matched_tokens(request, num_computed_tokens, bound)
        ours = self._listen(
            self.ours.get_num_new_matched_tokens, request, num_computed_tokens, bound
        )
        if ours is not None:
            self._compare_answers(request, num_computed_tokens, answer[0], ours[0])
        return answer

    def update_state_after_alloc(self, request: Any, blocks: Any, external: int) -> None:
        """Blocks were handed out."""
        self._stock.update_state_after_alloc(request, blocks, external)
        self._listen(self.ours.update_state_after_alloc, request, blocks, 0)

    def get_external_cache_hit_sources(
        self, request: Any, tokens: int
    ) -> dict[CacheHitSource, int]:
        """Which tiers the tokens come from that were just taken."""
        found: dict[CacheHitSource, int]
        found = self._stock.get_external_cache_hit_sources(request, tokens)
        return found

    def build_connector_meta(self, output: Any) -> OffloadingConnectorMetadata:
        """The stock scheduler's transfers of the step that was just scheduled."""
        meta: OffloadingConnectorMetadata = self._stock.build_connector_meta(output)
        ours = self._listen(self.ours.build_connector_meta, output)
        if ours is not None:
            self._storing.update(ours.store_jobs)
            ended, self._ended = self._ended, []
            for request in ended:
                self._listen(self._compare_tiers, request)
        return meta

    def update_connector_output(self, output: Any) -> None:
        """Workers have ended jobs."""
        self._stock.update_connector_output(output)
        self._listen(self._end_stores)

    def request_finished(self, request: Any, block_ids: Sequence[Sequence[int]]) -> None:
        """A request ends."""
        self._stock.request_finished(request)
        self._said.pop(request.request_id, None)
        self._listen(self.ours.request_finished, request, block_ids)
        self._ended.append(request)

    def has_pending_push_work(self) -> bool:
        """Whether the stock scheduler needs the engine to go on stepping."""
        return bool(self._stock.has_pending_push_work())

    def reset_cache(self) -> None:
        """Forget everything."""
        self._stock.reset_cache()
        self._storing.clear()
        self._listen(self.ours.reset_cache)

    def take_events(self) -> list[Any]:
        """What entered and left the tier that serves."""
        return list(self._stock.take_events())

    def get_stats(self) -> OffloadingConnectorStats | None:
        """The stock statistics, and how often ours differed."""
        stats, more = self._stock.get_stats(), self._statistics.take(self.counts)
        if stats is None or more is None:
            return stats or more
        stats.aggregate(more)
        return stats

    def shutdown(self) -> None:
        """End both tiers."""
        self._stock.shutdown()
        self._listen(self.ours.shutdown)

    # --- listening ---

    def _listen(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """What ours says; None once it has failed."""
        if not self._listens:
            return None
        try:
            found = call(*arguments)
        except Exception as error:
            self._stop(f"{type(error).__name__}: {error}")
            return None
        if self.ours.is_cold:
            self._stop("its own log line says why")
            return None
        return found

    def _stop(self, why: str) -> None:
        self._listens = False
        self._ended.clear()
        self.counts["shadow_differences"] += 1
        logger.error("Shadow: our scheduler has failed and is not asked any more: %s", why)

    def _end_stores(self) -> None:
        """End those of our stores of whose keys the stock scheduler stores none any more."""
        for number in sorted(self._storing):
            job = self.ours.job(number)
            if job is None:
                self._storing.discard(number)
            elif all(_status(self.manager, k) is not LookupResult.HIT_PENDING for k in job.keys):
                self._storing.discard(number)
                self.ours.report(number, self._workers, False)

    # --- comparing ---

    def _compare_answers(
        self, request: Any, computed: int, theirs: int | None, ours: int | None
    ) -> None:
        """Compare final answers; the token that is computed anyway counts on neither side."""
        if theirs is None or ours is None:
            return
        answers = min(theirs, request.num_tokens - 1 - computed), ours
        if self._said.get(request.request_id) == answers:
            return
        self._said[request.request_id] = answers
        self.counts["shadow_answers"] += 1
        if answers[0] != answers[1]:
            self._differ(
                "of request %s the GPU has %d tokens; the stock scheduler loads %d more, ours %d",
                request.request_id,
                computed,
                *answers,
            )

    def _compare_tiers(self, request: Any) -> None:
        """Compare what the tiers have of a request that has ended."""
        more = fewer = 0
        for group in self.ours.geometry.groups:
            for key in keys_of(
                request, group, 0, len(request.block_hashes) // group.hashes_per_chunk
            ):
                theirs = _status(self.manager, key) is not LookupResult.MISS
                ours = _status(self.ours.manager, key) is not LookupResult.MISS
                more += ours and not theirs
                fewer += theirs and not ours
        if more or fewer:
            self._differ(
                "of request %s, ours would have stored %d chunks more and %d fewer",
                request.request_id,
                more,
                fewer,
            )

    def _differ(self, text: str, *arguments: Any) -> None:
        self.counts["shadow_differences"] += 1
        if self.counts["shadow_differences"] <= MOST_LINES:
            logger.warning("Shadow: " + text, *arguments)


def _status(manager: Any, key: Key) -> LookupResult:
    """What the CPU manager has of a key; asking it changes nothing."""
    return CPUOffloadingManager.lookup(manager, key, None)
