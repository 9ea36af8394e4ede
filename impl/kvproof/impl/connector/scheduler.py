"""The scheduler role: vLLM's calls translated, both ways, and none of them raises.

Whatever goes wrong in our scheduler or in the tier, the engine goes on: from then on the tier is
*cold*, which means that nothing is loaded or stored any more (see ``scheduler.cold``).
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterable, Sequence
from typing import Any

from vllm.distributed.kv_transfer.kv_connector.v1.offloading.common import (
    OffloadingWorkerMetadata,
    TransferJob,
)
from vllm.distributed.kv_transfer.kv_connector.v1.offloading.metrics import (
    OffloadingConnectorStats,
)
from vllm.logger import init_logger
from vllm.v1.kv_offload.base import (
    GPULoadStoreSpec,
    OffloadingSpec,
    ReqContext,
    ScheduleEndContext,
)
from vllm.v1.metrics.cache_hit_source import CacheHitSource
from vllm.v1.request import RequestStatus

from kvproof.impl.connector import parameters
from kvproof.impl.connector.config import geometry_of, layouts_of, options_of
from kvproof.impl.connector.described import Described
from kvproof.impl.connector.events import EventStream
from kvproof.impl.connector.messages import StepMetadata, WorkerReport
from kvproof.impl.connector.own_manager import tier_of
from kvproof.impl.connector.sources import hit_sources
from kvproof.impl.connector.statistics import Statistics
from kvproof.impl.connector.tables import CoreTables
from kvproof.impl.scheduler.cold import ColdScheduler
from kvproof.impl.scheduler.geometry import Geometry
from kvproof.impl.scheduler.jobs import Job
from kvproof.impl.scheduler.plan import Plan, Step, Transfer
from kvproof.impl.scheduler.scheduler import OffloadScheduler

logger = init_logger(f"vllm.{__name__}")  # vLLM shows what is below its own name


class SchedulerRole:
    """One engine's scheduler.

    Attributes:
        manager: the tier's manager.
        tables: the engine's block tables.
        core: does the thinking; replaced by a ``ColdScheduler`` when it, or the tier, has raised.
        cause: what it, or the tier, has raised first.
    """

    def __init__(self, spec: OffloadingSpec, vllm_config: Any, kv_cache_config: Any) -> None:
        self.manager = spec.get_manager()
        self.tables = CoreTables()
        self.core: OffloadScheduler | ColdScheduler
        sizes = geometry_of(spec, kv_cache_config)
        self.core = self._warm = OffloadScheduler(
            sizes,
            tier_of(self.manager, sizes),
            self.tables,
            options_of(spec, vllm_config),
        )
        self._groups = self._warm.geometry.groups
        layouts = layouts_of(spec, vllm_config, kv_cache_config)
        self._events = EventStream(spec.kv_events_config, layouts)
        self._described = Described(self._events, self._groups)
        self._statistics = Statistics()
        self._computed: dict[str, int] = {}
        self.cause: Exception | None = None
        self._lives = 0

    @property
    def is_cold(self) -> bool:
        """Whether nothing is offloaded any more."""
        return self.core is not self._warm

    def residue(self) -> dict[str, int]:
        """Entries of the tables that are empty when no request is left and all jobs have ended."""
        return self._warm.residue()

    @property
    def geometry(self) -> Geometry:
        """Sizes of groups and chunks."""
        return self._warm.geometry

    # --- requests ---

    def on_new_request(self, request: Any) -> None:
        """A request enters."""
        parameters.tidy(request)
        limits, context = parameters.limits_of(request), parameters.context_of(request)
        context.req_id = self._name_in_tier(request.request_id)
        self._described.arrive(request)
        try:
            try:
                self.core.add(request, context, limits)
            except Exception as error:
                if not request.kv_transfer_params:
                    raise
                # What a client sends must not cost the others their tier.
                logger.warning("The tier cannot make sense of kv_transfer_params: %r", error)
                context = ReqContext(req_id=context.req_id, kv_hints=request.kv_hints)
                self.core.add(request, context, limits)
        except Exception as error:
            self._cool(error)

    def _name_in_tier(self, request_id: str) -> str:
        """Its id; another name while a former life of that id has dealings with the tier (P13).

        vLLM's manager of tiers keeps what it knows of a request under the context's id.
        """
        if not self._warm.lingers(request_id):
            return request_id
        self._lives += 1
        return f"{request_id}~{self._lives}"

    def request_finished(self, request: Any, block_ids: Sequence[Sequence[int]]) -> None:
        """A request ends; its blocks are freed after this call."""
        self._computed.pop(request.request_id, None)
        self._described.end(request.request_id)
        if self._statistics.waiting:
            self._statistics.resolved(request.request_id, time.monotonic())
        if request.status is RequestStatus.FINISHED_ABORTED:
            tokens = request.num_computed_tokens
        else:
            # What was sampled last was never computed.
            tokens = min(request.num_computed_tokens, request.num_tokens - 1)
        blocks = [block_ids[group.index] for group in self._groups]
        try:
            self.core.finish(request.request_id, tokens, blocks)
        except Exception as error:
            self._cool(error)
            self.core.finish(request.request_id, tokens, blocks)

    # --- lookups and loads ---

    def get_num_new_matched_tokens(
        self, request: Any, num_computed_tokens: int, bound: int | None = None
    ) -> tuple[int | None, bool]:
        """How many tokens can be loaded, and whether that takes place between steps."""
        request_id = request.request_id
        self._computed[request_id] = num_computed_tokens
        began = time.monotonic()
        try:
            tokens = self.core.lookup(request, num_computed_tokens, bound)
        except Exception as error:
            self._cool(error)
            tokens = 0
        if not request.skip_reading_prefix_cache:
            self._statistics.lookup(request_id, began, time.monotonic(), tokens is None)
        return tokens, bool(tokens)

    def update_state_after_alloc(self, request: Any, blocks: Any, external: int) -> None:
        """Blocks were handed out; ``external`` tokens of the answer are taken."""
        fresh = [
            [
                0 if b.is_null or b.block_hash is not None else b.block_id
                for b in blocks.blocks[g.index]
            ]
            for g in self._groups
        ]
        computed = self._computed.get(request.request_id, 0)
        try:
            self.core.allocated(request, fresh, external, computed)
            if external and self._events.describes:
                self._described.found(request, self._warm.latest_load)
        except Exception as error:
            self._cool(error)
            self.core.allocated(request, fresh, external, computed)

    def get_external_cache_hit_sources(
        self, request: Any, tokens: int
    ) -> dict[CacheHitSource, int]:
        """Which tiers the tokens come from that were just taken."""
        load = self._warm.latest_load
        if load is not None and load.state.request is not request:
            load = None
        try:
            return hit_sources(self.geometry, load, tokens, self.manager)
        except Exception as error:
            self._cool(error)
            return hit_sources(self.geometry, None, tokens, self.manager)

    # --- a step ---

    def build_connector_meta(self, output: Any) -> StepMetadata:
        """The transfers of the step that was just scheduled."""
        started = [new.req_id for new in output.scheduled_new_reqs]
        self._schedule_ends(list(started), output.preempted_req_ids or ())
        started += output.scheduled_cached_reqs.resumed_req_ids
        state = output.kv_connector_block_state
        step = Step(
            output.num_scheduled_tokens,
            started,
            lambda: self._leased(output),
            state.boundary_state_offloads if state else {},
            output.preempted_req_ids or (),
        )
        try:
            plan = self.core.plan(step)
            if self._events.describes:
                self._described.stored(plan, self._warm)
        except Exception as error:
            self._cool(error)
            plan = self.core.plan(step)
        return _metadata(plan)

    def _schedule_ends(self, new: Sequence[str], preempted: Iterable[str]) -> None:
        try:
            self.manager.on_schedule_end(
                ScheduleEndContext(new_req_ids=new, preempted_req_ids=list(preempted))
            )
        except Exception as error:
            self._cool(error)

    def _leased(self, output: Any) -> set[int]:
        """The blocks that this step's requests were newly given; what they share is not new."""
        found: set[int] = set()
        for new in output.scheduled_new_reqs:
            self._fresh(found, new.block_ids, new.num_computed_tokens)
        cached = output.scheduled_cached_reqs
        for i, ids in enumerate(cached.new_block_ids):
            if ids is not None:
                resumed = cached.req_ids[i] in cached.resumed_req_ids
                self._fresh(found, ids, cached.num_computed_tokens[i] if resumed else 0)
        found.update(copy.dst_block_id for copy in output.kv_cache_block_copies or ())
        found.discard(0)
        return found

    def _fresh(self, found: set[int], ids: Sequence[Sequence[int]], computed: int) -> None:
        for group in self._groups:
            found.update(ids[group.index][computed // group.tokens_per_block :])

    # --- ends ---

    def update_connector_output(self, output: Any) -> None:
        """Workers have ended jobs."""
        report = output.kv_connector_worker_meta
        if not isinstance(report, OffloadingWorkerMetadata):
            return
        self._statistics.transfers(report.transfer_stats)
        failed = report.failed_jobs if isinstance(report, WorkerReport) else ()
        for job, workers in report.completed_jobs.items():
            self.report(job, workers, job in failed)

    def job(self, number: int) -> Job | None:
        """A job that is under way."""
        return self._warm.job(number)

    def report(self, job: int, workers: int, failed: bool) -> None:
        """So many workers more have ended a job."""
        try:
            self.core.report(job, workers, failed)
        except Exception as error:
            self._cool(error)
            self.core.report(job, workers, failed)

    def has_pending_push_work(self) -> bool:
        """Whether the engine must go on stepping."""
        if self.core.has_work or self._events.waiting:
            return True
        try:
            # A tier that is cold is not waited for: it may never come to rest.
            return not self.is_cold and self.manager.has_pending_work()
        except Exception as error:
            self._cool(error)
            return self.core.has_work

    def reset_cache(self) -> None:
        """Forget everything."""
        try:
            self.core.reset()
        except Exception as error:
            self._cool(error)
            self.core.reset()
        try:
            # Tiers that bring chunks back may end that first, and tell of what is gone just then.
            self._events.reset(self.manager.take_events())
        except Exception as error:
            self._cool(error)

    def take_events(self) -> list[Any]:
        """What entered and left the tier."""
        try:
            return self._events.take(self.manager.take_events())
        except Exception as error:
            self._cool(error)
            return []

    def get_stats(self) -> OffloadingConnectorStats | None:
        """What was counted since the last call, by us and by the tier."""
        stats = self._statistics.take(self._warm.counts)
        try:
            theirs = self.manager.get_stats()
            if stats is None or theirs is None:
                return stats or theirs
            stats.aggregate(theirs)
        except Exception as error:
            self._cool(error)
        return stats

    def shutdown(self) -> None:
        """End the tier."""
        self.manager.shutdown()

    # --- contradictions ---

    def _cool(self, error: Exception) -> None:
        """Go on without the tier."""
        if self.is_cold:
            self._warm.counts["cold_faults"] += 1
            return
        self.core = self._warm.cool()
        self.cause = error
        frame = traceback.extract_tb(error.__traceback__)[-1]
        logger.error(
            "KV offloading has stopped, all prompts are computed from now on: %s: %s (%s:%s)",
            type(error).__name__,
            " ".join(str(error).split()),
            frame.filename,
            frame.lineno,
        )


def _gpu(transfer: Transfer) -> GPULoadStoreSpec:
    return GPULoadStoreSpec(transfer.blocks, transfer.group_sizes, transfer.first_positions)


def _metadata(plan: Plan) -> StepMetadata:
    return StepMetadata(
        load_jobs={
            number: TransferJob(t.request_id, t.place, _gpu(t)) for number, t in plan.loads.items()
        },
        store_jobs={
            number: TransferJob(t.request_id, _gpu(t), t.place) for number, t in plan.stores.items()
        },
        jobs_to_flush=plan.flush or None,
        lost=plan.lost,
    )
