"""The scheduler role: vLLM's calls translated, both ways."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from vllm.distributed.kv_transfer.kv_connector.v1.offloading.common import (
    OffloadingWorkerMetadata,
    TransferJob,
)
from vllm.logger import init_logger
from vllm.v1.kv_offload.base import (
    GPULoadStoreSpec,
    OffloadingSpec,
    ReqContext,
    ScheduleEndContext,
)
from vllm.v1.request import RequestStatus

from kvproof.impl.connector.config import geometry_of, options_of
from kvproof.impl.connector.events import EventStream
from kvproof.impl.connector.messages import StepMetadata, WorkerReport
from kvproof.impl.connector.tables import CoreTables
from kvproof.impl.connector.tier import ManagerTier
from kvproof.impl.scheduler.plan import Plan, Step, Transfer
from kvproof.impl.scheduler.request import Limits
from kvproof.impl.scheduler.scheduler import OffloadScheduler

logger = init_logger(__name__)


class SchedulerRole:
    """One engine's scheduler. ``manager`` is the tier's manager, ``core`` does the thinking."""

    def __init__(self, spec: OffloadingSpec, vllm_config: Any, kv_cache_config: Any) -> None:
        self.manager = spec.get_manager()
        self.tables = CoreTables()
        self.core = OffloadScheduler(
            geometry_of(spec, kv_cache_config),
            ManagerTier(self.manager),
            self.tables,
            options_of(spec, vllm_config),
        )
        self._groups = self.core.geometry.groups
        self._events = EventStream(spec.kv_events_config)
        self._computed: dict[str, int] = {}

    # --- requests ---

    def on_new_request(self, request: Any) -> None:
        """A request enters."""
        parameters = request.kv_transfer_params
        context = ReqContext(
            req_id=request.request_id, kv_transfer_params=parameters, kv_hints=request.kv_hints
        )
        self.core.add(request, context, _limits(request, parameters))

    def request_finished(self, request: Any, block_ids: Sequence[Sequence[int]]) -> None:
        """A request ends; its blocks are freed after this call."""
        self._computed.pop(request.request_id, None)
        if request.status is RequestStatus.FINISHED_ABORTED:
            tokens = request.num_computed_tokens
        else:
            # What was sampled last was never computed.
            tokens = min(request.num_computed_tokens, request.num_tokens - 1)
        blocks = [block_ids[group.index] for group in self._groups]
        self.core.finish(request.request_id, tokens, blocks)

    # --- lookups and loads ---

    def get_num_new_matched_tokens(
        self, request: Any, num_computed_tokens: int, bound: int | None
    ) -> tuple[int | None, bool]:
        """How many tokens can be loaded, and whether that takes place between steps."""
        self._computed[request.request_id] = num_computed_tokens
        tokens = self.core.lookup(request, num_computed_tokens, bound)
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
        self.core.allocated(request, fresh, external, computed)

    # --- a step ---

    def build_connector_meta(self, output: Any) -> StepMetadata:
        """The transfers of the step that was just scheduled."""
        started = [new.req_id for new in output.scheduled_new_reqs]
        self.manager.on_schedule_end(
            ScheduleEndContext(
                new_req_ids=list(started), preempted_req_ids=output.preempted_req_ids or ()
            )
        )
        started += output.scheduled_cached_reqs.resumed_req_ids
        state = output.kv_connector_block_state
        plan = self.core.plan(
            Step(
                output.num_scheduled_tokens,
                started,
                lambda: self._leased(output),
                state.boundary_state_offloads if state else {},
            )
        )
        return _metadata(plan)

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
        failed = report.failed_jobs if isinstance(report, WorkerReport) else ()
        for job, workers in report.completed_jobs.items():
            self.core.report(job, workers, job in failed)

    def has_pending_push_work(self) -> bool:
        """Whether the engine must go on stepping."""
        return self.core.has_work or self.manager.has_pending_work()

    def reset_cache(self) -> None:
        """Forget everything."""
        self._events.reset(self.manager.take_events())
        self.core.reset()

    def take_events(self) -> Iterable[Any]:
        """What entered and left the tier."""
        return self._events.take(self.manager.take_events())

    def shutdown(self) -> None:
        """End the tier."""
        self.manager.shutdown()


def _limits(request: Any, parameters: Any) -> Limits:
    """A client's caps; what is no cap is passed over with a warning, never raised."""
    return Limits(
        max_load=_cap(parameters, "max_load_tokens"),
        max_store=_cap(parameters, "max_offload_tokens"),
        skip_reading=bool(request.skip_reading_prefix_cache),
    )


def _cap(parameters: Any, name: str) -> int | None:
    value = parameters.get(name) if isinstance(parameters, dict) else None
    if value is None or (type(value) is int and value >= 0):
        return value
    logger.warning("%s must be an integer of at least 0, not %r: it is passed over", name, value)
    return None


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
