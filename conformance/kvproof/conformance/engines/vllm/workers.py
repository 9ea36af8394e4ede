"""The worker side: the release's connector in its worker role, around a faked forward.

The order of loads, forward and saves is the release's own: each worker enters the connector context
manager of the release's model runner (``KVConnectorModelRunnerMixin``), after
``handle_preemptions`` and the block clearing and copying that the runner does first.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from typing import Any

import msgspec

from kvproof.conformance.engines.base import Emit, Step
from kvproof.conformance.engines.vllm import second
from kvproof.conformance.engines.vllm.configs import RunConfig
from kvproof.conformance.engines.vllm.copier import RecordingCopier
from kvproof.conformance.engines.vllm.features import Features, takes_failures
from kvproof.conformance.engines.vllm.jobs import Jobs, own_copy
from kvproof.conformance.engines.vllm.release import Release
from kvproof.conformance.trace.events import (
    Computing,
    CopyBlock,
    Forward,
    Launch,
    Report,
    Wait,
    Zero,
)


class Batch(msgspec.Struct):
    """One scheduled step on its way to the workers.

    Attributes:
        step: its number.
        output: the core's scheduler output.
        computing: what the forward computes.
        samples: request id -> sampled tokens, in the order of the batch.
        copies: (source lease, destination lease) of block copies.
        zeroed: leases to clear.
        requests: the core's request objects that the step computes.
    """

    step: int
    output: Any
    computing: list[Computing]
    samples: dict[str, list[int]]
    copies: list[tuple[int, int]]
    zeroed: list[int]
    requests: list[Any]


class Workers:
    """All workers of one run, in rank order."""

    def __init__(
        self,
        release: Release,
        features: Features,
        config: RunConfig,
        blocks_per_chunk: int,
        scheduler_connector: Any,
        jobs: Jobs,
        emit: Emit,
        make_copier: Callable[..., RecordingCopier] = RecordingCopier,
    ) -> None:
        self._release = release
        self._vllm_config = config.vllm_config
        self._emit = emit
        self._jobs = jobs
        self._mixin = release.runner_mixin.KVConnectorModelRunnerMixin
        self._current: Any = None
        self.connectors = []
        self.copiers = []
        for rank, worker_config in enumerate(config.worker_configs):
            connector = release.connector_factory.create_connector(
                config=worker_config,
                role=release.connector_role.WORKER,
                kv_cache_config=config.kv_cache_config,
            )
            copier = make_copier(
                rank, blocks_per_chunk, features.copier_swallows, release.transfer_result, emit
            )
            second.offloading(connector).connector_worker.worker = copier
            second.attach_worker(connector, rank, copier, emit)
            self.connectors.append(connector)
            self.copiers.append(copier)
        size = len(self.connectors)
        # A single worker's output reaches the core as it is, several are aggregated first.
        self._aggregator = (
            release.aggregator.from_connector(scheduler_connector, size) if size > 1 else None
        )

    @property
    def take_failures(self) -> bool:
        """Whether every worker has a way to report a copy that failed."""
        return all(
            takes_failures(type(second.offloading(c).connector_worker)) for c in self.connectors
        )

    def run(self, batch: Batch, move: Step) -> tuple[Any, list[Report]]:
        """Execute a step on every worker.

        Args:
            batch: the step.
            move: which copies end before the workers report, and which of them fail.

        Returns:
            The model runner output for the core, and the reports in it.
        """
        outputs = []
        reports: list[Report] = []
        for rank, copier in enumerate(self.copiers):
            output = self._run(rank, batch, move)
            outputs.append(output)
            carried = output.kv_connector_output
            if carried is not None:
                part = copy.copy(carried)
                part.kv_connector_worker_meta = second.offloading_part(
                    getattr(carried, "kv_connector_worker_meta", None)
                )
                reports += self._jobs.reports(batch.step, rank, part, copier.failed)
        if self._aggregator is None:
            return outputs[0], reports
        return self._aggregator.aggregate(outputs), reports

    def _run(self, rank: int, batch: Batch, move: Step) -> Any:
        emit, step = self._emit, batch.step
        connector, copier = self.connectors[rank], self.copiers[rank]
        copier.step, copier.finish, copier.fail = step, move.finish, move.fail
        emit(Launch(step, rank))
        output = _own_copy(batch.output)
        with self._as_current(connector):
            connector.handle_preemptions(output.kv_connector_metadata)
            if told := self._jobs.told(step):
                emit(Wait(step, rank, told))
            if batch.zeroed:
                emit(Zero(step, rank, batch.zeroed))
            for source, target in batch.copies:
                emit(CopyBlock(step, rank, source, target))
            copier.changes(output)
            if not batch.output.total_num_scheduled_tokens:
                # The release may answer with one shared empty output, which the aggregator fills.
                return copy.copy(self._mixin.kv_connector_no_forward(output, self._vllm_config))
            with self._mixin.maybe_get_kv_connector_output(output) as carried:
                copier.forward(output, batch.computing)
                emit(Forward(step, rank, batch.computing))
        identities = list(batch.samples)
        return self._release.outputs.ModelRunnerOutput(
            req_ids=identities,
            req_id_to_index={identity: index for index, identity in enumerate(identities)},
            sampled_token_ids=list(batch.samples.values()),
            kv_connector_output=carried,
        )

    @contextlib.contextmanager
    def _as_current(self, connector: Any) -> Any:
        """Make ``connector`` the process's transfer group, as each worker process has its own."""
        mixin = self._release.runner_mixin
        names = {
            "get_kv_transfer_group": lambda: connector,
            "has_kv_transfer_group": lambda: True,
            "get_forward_context": lambda: None,
            "set_forward_context": _no_forward_context,
        }
        saved = {name: getattr(mixin, name) for name in names}
        vars(mixin).update(names)
        try:
            yield
        finally:
            vars(mixin).update(saved)

    @property
    def refused(self) -> bool:
        """A copier turned a job away."""
        return any(copier.refused for copier in self.copiers)

    def forget(self) -> None:
        """No job that was submitted is under way."""
        for copier in self.copiers:
            copier.failed.clear()

    def shutdown(self) -> None:
        """End the worker roles."""
        for connector in self.connectors:
            connector.shutdown()


def _no_forward_context(*_args: Any, **_kwargs: Any) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext()


def _own_copy(output: Any) -> Any:
    """A worker's own scheduler output: workers change the metadata's tables, and share none."""
    output = copy.copy(output)
    whole = output.kv_connector_metadata
    meta = own_copy(second.offloading_part(whole))
    output.kv_connector_metadata = second.with_offloading_part(whole, meta)
    return output
