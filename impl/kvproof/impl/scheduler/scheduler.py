"""The scheduler: an engine's calls in, transfers out.

One instance serves one engine. Per step it looks only at those requests that may have completed a
chunk. Nothing that an engine, a client or a worker does makes a call raise; what contradicts itself
is counted and costs a hit. When a call raises all the same, or a tier's does, ``cool`` goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kvproof.impl.scheduler.alarms import Alarms
from kvproof.impl.scheduler.cold import ColdScheduler
from kvproof.impl.scheduler.geometry import Geometry
from kvproof.impl.scheduler.jobs import Job
from kvproof.impl.scheduler.ledger import Ledger
from kvproof.impl.scheduler.loads import Loads, PlannedLoad
from kvproof.impl.scheduler.plan import Plan, Step
from kvproof.impl.scheduler.recency import Recency
from kvproof.impl.scheduler.request import Limits, RequestState
from kvproof.impl.scheduler.stores import Ending, StorePolicy, Stores
from kvproof.impl.scheduler.storing import with_open
from kvproof.impl.scheduler.views import RequestView, Tables, Tier


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of one engine.

    Attributes:
        workers: ranks that report every job.
        stores: what is worth storing.
        avoid_double_loads: put a lookup off while another request loads a chunk of its answer,
            which the GPU prefix cache will have afterwards.
    """

    workers: int = 1
    stores: StorePolicy = field(default_factory=StorePolicy)
    avoid_double_loads: bool = True


class OffloadScheduler:
    """Decides what is loaded, stored and waited for."""

    def __init__(self, geometry: Geometry, tier: Tier, tables: Tables, options: Options) -> None:
        self.geometry = geometry
        self.requests: dict[str, RequestState] = {}
        self._ledger = Ledger(tier, options.workers)
        self._recency = Recency(geometry, self._ledger)
        self._loads = Loads(geometry, self._ledger, self._recency, options.avoid_double_loads)
        self._stores = Stores(geometry, self._ledger, self._recency, tables, options.stores)
        self._alarms = Alarms()
        self._leased: set[int] = set()
        self._room = 0
        self._emptied = False
        # The plan that is being made, and the first job number beyond the last one that was.
        self._unfinished: Plan | None = None
        self._delivered = 0

    @property
    def counts(self) -> Counter[str]:
        """What went wrong, by name: refused offers, failed and lost transfers."""
        return self._ledger.counts

    @property
    def latest_load(self) -> PlannedLoad | None:
        """The last load that was planned since the last step."""
        return self._loads.latest

    def job(self, number: int) -> Job | None:
        """A job that is under way."""
        return self._ledger.jobs.live.get(number)

    def lingers(self, request_id: str) -> bool:
        """Whether a request of this id that has ended still has chunks to offer, or jobs."""
        return any(
            end.state.request.request_id == request_id for end in self._stores.ending
        ) or any(job.request_id == request_id for job in self._ledger.jobs.live.values())

    def residue(self) -> dict[str, int]:
        """Entries of the tables that are empty when no request is left and all jobs have ended."""
        ledger, stores = self._ledger, self._stores
        return {
            "requests": len(self.requests),
            "jobs": len(ledger.jobs.live) + len(ledger.jobs.dead),
            "fences": len(ledger.fence),
            "loading": len(ledger.loading),
            "ending": len(stores.ending),
            "waiting": len(stores.waiting),
            "open": len(stores.open),
            "users": len(self._recency.users),
        }

    # --- requests ---

    def add(self, request: RequestView, context: Any, limits: Limits) -> None:
        """A request enters the engine."""
        cursors = [0] * len(self.geometry.groups)
        self.requests[request.request_id] = RequestState(
            request, context, limits, cursors, self._stores.first_due()
        )
        self._ledger.tier.new_request(context)

    def finish(self, request_id: str, tokens: int, blocks: Sequence[Sequence[int]]) -> None:
        """A request ends, whatever the reason; its blocks are given up after this call.

        Args:
            request_id: the request; an unknown one is passed over.
            tokens: how many of its tokens are computed (the last sampled one never is); what a load
                did not bring is left out here.
            blocks: its block table, per group.
        """
        state = self.requests.get(request_id)
        if state is not None:
            self._alarms.forget(request_id)
            self._stores.waiting.pop(request_id, None)
            if not state.filled:
                # The engine counts what a load is to bring, ours or another connector's, as soon as
                # it has handed out blocks; of what it found on the GPU, this request has computed
                # nothing.
                tokens = 0
            blocks = with_open(blocks, self._stores.open.pop(request_id, {}))
            self._stores.ending.append(Ending(state, tokens, blocks))
            del self.requests[request_id]

    @property
    def has_work(self) -> bool:
        """Whether the engine must go on stepping although no request is left (L2)."""
        jobs = self._ledger.jobs
        return bool(jobs.live or jobs.dead or self._stores.ending or self._loads.lost)

    # --- lookups and loads ---

    def lookup(self, request: RequestView, computed: int, bound: int | None = None) -> int | None:
        """How many tokens beyond ``computed`` can be loaded; None: ask again.

        ``bound`` is the most that the engine has a use for.
        """
        state = self.requests.get(request.request_id)
        if state is None:
            return 0
        state.filled = state.runs = False
        return self._loads.lookup(state, computed, bound)

    def allocated(
        self, request: RequestView, blocks: Sequence[Sequence[int]], external: int, computed: int
    ) -> None:
        """The engine has handed out blocks, and takes ``external`` tokens of the last answer.

        Args:
            request: the request.
            blocks: per group, its block table; 0 where there is no block, or one whose content the
                GPU has.
            external: tokens to load; 0 when it loads nothing, or another connector does.
            computed: tokens that the GPU has.
        """
        # What it has had before, loaded or as a session, nobody is about to change (L6).
        before = max(computed, request.num_computed_tokens)
        for group, own in zip(self.geometry.groups, blocks, strict=True):
            self._leased.update(own[before // group.tokens_per_block :])
        self._leased.discard(0)
        if external <= 0:
            return
        state = self.requests.get(request.request_id)
        if state is None:
            self._loads.lose(request.request_id)
        else:
            self._loads.take(state, blocks, external, computed)

    # --- a step ---

    def plan(self, step: Step) -> Plan:
        """The transfers of the step that was just scheduled."""
        loads, stores, ledger = self._loads, self._stores, self._ledger
        plan = self._unfinished = Plan(loads.planned, {}, ledger.jobs.take_dead(), loads.lost)
        loads.planned, loads.lost, loads.latest = {}, [], None
        leased: set[int] = set()
        if ledger.fence or stores.ending:
            leased = step.leased() | self._leased
            plan.flush |= ledger.fence.jobs(leased)
        self._leased = set()
        requests = self.requests
        for request_id in step.put_back:
            if request_id in requests:
                stores.put_back(requests[request_id])
        for request_id in step.started:
            if request_id in requests:
                state = requests[request_id]
                state.filled = state.runs = True
                state.given_up = False
                stores.started(state)
        for request_id, handed in step.handed.items():
            if request_id in requests:
                stores.hand_over(requests[request_id], handed, plan)
        for state in self._alarms.advance(step.scheduled, step.started, requests):
            request = state.request
            computed = request.num_computed_tokens + step.scheduled[request.request_id]
            if computed >= state.due:
                stores.offer(state, computed, None, plan)
            self._alarms.set(state, computed)
        if self._emptied:
            self._offer_what_rests(step, plan)
        before, self._room = self._room, ledger.room
        if stores.waiting and before != ledger.room:
            # What one of them is given may be room for another, whose turn was before: next time.
            self._offer_again(step, plan)
        for request_id in [r for r in stores.open if r in step.scheduled]:
            # Its windows may have slid for this step.
            state = requests[request_id]
            stores.remember(state, state.request.num_computed_tokens + step.scheduled[request_id])
        if stores.ending:
            stores.end(leased, plan)
        self._unfinished, self._delivered = None, ledger.jobs.next_number
        return plan

    def _offer_what_rests(self, step: Step, plan: Plan) -> None:
        """After a reset all is offered anew, also of requests that have nothing left to compute.

        Scheduling ahead, the engine only waits for what those have computed; then their blocks go.
        Who waits to be taken up has its turn then.
        """
        self._emptied = False
        for request_id, state in self.requests.items():
            if state.runs and request_id not in step.scheduled:
                self._stores.offer(state, state.request.num_computed_tokens, None, plan)

    def _offer_again(self, step: Step, plan: Plan) -> None:
        """Room has changed: what was refused has another chance."""
        for request_id, state in list(self._stores.waiting.items()):
            if state.states:
                self._stores.offer_states(state, None, plan)
            if state.filled and self._stores.may_be_taken(state):
                computed = state.request.num_computed_tokens + step.scheduled.get(request_id, 0)
                self._stores.offer(state, computed, None, plan)

    # --- ends ---

    def report(self, number: int, workers: int = 1, failed: bool = False) -> Job | None:
        """``workers`` workers have ended a job; the job, when it was the last word on it.

        What is unknown, over or dead changes nothing (P5).
        """
        job = self._ledger.report(number, workers, failed)
        if job is not None and not job.is_store:
            state = self.requests.get(job.request_id)
            # Of a life that has ended nothing is remembered.
            if state is not None and state.context is job.context:
                if job.failed:
                    self._ledger.refuse(job)
                else:
                    state.filled = True
        return job

    def reset(self) -> None:
        """Forget everything that was stored or is on its way; may come at any time, often (P10)."""
        while self._stores.ending:
            self._ledger.tier.finished_request(self._stores.ending.pop().state.context)
        # A load that no worker has yet can only be given up; the others end as dead jobs.
        for number, load in self._loads.planned.items():
            self._ledger.jobs.live.pop(number, None)
            self._loads.lose(load.request_id)
        self._loads.planned.clear()
        self._ledger.reset()
        self._recency.forget()
        for state in self.requests.values():
            self._stores.restart(state)
            self._alarms.watch(state)
        self._emptied = True

    # --- contradictions ---

    def cool(self) -> ColdScheduler:
        """What goes on in this scheduler's place when one of its calls has raised."""
        loads, unfinished = self._loads, self._unfinished
        stores = {}
        if unfinished is not None:
            # One of a request that has ended may have to be flushed at once; that one is dropped.
            stores = {n: t for n, t in unfinished.stores.items() if self._lives(n)}
            loads.planned = {**unfinished.loads, **loads.planned}
            loads.lost = [*unfinished.lost, *loads.lost]
            self._ledger.jobs.dead |= {n for n in unfinished.flush if n < self._delivered}
        cold = ColdScheduler(
            self._ledger,
            loads,
            stores,
            {request_id: state.context for request_id, state in self.requests.items()},
            [end.state.context for end in self._stores.ending],
            self._leased,
            self._delivered,
        )
        # Nobody asks this scheduler any more: it keeps no request alive.
        self._alarms = Alarms()
        for kept in (
            self.requests,
            self._stores.ending,
            self._stores.waiting,
            self._stores.open,
            self._recency.users,
        ):
            kept.clear()
        self._ledger.forget_failures()
        return cold

    def _lives(self, number: int) -> bool:
        """Whether a job's request, in this very life, has not ended."""
        job = self._ledger.jobs.live.get(number)
        state = None if job is None else self.requests.get(job.request_id)
        return job is not None and state is not None and state.context is job.context
