"""What loads and stores share: jobs, the fence, and what is known of the tier's keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from kvproof.impl.scheduler.fence import Fence
from kvproof.impl.scheduler.jobs import Job, JobTable
from kvproof.impl.scheduler.lookup import Coverage
from kvproof.impl.scheduler.views import Key, Room, Tier


class Ledger:
    """The scheduler's memory beside its requests.

    Attributes:
        tier: whom keys are given to.
        jobs: all that is under way.
        fence: what stores read.
        coverage: keys that were stored without their first blocks.
        loading: keys on their way to the GPU, with how many loads bring each.
        counts: what went wrong, by name.
        unissued: keys that the tier has pinned or made room for, and whether for a store, while no
            job has them yet.
        room: how often room in the tier may have changed.
        changes: how often a key came, went or became readable.
        losses: how often keys went, or a load failed: between two of these, hits stay hits.
        held: keys that the tier has, those that are still being stored included.
        busy: keys of jobs that are under way, once for each: none of these can be evicted.
        moved: uses and losses of keys; see ``Recency``.
    """

    def __init__(self, tier: Tier, workers: int) -> None:
        self.tier = tier
        self.jobs = JobTable(workers)
        self.fence = Fence()
        self.coverage: Coverage = {}
        self.loading: Counter[Key] = Counter()
        self.counts: Counter[str] = Counter()
        self.unissued: tuple[Sequence[Key], Any, bool] | None = None
        self.room = 0
        self.changes = 0
        self.losses = 0
        self.held = 0
        self.busy = 0
        self.moved = 0
        self._failed: dict[Key, set[str]] = {}

    def refused(self, request_id: str) -> frozenset[Key]:
        """Keys whose load failed for a request, and that lie where they lay then (L5)."""
        if not self._failed:
            return frozenset()
        return frozenset(key for key, who in self._failed.items() if request_id in who)

    def gone(self, keys: Collection[Key]) -> None:
        """Keys have left the tier."""
        if keys:
            self.room += 1
            self.losses += 1
            self.held -= len(keys)
            self.moved += len(keys)
        for key in keys:
            self.coverage.pop(key, None)
            self._failed.pop(key, None)
            self.changes += 1

    def report(self, number: int, workers: int, failed: bool) -> Job | None:
        """``workers`` workers have ended a job; the job, when it was the last word on it.

        What is unknown, over or dead changes nothing (P5).
        """
        job = self.jobs.report(number, workers, failed)
        if job is None:
            return None
        self.room += 1
        self.changes += 1
        self.busy -= len(job.keys)
        if job.is_store:
            self._end_store(job)
        else:
            self._end_load(job)
        return job

    def _end_store(self, job: Job) -> None:
        self.tier.complete_store(job.keys, job.context, not job.failed)
        self.fence.remove(job.blocks, job.number)
        if job.failed:
            self.counts["failed_stores"] += 1
            self.gone(job.keys)

    def _end_load(self, job: Job) -> None:
        self.tier.complete_load(job.keys, job.context)
        self.loading -= Counter(job.keys)
        if job.failed:
            self.counts["failed_loads"] += 1
            self.losses += 1

    def refuse(self, job: Job) -> None:
        """What a failed load was to bring is not to be loaded for its request again (L5)."""
        for key in job.keys:
            self._failed.setdefault(key, set()).add(job.request_id)

    def forget_request(self, request_id: str) -> None:
        """Its failures count no more."""
        for key in [key for key, who in self._failed.items() if request_id in who]:
            self._failed[key].discard(request_id)
            if not self._failed[key]:
                del self._failed[key]

    def forget_failures(self) -> None:
        """No request asks any more; neither does anybody wait for what is being loaded."""
        self._failed.clear()
        self.loading.clear()
        self.coverage.clear()

    def reset(self) -> None:
        """Forget everything; what is under way is dead."""
        self.jobs.kill_all()
        self.fence.clear()
        self.forget_failures()
        self.tier.reset()
        self.held = self.busy = 0
        self.room += 1
        self.losses += 1
        self.changes += 1

    def pin(self, keys: Sequence[Key], ends: Sequence[int], context: Any) -> Any:
        """Pin keys that are about to be loaded, and say where they lie."""
        tier = self.tier
        tier.note(keys, ends, context)
        place = tier.prepare_load(keys, context)
        self.unissued = keys, context, False
        return place

    def touch(self, keys: Sequence[Key], context: Any) -> None:
        """Keys are used, the first of them latest."""
        self.tier.touch(keys, context)
        self.moved += len(keys)

    def lacking(self, keys: int) -> int:
        """How many keys may have to leave for ``keys`` others; 0 when nobody knows."""
        capacity = self.tier.lru_capacity
        return 0 if capacity is None else self.held + keys - capacity

    def issue_load(self, request_id: str, keys: Sequence[Key], context: Any) -> Job:
        """A load of pinned keys begins."""
        job = self.jobs.issue(request_id, context, keys, False, ())
        self.unissued = None
        self.busy += len(keys)
        self.loading.update(keys)
        return job

    def ask(self, keys: Sequence[Key], ends: Sequence[int], context: Any) -> Room | None:
        """Offer keys to the tier; None when there is no room."""
        self.tier.note(keys, ends, context)
        room = self.tier.prepare_store(keys, context)
        if room is None:
            self.counts["refused_offers"] += 1
        elif room.keys:
            self.unissued = room.keys, context, True
            self.held += len(room.keys)
        return room

    def issue_store(
        self, request_id: str, keys: Sequence[Key], context: Any, blocks: Sequence[int]
    ) -> Job:
        """A store begins: from now on its blocks are fenced (M3)."""
        job = self.jobs.issue(request_id, context, keys, True, blocks)
        self.unissued = None
        self.busy += len(keys)
        self.fence.add(blocks, job.number)
        self.changes += 1
        return job
