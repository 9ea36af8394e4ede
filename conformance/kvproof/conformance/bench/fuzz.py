"""How fast releases are fuzzed, and how long it takes from nothing to each known case."""

from __future__ import annotations

import statistics
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec

from kvproof.conformance.bench.monitor import Judging
from kvproof.conformance.fuzz.campaign import CampaignProgress, CampaignResult
from kvproof.conformance.matrix.budgets import Asked
from kvproof.conformance.matrix.cases import CASES, recognised
from kvproof.conformance.matrix.messages import Task
from kvproof.conformance.monitor.finding import MISSED

Runner = Callable[[Task, Callable[[CampaignProgress], None]], Awaitable[CampaignResult]]
Report = Callable[[str, int, int], None]


class Time(msgspec.Struct, frozen=True):
    """Seconds to one case: of each seed that found it, and the median over all seeds.

    ``median`` is None when most seeds did not find it in their time.
    """

    found: list[float]
    runs: int
    median: float | None


class Figures(msgspec.Struct, frozen=True):
    """One release. Rates are medians over its campaigns; ``cases`` has the ones that were found."""

    release: str
    campaigns: int
    examples: int
    steps_per_second: float
    events_per_second: float
    monitor: Judging
    cases: dict[str, Time]


async def campaigns(
    releases: Sequence[str],
    seeds: Sequence[int],
    seconds: float,
    out: Path,
    runner: Runner,
    report: Report,
) -> dict[str, list[CampaignResult]]:
    """A campaign for each release and seed, one at a time, the releases taking turns.

    Nothing is shrunk, since no figure is about that.

    Raises:
        CampaignFailed: one of them cannot be carried out.
    """
    results: dict[str, list[CampaignResult]] = {release: [] for release in releases}
    turns = [(seed, release) for seed in seeds for release in releases]
    for number, (seed, release) in enumerate(turns):
        report(f"{release}, seed {seed}", number, len(turns))
        asked = Asked(seed, seconds, None, [], [], MISSED)
        task = Task(release, asked, str(out / release / str(seed)), max_replays=0)
        results[release].append(await runner(task, lambda _now: None))
    return results


def figures(release: str, results: Sequence[CampaignResult], monitor: Judging) -> Figures:
    """What a release's campaigns come to."""
    return Figures(
        release=release,
        campaigns=len(results),
        examples=sum(result.examples for result in results),
        steps_per_second=_rate([(result.steps, result.seconds) for result in results]),
        events_per_second=_rate([(result.events, result.seconds) for result in results]),
        monitor=monitor,
        cases=_times(results),
    )


def _rate(counted: Sequence[tuple[int, float]]) -> float:
    return round(statistics.median(count / seconds for count, seconds in counted if seconds), 1)


def _times(results: Sequence[CampaignResult]) -> dict[str, Time]:
    """Seconds to each case; a campaign that did not find it took longer than any that did."""
    first: dict[str, list[float]] = {case.id: [] for case in CASES}
    for result in results:
        seen: set[str] = set()
        for found in sorted(result.found, key=lambda found: found.seconds):
            for case in recognised(found.finding, found.history):
                if case not in seen:
                    seen.add(case)
                    first[case].append(found.seconds)
    runs = len(results)
    return {
        case: Time(sorted(seconds), runs, _median(seconds, runs))
        for case, seconds in first.items()
        if seconds
    }


def _median(found: Sequence[float], runs: int) -> float | None:
    """The lower median over ``runs`` runs, of which the missing ones count as endless."""
    middle = (runs - 1) // 2
    return round(sorted(found)[middle], 3) if middle < len(found) else None
