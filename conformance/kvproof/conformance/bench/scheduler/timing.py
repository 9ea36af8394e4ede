"""CPU seconds of this thread: what else the machine does is left out as far as that is possible."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

Timed = Mapping[str, Callable[[], object]]
"""What is compared, by name."""


@contextmanager
def _quiet() -> Iterator[None]:
    """No garbage collection meanwhile: it would count for whoever happens to run."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def in_turns(turns: Iterable[Timed]) -> dict[str, float]:
    """Median milliseconds of each name; see ``samples``."""
    return medians(samples(turns))


def medians(taken: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The median of each name."""
    return {name: statistics.median(each) for name, each in taken.items()}


def p99(milliseconds: Sequence[float]) -> float:
    """What one in a hundred exceeds."""
    return statistics.quantiles(milliseconds, n=100, method="inclusive")[-1]


def samples(turns: Iterable[Timed]) -> dict[str, list[float]]:
    """Milliseconds of each name; within a turn one after the other, in changing order."""
    taken: dict[str, list[float]] = {}
    with _quiet():
        for number, timed in enumerate(turns):
            names = list(timed)
            for name in names[number % len(names) :] + names[: number % len(names)]:
                call = timed[name]
                began = time.thread_time()
                call()
                taken.setdefault(name, []).append(time.thread_time() - began)
    return {name: [one * 1e3 for one in seconds] for name, seconds in taken.items()}


def repeated(call: Callable[[], object], times: int) -> Callable[[], None]:
    """``call`` so many times in a row, for what is too short for the clock."""

    def run() -> None:
        for _ in range(times):
            call()

    return run
