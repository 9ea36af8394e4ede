"""One run of a release: the engine core's step loop around the real scheduler and workers."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from typing import Any

from kvproof.conformance.engines.base import (
    Abort,
    Add,
    Drain,
    Emit,
    Extend,
    Move,
    ResetCache,
    Setup,
    Step,
    Unsupported,
)
from kvproof.conformance.engines.vllm import own, second, tiering
from kvproof.conformance.engines.vllm.blocks import BlockTap
from kvproof.conformance.engines.vllm.clients import Clients
from kvproof.conformance.engines.vllm.configs import build
from kvproof.conformance.engines.vllm.connector import ConnectorTap
from kvproof.conformance.engines.vllm.features import Features
from kvproof.conformance.engines.vllm.given import Given
from kvproof.conformance.engines.vllm.header import header
from kvproof.conformance.engines.vllm.holdings import Holdings
from kvproof.conformance.engines.vllm.jobs import jobs_of
from kvproof.conformance.engines.vllm.recorder import Recorder
from kvproof.conformance.engines.vllm.release import Release, place, structured_output
from kvproof.conformance.engines.vllm.requests import tap_requests
from kvproof.conformance.engines.vllm.tier import TierTap
from kvproof.conformance.engines.vllm.workers import Batch, Workers
from kvproof.conformance.planted import planted
from kvproof.conformance.trace.events import (
    SCHEDULER_RANK,
    Computing,
    Drained,
    Raised,
    Scheduled,
    Stalled,
)

DRAIN_STEPS = 500
"""Steps of a drain beyond one for each token that is still to be computed."""

IDLE_STEPS = 8
"""Empty steps of a drain for a release whose connector does not ask for steps."""


class VllmEngine:
    """Implements ``Engine``; see there."""

    def __init__(
        self,
        release: Release,
        features: Features,
        target: str,
        setup: Setup,
        emit: Emit,
        given: Given | None = None,
        tells_caught: bool = False,
    ) -> None:
        self._planted = contextlib.ExitStack()
        self._planted.enter_context(planted(setup.planted))
        config = build(release, features, setup)
        self._folder = tiering.Folder()
        self._folder.configure(config.vllm_config.kv_transfer_config, setup)
        own.configure(config.vllm_config.kv_transfer_config, setup)
        if given is not None:
            given.configure(config.vllm_config.kv_transfer_config)
        self._given = given
        self._tells_caught = tells_caught
        if not features.hybrid:
            config.vllm_config.scheduler_config.disable_hybrid_kv_cache_manager = True
        if setup.second_connector:
            second.compose(release, config.vllm_config.kv_transfer_config)
        self._release = release
        self._features = features
        self._setup = setup
        self._emit = emit
        self.crashed = False
        self.header = header(target, setup, features, config.tokens_per_hash)
        scheduler_class = (
            release.async_scheduler_class if setup.asynchronous else release.scheduler_class
        )
        try:
            with given.in_place() if given is not None else contextlib.nullcontext():
                self._scheduler: Any = scheduler_class(
                    vllm_config=config.vllm_config,
                    kv_cache_config=config.kv_cache_config,
                    structured_output_manager=structured_output(release, config.vllm_config),
                    block_size=config.scheduler_block_size,
                    hash_block_size=config.tokens_per_hash,
                    log_stats=False,
                )
        except (AssertionError, NotImplementedError, ValueError) as error:
            raise Unsupported(f"this release refuses the setup: {error}") from None
        connector = second.offloading(self._scheduler.connector)
        self._tables: Any = connector.connector_scheduler
        manager = self._tables.manager
        # A manager that only counts how often keys are asked for leaves the slots to another, and
        # so does one of several tiers.
        slots = getattr(manager, "_backing", getattr(manager, "primary_tier", manager))
        # What is not the release's own has a public name for it, or is believed.
        said = getattr(slots, "capacity", setup.num_slots)
        capacity = getattr(slots, features.tier_capacity, said)
        if capacity != setup.num_slots:
            raise Unsupported(f"the tier has {capacity} slots, {setup.num_slots} were asked for")
        self._recorder = Recorder(emit)
        self._pace = tiering.Pace(manager)
        second.attach_scheduler(self._scheduler.connector, setup, self._recorder.of_request)
        recurrent = [
            (index, group.tokens_per_block)
            for index, group in enumerate(setup.groups)
            if group.kind == "recurrent"
        ]
        self._blocks = BlockTap(self._recorder, self._scheduler.kv_cache_manager, recurrent)
        self._tier = TierTap(self._recorder, self._tables.manager, release.offload)
        jobs = jobs_of(release)
        self._connector = ConnectorTap(
            self._recorder,
            self._blocks,
            self._tier,
            features,
            connector,
            setup.blocks_per_chunk,
            self._plan,
            jobs,
        )
        self._workers = Workers(
            release,
            features,
            config,
            setup.blocks_per_chunk,
            self._scheduler.connector,
            jobs,
            emit,
            own.copier(setup),
        )
        self._clients = Clients(
            release, features, setup, self._recorder, self._scheduler, config.tokens_per_hash
        )
        self._queue: deque[Batch] = deque()
        self._samples: dict[str, list[int]] = {}
        tap_requests(self._recorder, self._scheduler, self._blocks, self._clients.extended)

    # --- the protocol ----------------------------------------------------------------------------

    def play(self, move: Move) -> bool:
        """Carry one move out; False when it was not taken."""
        if self.crashed:
            return False
        match move:
            case Add():
                return self._guarded("add_request", lambda: self._add(move))
            case Step():
                return self._step(move)
            case Extend():
                return self._guarded("add_request", lambda: self._clients.extend(move))
            case Abort():
                return self._guarded("finish_requests", lambda: self._abort(move.req))
            case ResetCache():
                return self._guarded("reset_prefix_cache", lambda: self._reset(move))
            case Drain():
                return self._drain()

    def close(self) -> None:
        """Shut both roles down."""
        self._workers.shutdown()
        self._scheduler.connector.shutdown()
        self._folder.remove()
        self._planted.close()

    def holdings(self) -> Holdings:
        """What is held now; meant for an engine at rest."""
        blocks = self._setup.num_gpu_blocks
        return Holdings(self._scheduler, self._tables, self._tables.manager, blocks)

    def forget(self) -> None:
        """Let the taps forget all requests, keys and jobs that were ever seen.

        Only for an engine at rest whose tier and caches are empty. Names are given out anew after
        it, so a monitor must not have seen what came before.
        """
        self._recorder.forget()
        self._tier.forget()
        self._clients.forget()
        self._workers.forget()
        self._samples = {}

    # --- moves -----------------------------------------------------------------------------------

    def _add(self, move: Add) -> bool:
        # A step in flight answers by id: the core would give its token to the id's next life.
        in_flight = any(move.req in batch.samples for batch in self._queue)
        return not in_flight and self._clients.add(move)

    def _abort(self, identity: str) -> bool:
        request = self._scheduler.requests.get(identity)
        if request is None or request.is_finished():
            return False
        self._scheduler.finish_requests(identity, self._release.request_status.FINISHED_ABORTED)
        return True

    def _reset(self, move: ResetCache) -> bool:
        resets = self._connector.resets
        preempts = move.running and bool(self._scheduler.running)
        try:
            done = self._scheduler.reset_prefix_cache(
                reset_running_requests=move.running, reset_connector=move.connector
            )
        except RuntimeError as error:
            # The core's own refusal, while a load or a session holds blocks.
            if not str(error).startswith("Failed to reset KV cache"):
                raise
            return preempts
        return bool(done) or preempts or self._connector.resets > resets

    def _step(self, move: Step) -> bool:
        """One turn of the engine core's loop; False when the engine has nothing to do.

        False too when copies are to fail and the workers have no way to say so.
        """
        if not self._queue and not self._scheduler.has_requests():
            return False
        if move.fail and not self._workers.take_failures:
            return False
        self._turn(move)
        return True

    def _turn(self, move: Step) -> None:
        """Synchronous: schedule, execute, update. Asynchronous: schedule ahead of the update.

        The asynchronous order is that of the engine core's batch queue of two: a step is scheduled
        while the one before it has not been processed. The workers lag as far as that allows: they
        execute a step when its output is asked for.
        """
        self._pace.finish = move.finish
        if not self._queue or self._scheduler.has_requests():
            batch = self._schedule()
            if batch is None:
                return
            self._queue.append(batch)
            ahead = self._setup.asynchronous and len(self._queue) < 2
            if ahead and batch.output.total_num_scheduled_tokens:
                return
        self._finish_batch(self._queue.popleft(), move)

    def _drain(self) -> bool:
        """Step until nothing is left to do, then say what the scheduler still keeps."""
        scheduler = self._scheduler
        self._guarded("add_request", self._close_sessions)
        tokens = sum(
            request.num_prompt_tokens + request.max_tokens
            for request in scheduler.requests.values()
        )
        for _ in range(DRAIN_STEPS + 2 * tokens):
            if not self._queue and not scheduler.has_requests():
                break
            self._turn(Step())
            if self.crashed:
                return True
        else:
            self.crashed = True
            waiting = [self._recorder.of_id(id) for id in scheduler.requests]
            self._emit(Stalled(self._recorder.step, SCHEDULER_RANK, sorted(waiting)))
            return True
        if not self._features.drains_itself:
            for _ in range(IDLE_STEPS):
                if self._copies_are_left() and not self.crashed:
                    self._turn(Step())
            if self.crashed:
                return True
        self._emit(Drained(self._recorder.step, SCHEDULER_RANK, self._residue()))
        return True

    def _close_sessions(self) -> bool:
        self._clients.close_sessions()
        return True

    def _copies_are_left(self) -> bool:
        """Whether the connector scheduler still waits for word of a copy."""
        tables = ("_jobs", "_reqs_being_stored", "_reqs_being_loaded")
        return any(getattr(self._tables, table, ()) for table in tables)

    def _residue(self) -> dict[str, int]:
        """Sizes of the connector scheduler's own tables: by its own word, or of those it has."""
        if hasattr(self._tables, "residue"):
            return dict(self._tables.residue())
        tables = {
            "requests": "_req_status",
            "jobs": "_jobs",
            "storing": "_reqs_being_stored",
            "receiving": "_reqs_being_loaded",
            "fences": "_block_id_to_pending_jobs",
            "loading": self._features.loading_table,
        }
        return {
            name: len(getattr(self._tables, table) or ())
            for name, table in tables.items()
            if hasattr(self._tables, table)
        }

    # --- a step ----------------------------------------------------------------------------------

    def _schedule(self) -> Batch | None:
        recorder, scheduler = self._recorder, self._scheduler
        output: Any = None

        def run() -> bool:
            nonlocal output
            output = scheduler.schedule()
            return True

        self._guarded("schedule", run)
        if self.crashed:
            return None
        computing = self._connector.computing
        batch = Batch(
            step=recorder.step,
            output=output,
            computing=computing,
            samples=self._samples,
            copies=self._connector.copies,
            zeroed=[
                self._blocks.lease(block)
                for block in getattr(output, "new_block_ids_to_zero", None) or ()
            ],
            requests=[scheduler.requests[identity] for identity in output.num_scheduled_tokens],
        )
        self._emit(Scheduled(recorder.step, SCHEDULER_RANK, computing))
        self._blocks.window_closes()
        recorder.step += 1
        return batch

    def _plan(self, output: Any) -> list[Computing]:
        """What the step computes; called when all blocks are leased and no job is planned yet."""
        computing = []
        self._samples = {}
        for identity, tokens in output.num_scheduled_tokens.items():
            request = self._scheduler.requests[identity]
            start = request.num_computed_tokens
            # The core pads the step of a request that is new and has one token to compute. Such
            # drafts are nobody's tokens: all are rejected.
            end = start + tokens - len(output.scheduled_spec_decode_tokens.get(identity, ()))
            self._blocks.advance(identity, start, end)
            name = self._recorder.of_request(request)
            # Outputs on their way count as known: the worker has them.
            known = request.num_tokens + request.num_output_placeholders
            sampled = [self._clients.streams[name].token(end)] if end >= known else []
            self._samples[identity] = sampled
            computing.append(Computing(name, start, end, sampled))
        return computing

    def _finish_batch(self, batch: Batch, move: Step) -> None:
        output: Any = None

        def run() -> bool:
            nonlocal output
            output, self._connector.reports = self._workers.run(batch, move)
            return True

        def update() -> bool:
            self._scheduler.update_from_output(batch.output, output)
            for request in batch.requests:
                self._recorder.hashes(request)
            return True

        self._guarded("execute_model", run)
        if not self.crashed:
            self._guarded("update_from_output", update)

    # --- exceptions ------------------------------------------------------------------------------

    def _guarded(self, name: str, function: Callable[[], bool]) -> bool:
        """Run a call into the release; an exception becomes ``Raised`` and ends the run.

        Returns what the call says, and True when it raised: the move was taken.
        """
        self._recorder.fault = None
        try:
            taken = function()
            self._look_for_caught(name)
            return taken
        except Exception as error:
            refused = self._workers.refused
            called, request = self._recorder.fault or ("submit" if refused else name, None)
            text = str(error).strip()
            self._raised(
                called,
                f"{type(error).__name__}: {text}" if text else type(error).__name__,
                place(error, self._given.file if self._given else None),
                request,
            )
            return True

    def _look_for_caught(self, name: str) -> None:
        """What a scheduler caught itself, to go on without its tier, is a fault all the same."""
        caught = getattr(self._tables, "cause", None) if self._tells_caught else None
        if caught is None or self.crashed:
            return
        text = " ".join(f"{type(caught).__name__}: {caught}".split())
        self._raised(name, text, place(caught, self._given.file if self._given else None), None)

    def _raised(self, name: str, exception: str, where: str, request: str | None) -> None:
        self.crashed = True
        step = self._recorder.step
        self._emit(Raised(step, SCHEDULER_RANK, name, exception, where, request))
