"""All mutants, tried in several processes, and held against the list of those that may live."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache

from kvproof.conformance.mutation.trial import Trial, tried
from kvproof.spec.contract import contract
from kvproof.spec.mutants import Mutant, mutants

CHUNK = 8
"""Mutants per task: few, for a mutant that only the proof can kill takes its time."""


@dataclass(frozen=True)
class Campaign:
    """What became of all mutants.

    ``explained`` are survivors that the list explains, ``unexplained`` those that it does not;
    ``stale`` are names on the list of what does not survive.
    """

    trials: Sequence[Trial]
    explained: Mapping[str, str]
    unexplained: Sequence[Trial]
    stale: Sequence[str]

    @property
    def killed(self) -> int:
        """How many are noticed."""
        return sum(1 for trial in self.trials if trial.killed_by)

    @property
    def holds(self) -> bool:
        """Whether the list says exactly who survives."""
        return not self.unexplained and not self.stale


@cache
def _all() -> list[Mutant]:
    return mutants(contract())


def try_all(
    actions: Sequence[str] = (),
    jobs: int = 2,
    timeout_ms: int = 10_000,
    progress: Callable[[int, int], None] | None = None,
) -> list[Trial]:
    """Try every mutant, in the order in which ``mutants`` lists them.

    Args:
        actions: only mutants of these; all when empty.
        jobs: processes; 1 stays in this one.
        timeout_ms: the solver's, per obligation.
        progress: called with (done, total).
    """
    wanted = [i for i, m in enumerate(_all()) if not actions or m.action in actions]
    # Striding spreads the slow ones, which sit together, over the tasks.
    count = max(1, len(wanted) // CHUNK)
    tasks = [wanted[start::count] for start in range(count)]
    done: dict[int, Trial] = {}

    def take(batch: dict[int, Trial]) -> None:
        done.update(batch)
        if progress:
            progress(len(done), len(wanted))

    if jobs == 1:
        for task in tasks:
            take(_try(task, timeout_ms))
    else:
        pool = ProcessPoolExecutor(jobs, initializer=_leave_interrupts_to_the_parent)
        try:
            for ended in as_completed([pool.submit(_try, task, timeout_ms) for task in tasks]):
                take(ended.result())
        except BaseException:
            # After an interrupt nobody wants what is still queued.
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        pool.shutdown()
    return [done[i] for i in wanted]


def held_against(
    trials: Sequence[Trial], survivors: Mapping[str, str], actions: Sequence[str] = ()
) -> Campaign:
    """The trials with the list of survivors; entries about other actions do not count."""
    living = {trial.mutant.name for trial in trials if not trial.killed_by}
    of_these = {
        name: why
        for name, why in survivors.items()
        if not actions or name.partition(":")[0] in actions
    }
    return Campaign(
        trials,
        {name: why for name, why in of_these.items() if name in living},
        [t for t in trials if not t.killed_by and t.mutant.name not in of_these],
        [name for name in of_these if name not in living],
    )


def _try(indices: list[int], timeout_ms: int) -> dict[int, Trial]:
    return {i: tried(_all()[i], timeout_ms) for i in indices}


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
