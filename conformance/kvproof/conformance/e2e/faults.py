"""A tier whose loads go wrong on command: loaded by vLLM like any other, told here what to do."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from kvproof.impl.connector.own_tier import KvproofOffloadingSpec
from kvproof.impl.connector.spec import HostOffloadingSpec, HostOffloadingWorker

WAYS = ("refused", "raised", "spoiled")
"""How loads fail, in turn: the worker does not take one, raises, or reports one as failed that has
left zeros behind."""


@dataclass
class Faults:
    """Orders, and what came of them. Engine and faults share one process.

    Attributes:
        zero: what a load brings is zeroed, and the load reported as good.
        every: each load with a number that this divides fails; 0: none does.
        loads: how many were asked for.
        failed: how many failed, by way.
    """

    zero: bool = False
    every: int = 0
    loads: int = 0
    failed: Counter[str] = field(default_factory=Counter)

    def next_way(self) -> str | None:
        """How the load that is being asked for fails; None when it does not."""
        self.loads += 1
        if not self.every or self.loads % self.every:
            return None
        way = WAYS[self.failed.total() % len(WAYS)]
        self.failed[way] += 1
        return way


FAULTS = Faults()


class FaultyWorker(HostOffloadingWorker):
    """Copies, unless it is told otherwise."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._failing: set[int] = set()

    def submit_load(self, job_id: int, src_spec: Any, dst_spec: Any) -> bool:
        """Tier to KV caches, or what is ordered instead."""
        way = FAULTS.next_way()
        if way == "refused":
            return False
        if way == "raised":
            raise RuntimeError("a load that is to fail")
        taken = super().submit_load(job_id, src_spec, dst_spec)
        if way == "spoiled":
            self._failing.add(job_id)
        if way == "spoiled" or FAULTS.zero:
            # At once: the blocks are this load's own only until it is reported.
            self.wait({job_id})
            for moved in self._pieces(dst_spec, src_spec):
                for part in self.memory.parts[moved.group]:
                    self.memory.regions[part.region][moved.blocks, : part.size] = 0
        return taken

    def get_finished(self) -> list[Any]:
        """What has ended, the failing ones as failures."""
        results = super().get_finished()
        for result in results:
            result.success &= result.job_id not in self._failing
            self._failing.discard(result.job_id)
        return results


class FaultySpec(HostOffloadingSpec):
    """The host tier with such a worker."""

    worker_class = FaultyWorker


class FaultyOwnSpec(KvproofOffloadingSpec):
    """Our own tier with such a worker."""

    worker_class = FaultyWorker


class LameRankSpec(FaultyOwnSpec):
    """Of several workers the second alone fails, every other load."""

    def get_worker(self, kv_caches: Any) -> Any:
        """That of this process, whose orders are this process's own."""
        if self.config.parallel.rank == 1:
            FAULTS.every = 2
        return super().get_worker(kv_caches)
