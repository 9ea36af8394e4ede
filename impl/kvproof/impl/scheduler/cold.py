"""What is left of a scheduler that has contradicted itself: it ends what is under way, no more.

It answers 0, stores nothing, and asks nothing of the tier but to let go of what it holds. Blocks
that unfinished stores read are still fenced (M3), so a request that computes everything by itself
computes it right. Whatever fails once more is passed over and counted: a tier that is broken must
not take the engine along.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kvproof.impl.scheduler.jobs import Job
from kvproof.impl.scheduler.ledger import Ledger
from kvproof.impl.scheduler.loads import Loads
from kvproof.impl.scheduler.plan import Plan, Step, Transfer
from kvproof.impl.scheduler.request import Limits
from kvproof.impl.scheduler.views import Key, RequestView


class ColdScheduler:
    """Has the calls of ``OffloadScheduler``.

    Args:
        ledger: jobs, fence and tier, as they were left.
        loads: loads that no worker has yet, but that are planned to the end, are still made.
        stores: the same of stores of living requests.
        contexts: what the tier knows living requests by.
        ended: the same of requests that have ended and that it was not told of.
        leased: blocks that were handed out since the last step.
        delivered: the first job number that no worker can have.
    """

    def __init__(
        self,
        ledger: Ledger,
        loads: Loads,
        stores: Mapping[int, Transfer],
        contexts: Mapping[str, Any],
        ended: Iterable[Any],
        leased: set[int],
        delivered: int,
    ) -> None:
        self._ledger = ledger
        self._loads = loads
        self._stores = dict(stores)
        self._contexts = dict(contexts)
        self._leased = leased
        ledger.counts["cold"] += 1
        if ledger.unissued is not None:
            self._let_go(*ledger.unissued)
            ledger.unissued = None
        jobs = ledger.jobs
        for job in [job for number, job in jobs.live.items() if number >= delivered]:
            if job.number not in loads.planned and job.number not in stores:
                del jobs.live[job.number]
                self._let_go(job.keys, job.context, job.is_store)
                if not job.is_store:
                    loads.lose(job.request_id)
        # Whatever was interrupted: a store that lives is fenced, and no other.
        ledger.fence.clear()
        for job in jobs.live.values():
            ledger.fence.add(job.blocks, job.number)
        for context in ended:
            self._quietly(ledger.tier.finished_request, context)

    # --- requests ---

    def add(self, request: RequestView, context: Any, limits: Limits) -> None:
        """A request enters the engine; the tier is not told."""

    def finish(self, request_id: str, tokens: int, blocks: Sequence[Sequence[int]]) -> None:
        """A request ends."""
        if request_id in self._contexts:
            context = self._contexts.pop(request_id)
            self._quietly(self._ledger.tier.finished_request, context)

    @property
    def has_work(self) -> bool:
        """Whether the engine must go on stepping although no request is left (L2)."""
        return bool(self._ledger.jobs.live or self._ledger.jobs.dead or self._loads.lost)

    def lookup(self, request: RequestView, computed: int, bound: int | None = None) -> int | None:
        """Nothing can be loaded."""
        return 0

    def allocated(
        self, request: RequestView, blocks: Sequence[Sequence[int]], external: int, computed: int
    ) -> None:
        """The engine has handed out blocks; what it was promised to load cannot be."""
        for own in blocks:
            self._leased.update(own)
        if external > 0:
            self.lose(request.request_id)

    def lose(self, request_id: str) -> None:
        """A load that was promised cannot be made, unless it is planned already."""
        planned = (load.request_id for load in self._loads.planned.values())
        if request_id not in self._loads.lost and request_id not in planned:
            self._loads.lose(request_id)

    # --- a step ---

    def plan(self, step: Step) -> Plan:
        """What was planned before, and what must be waited for."""
        loads, ledger = self._loads, self._ledger
        plan = Plan(loads.planned, self._stores, ledger.jobs.take_dead(), loads.lost)
        loads.planned, loads.lost, self._stores = {}, [], {}
        leased, self._leased = self._leased, set()
        if ledger.fence:
            # What is stored from this step on reads what this step computes.
            plan.flush |= ledger.fence.jobs(step.leased() | leased) - plan.stores.keys()
        return plan

    # --- ends ---

    def report(self, number: int, workers: int = 1, failed: bool = False) -> Job | None:
        """Workers have ended a job; the job, when it was the last word on it."""
        job = self._ledger.jobs.report(number, workers, failed)
        if job is not None:
            self._let_go(job.keys, job.context, job.is_store, not job.failed)
            self._ledger.fence.remove(job.blocks, job.number)
        return job

    def reset(self) -> None:
        """Forget what was stored; what is under way must still be ended by the workers."""
        for number, load in self._loads.planned.items():
            self._ledger.jobs.live.pop(number, None)
            self._loads.lose(load.request_id)
        self._loads.planned.clear()
        self._stores.clear()
        self._ledger.jobs.kill_all()
        self._ledger.fence.clear()
        self._quietly(self._ledger.tier.reset)

    # --- the tier ---

    def _let_go(
        self, keys: Sequence[Key], context: Any, is_store: bool, stored: bool = False
    ) -> None:
        tier = self._ledger.tier
        if is_store:
            self._quietly(tier.complete_store, keys, context, stored)
        else:
            self._quietly(tier.complete_load, keys, context)

    def _quietly(self, call: Callable[..., object], *arguments: Any) -> None:
        try:
            call(*arguments)
        except Exception:
            self._ledger.counts["cold_faults"] += 1
