"""Copies in the background, on threads of the host: for KV caches that lie in host memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from kvproof.impl.transfer.memory import HostMemory
from kvproof.impl.transfer.pieces import Pieces


@dataclass(frozen=True, slots=True)
class Ended:
    """How a job ended: the bytes that it moved and the seconds that this took.

    ``error`` says why it failed; None when it did not.
    """

    job: int
    size: int
    seconds: float
    error: str | None = None


class HostCopier:
    """Carries out jobs in the order in which they are submitted, stores and loads apart.

    Numpy copies without holding the interpreter, so the engine goes on meanwhile. What the calling
    thread wrote before it submits a job, the job sees.
    """

    def __init__(self, memory: HostMemory) -> None:
        self.memory = memory
        self._stores = ThreadPoolExecutor(1, "kv-store")
        self._loads = ThreadPoolExecutor(1, "kv-load")
        self._jobs: dict[int, Future[Ended]] = {}

    def submit_store(self, job: int, moved: Iterable[Pieces]) -> None:
        """Copy from the KV caches to the tier."""
        self._jobs[job] = self._stores.submit(_run, job, self.memory.store, moved)

    def submit_load(self, job: int, moved: Iterable[Pieces]) -> None:
        """Copy from the tier to the KV caches."""
        self._jobs[job] = self._loads.submit(_run, job, self.memory.load, moved)

    def wait(self, jobs: Collection[int]) -> None:
        """Return when these jobs have ended; one that is unknown, or told already, has."""
        wait([self._jobs[job] for job in jobs if job in self._jobs])

    def ended(self) -> list[Ended]:
        """The jobs that have ended since the last call, in the order of their submission."""
        done = [job for job, future in self._jobs.items() if future.done()]
        return [self._jobs.pop(job).result() for job in done]

    def shutdown(self) -> None:
        """Let what is under way end and forget it; nothing can be submitted afterwards."""
        for pool in (self._stores, self._loads):
            pool.shutdown(wait=True, cancel_futures=True)
        self._jobs.clear()


def _run(job: int, copy: Callable[[Iterable[Pieces]], int], moved: Iterable[Pieces]) -> Ended:
    """A failure is a result like any other: it travels back to whoever asked."""
    started = time.perf_counter()
    try:
        size, error = copy(moved), None
    except Exception as caught:
        size, error = 0, f"{type(caught).__name__}: {caught}"
    return Ended(job, size, time.perf_counter() - started, error)
