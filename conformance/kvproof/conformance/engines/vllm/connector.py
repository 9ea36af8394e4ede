"""The tap on the connector's scheduler role: the engine's calls on it, and the jobs it issues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kvproof.conformance.engines.vllm import decode
from kvproof.conformance.engines.vllm.blocks import BlockTap
from kvproof.conformance.engines.vllm.features import Features
from kvproof.conformance.engines.vllm.jobs import Jobs
from kvproof.conformance.engines.vllm.recorder import Recorder
from kvproof.conformance.engines.vllm.tier import TierTap
from kvproof.conformance.trace.events import (
    SCHEDULER_RANK,
    Allocated,
    Answer,
    Ask,
    Computing,
    Flush,
    Issue,
    KvChange,
    KvEvents,
    Received,
    Report,
    Reset,
)

Plan = Callable[[Any], list[Computing]]
"""What a scheduler output computes; called before the connector sees the output."""


class ConnectorTap:
    """Wraps the calls that the core scheduler makes on its connector, in place.

    Attributes:
        reports: the workers' reports in the output that is about to be processed.
        copies: (source lease, destination lease) of the block copies of the last schedule.
        resets: how many resets reached the connector.
    """

    def __init__(
        self,
        recorder: Recorder,
        blocks: BlockTap,
        tier: TierTap,
        features: Features,
        connector: Any,
        blocks_per_chunk: int,
        plan: Plan,
        jobs: Jobs,
    ) -> None:
        self._recorder = recorder
        self._blocks = blocks
        self._tier = tier
        self._blocks_per_chunk = blocks_per_chunk
        self._plan = plan
        self._jobs = jobs
        self._tables = connector.connector_scheduler
        self.reports: list[Report] = []
        self.copies: list[tuple[int, int]] = []
        self.computing: list[Computing] = []
        self.resets = 0
        wrapped: list[tuple[str, Callable[..., Any]]] = [
            ("get_num_new_matched_tokens", self._ask),
            ("update_state_after_alloc", self._allocated),
            ("build_connector_meta", self._build),
            ("update_connector_output", self._update),
            ("take_events", self._take_events),
        ]
        if features.connector_reset:
            wrapped.append(("reset_cache", self._reset))
        for name, wrap in wrapped:
            setattr(connector, name, wrap(getattr(connector, name)))

    def _ask(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self._recorder

        def get_num_new_matched_tokens(request: Any, computed: int) -> Any:
            name = recorder.of_request(request)
            recorder.asked(name)
            recorder.emit(Ask(recorder.step, SCHEDULER_RANK, name, computed))
            try:
                tokens, asynchronous = inner(request, computed)
            except Exception:
                recorder.blame("get_num_new_matched_tokens", name)
                raise
            self._settle_context(request.request_id, name)
            recorder.emit(Answer(recorder.step, SCHEDULER_RANK, name, tokens, bool(asynchronous)))
            return tokens, asynchronous

        return get_num_new_matched_tokens

    def _settle_context(self, identity: str, name: str) -> None:
        """Know whose a request context is before the tier is given it."""
        state = getattr(self._tables, "_req_status", {}).get(identity)
        if state is not None and hasattr(state, "req_context"):
            self._recorder.context(state.req_context, name)

    def _allocated(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self._recorder

        def update_state_after_alloc(request: Any, blocks: Any, external: int) -> Any:
            name = recorder.of_request(request)
            recorder.emit(Allocated(recorder.step, SCHEDULER_RANK, name, external))
            try:
                return inner(request, blocks, external)
            except Exception:
                recorder.blame("update_state_after_alloc", name)
                raise

        return update_state_after_alloc

    def _build(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self._recorder

        def build_connector_meta(output: Any) -> Any:
            lease = self._blocks.lease
            # A copy reads its source before the forward, so the source's lease is the one from
            # before this step's advance.
            self.copies = [
                (lease(copy.src_block_id), lease(copy.dst_block_id))
                for copy in getattr(output, "kv_cache_block_copies", None) or ()
            ]
            self.computing = self._plan(output)
            try:
                meta = inner(output)
            except Exception:
                recorder.blame("build_connector_meta", None)
                raise
            self._issue(meta)
            return meta

        return build_connector_meta

    def _issue(self, meta: Any) -> None:
        recorder, jobs = self._recorder, self._jobs
        flushed = jobs.flushed(recorder.step, meta)
        for job in jobs.planned(recorder.step, meta):
            stores = job.kind == "store"
            blocks, slots = (job.source, job.target) if stores else (job.target, job.source)
            owner = self._tier.owner.get(id(slots))
            name = owner[1] if owner else recorder.of_id(job.identity)
            pieces = job_pieces(blocks, slots, self._blocks_per_chunk) or []
            recorder.emit(Issue(recorder.step, SCHEDULER_RANK, job.number, job.kind, name, pieces))
        if flushed:
            recorder.emit(Flush(recorder.step, SCHEDULER_RANK, flushed))

    def _update(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self._recorder

        def update_connector_output(output: Any) -> Any:
            reports, self.reports = self.reports, []
            for report in reports:
                recorder.emit(report)
            try:
                answer = inner(output)
            except Exception:
                recorder.blame("update_connector_output", None)
                raise
            # A load that failed is among those that ended.
            failed = getattr(output, "failed_recving", None) or ()
            for identity in sorted(output.finished_recving or ()):
                name, ok = recorder.of_id(identity), identity not in failed
                recorder.emit(Received(recorder.step, SCHEDULER_RANK, name, ok))
            return answer

        return update_connector_output

    def _take_events(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self._recorder

        def take_events() -> Any:
            taken = list(inner())
            if taken:
                changes = [change(event) for event in taken]
                recorder.emit(KvEvents(recorder.step, SCHEDULER_RANK, changes))
            return taken

        return take_events

    def _reset(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self._recorder

        def reset_cache() -> Any:
            self.resets += 1
            recorder.emit(Reset(recorder.step, SCHEDULER_RANK))
            try:
                return inner()
            except Exception:
                recorder.blame("reset_cache", None)
                raise

        return reset_cache


def change(event: Any) -> KvChange:
    """What an emitted event says; the release names a group, or its hashes alone."""
    if not hasattr(event, "block_hashes"):
        return KvChange("cleared", [])
    what = "removed" if type(event).__name__ == "BlockRemoved" else "stored"
    group = getattr(event, "group_idx", None)
    end = "" if group is None else f":{group}"
    return KvChange(what, [f"{bytes(found).hex()}{end}" for found in event.block_hashes])


def job_pieces(blocks: Any, slots: Any, blocks_per_chunk: int) -> list[Any] | None:
    """Pieces of a job; None when its sizes differ (the copy worker will refuse it)."""
    try:
        return decode.pieces(
            blocks.block_ids.tolist(),
            blocks.group_sizes,
            blocks.block_indices,
            slots.block_ids.tolist(),
            blocks_per_chunk,
        )
    except decode.SizesDiffer:
        return None
