"""Transfer jobs: who they are for, who has reported them, and which are dead.

Invariant (M2): a number names a live job, or one that is over or dead; a report of the latter
changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kvproof.impl.scheduler.views import Key


@dataclass(slots=True)
class Job:
    """One load or store.

    Attributes:
        number: what workers call it; numbers are never used again.
        request_id: the request that it serves.
        context: what the tier knows that request by; it outlives the request.
        keys: what it moves.
        is_store: otherwise it is a load.
        blocks: the GPU blocks that a store reads.
        left: workers that have not reported it.
        failed: one of them reported that it failed.
    """

    number: int
    request_id: str
    context: Any
    keys: Sequence[Key]
    is_store: bool
    blocks: Sequence[int]
    left: int
    failed: bool = False


class JobTable:
    """Live jobs by number. A reset kills them all; their numbers go into the next flush set."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.live: dict[int, Job] = {}
        self.dead: set[int] = set()
        self.next_number = 0

    def oldest(self) -> int:
        """The smallest number of a live job; the next number when there is none."""
        return next(iter(self.live), self.next_number)

    def issue(
        self,
        request_id: str,
        context: Any,
        keys: Sequence[Key],
        is_store: bool,
        blocks: Sequence[int],
    ) -> Job:
        """A new job that every worker has yet to report."""
        number = self.next_number
        job = Job(number, request_id, context, keys, is_store, blocks, self.workers)
        self.next_number += 1
        self.live[job.number] = job
        return job

    def report(self, number: int, workers: int, failed: bool) -> Job | None:
        """``workers`` more have reported a job; the job when it was the last of them, else None.

        A job that is not live, and a report too many, change nothing.
        """
        job = self.live.get(number)
        if job is None:
            return None
        job.left -= workers
        job.failed |= failed
        if job.left > 0:
            return None
        del self.live[number]
        return job

    def kill_all(self) -> None:
        """A reset: nothing that is under way counts any more, but the workers must end it."""
        self.dead.update(self.live)
        self.live.clear()

    def take_dead(self) -> set[int]:
        """The numbers that the next flush set must name, once."""
        dead, self.dead = self.dead, set()
        return dead
