"""The transfer jobs in what a connector hands to its workers, and in what these report.

Connectors number their jobs and workers report the numbers. The first ones do not: their metadata
names requests, each worker numbers jobs for itself, and a request is reported once it has ended and
all its stores are over. The jobs are there all the same, and ``RequestJobs`` tells which.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Protocol

import msgspec

from kvproof.conformance.engines.vllm.release import Release
from kvproof.conformance.trace.events import Report


class PlannedJob(msgspec.Struct, frozen=True):
    """A job of one step. ``identity`` is a request id; ``source`` and ``target`` are its specs."""

    number: int
    kind: str
    identity: str
    source: Any
    target: Any


class Jobs(Protocol):
    """Reads the release's own way of telling jobs."""

    def planned(self, step: int, meta: Any) -> list[PlannedJob]:
        """The jobs that a step's metadata hands to the workers, in their order there."""
        ...

    def flushed(self, step: int, meta: Any) -> list[int]:
        """The jobs that the workers must wait for before anything else of the step.

        To be asked before ``planned`` is.
        """
        ...

    def told(self, step: int) -> list[int]:
        """Flushed jobs of a step that the workers look up by themselves."""
        ...

    def reports(self, step: int, rank: int, carried: Any, failed: set[int]) -> Iterator[Report]:
        """What the connector's part of a worker's output says; ``failed`` are copies that did."""
        ...


def jobs_of(release: Release) -> Jobs:
    """The reader for one run of this release."""
    return NumberedJobs() if release.numbers_jobs else RequestJobs()


class NumberedJobs:
    """Implements ``Jobs`` where the connector numbers them."""

    def planned(self, step: int, meta: Any) -> list[PlannedJob]:
        """See ``Jobs``."""
        return [
            PlannedJob(int(number), kind, job.req_id, *specs(job))
            for kind, jobs in (("load", meta.load_jobs), ("store", meta.store_jobs))
            for number, job in jobs.items()
        ]

    def flushed(self, step: int, meta: Any) -> list[int]:
        """See ``Jobs``."""
        return sorted(int(job) for job in meta.jobs_to_flush or ())

    def told(self, step: int) -> list[int]:
        """None: what the workers wait for, the copier hears by number."""
        return []

    def reports(self, step: int, rank: int, carried: Any, failed: set[int]) -> Iterator[Report]:
        """See ``Jobs``."""
        meta = carried.kv_connector_worker_meta
        for job in meta.completed_jobs if meta is not None else ():
            yield Report(step, rank, int(job), int(job) not in failed)


class RequestJobs:
    """Implements ``Jobs`` where requests are told.

    Each worker numbers a step's loads, then its stores, in the order of the metadata: all alike, so
    counting along gives the numbers that they give to the copier. A worker reports a request that
    has ended when none of its stores is left, which is the report of them all.
    """

    def __init__(self) -> None:
        self._next = 0
        self._stores: dict[str, list[int]] = {}
        self._load: dict[str, int] = {}
        self._flushed: dict[int, list[int]] = {}
        self._reported: set[tuple[int, int]] = set()

    def planned(self, step: int, meta: Any) -> list[PlannedJob]:
        """See ``Jobs``."""
        planned = []
        for kind, specs_of in (("load", meta.reqs_to_load), ("store", meta.reqs_to_store)):
            for identity, (source, target) in specs_of.items():
                planned.append(PlannedJob(self._next, kind, identity, source, target))
                if kind == "load":
                    self._load[identity] = self._next
                else:
                    self._stores.setdefault(identity, []).append(self._next)
                self._next += 1
        return planned

    def flushed(self, step: int, meta: Any) -> list[int]:
        """All stores of earlier steps of the requests that are named."""
        named = (self._stores.get(identity, ()) for identity in meta.reqs_to_flush or ())
        self._flushed[step] = sorted(job for jobs in named for job in jobs)
        return self._flushed[step]

    def told(self, step: int) -> list[int]:
        """See ``Jobs``: a worker waits for those that it has not seen ending before."""
        return self._flushed.get(step, [])

    def reports(self, step: int, rank: int, carried: Any, failed: set[int]) -> Iterator[Report]:
        """See ``Jobs``."""
        jobs = [
            job for told in sorted(carried.finished_sending or ()) for job in self._stores[told]
        ]
        jobs += [
            self._load[told]
            for told in sorted(carried.finished_recving or ())
            if told in self._load
        ]
        for job in jobs:
            if (rank, job) not in self._reported:
                self._reported.add((rank, job))
                yield Report(step, rank, job, job not in failed)


def specs(job: Any) -> tuple[Any, Any]:
    """Source and destination of a numbered job, however this release holds them."""
    if hasattr(job, "transfer_spec"):
        source, target = job.transfer_spec
        return source, target
    return job.src_spec, job.dst_spec


def own_copy(meta: Any) -> Any:
    """A worker's own metadata: workers take its tables apart, and share none."""
    meta = copy.copy(meta)
    for name in ("load_jobs", "store_jobs", "jobs_to_flush", "reqs_to_load", "reqs_to_store"):
        if hasattr(meta, name):
            setattr(meta, name, copy.copy(getattr(meta, name)))
    return meta
