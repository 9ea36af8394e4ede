"""All campaigns of a matrix: two a release in a row, several releases at a time, none run twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path

import msgspec

from kvproof.conformance.fuzz.campaign import CampaignProgress, CampaignResult
from kvproof.conformance.matrix import budgets, store
from kvproof.conformance.matrix.budgets import NUMBERS, Asked, Bounds
from kvproof.conformance.matrix.messages import CampaignFailed, Task
from kvproof.conformance.matrix.store import Stored
from kvproof.conformance.monitor.finding import MISSED, Signature

Runner = Callable[[Task, Callable[[CampaignProgress], None]], Awaitable[CampaignResult]]
"""Carries one campaign out, or raises ``CampaignFailed``."""

Report = Callable[[str, int, CampaignProgress], None]
"""``(release, number of the campaign, where it stands)``; its phase is
"starting" at first and "done" at the end."""


class Order(msgspec.Struct, frozen=True):
    """A matrix to make. ``known`` holds signatures that second campaigns pass over, by release."""

    releases: list[str]
    seed: int
    bounds: Bounds
    out: Path
    known: Mapping[str, frozenset[Signature]] = {}
    jobs: int = 1
    severity: str = MISSED

    def folder(self, release: str) -> Path:
        """The folder of a release's files."""
        return self.out / release

    def asked(self, release: str, finished: list[Stored]) -> Asked:
        """What the release's next campaign is asked, once these are ``finished``."""
        if not finished:
            return budgets.first(self.seed, self.bounds, self.severity)
        found = {one.finding.signature() for result in finished for one in result.found}
        known = self.known.get(release, frozenset())
        avoid = budgets.loud(finished[0])
        return budgets.second(self.seed, self.bounds, found | known, avoid, self.severity)


class Outcome(msgspec.Struct, frozen=True):
    """A release's finished campaigns; ``problem`` says why one of them could not be carried out."""

    release: str
    finished: list[Stored]
    problem: str | None = None


def stored(order: Order, release: str) -> list[Stored]:
    """The release's campaigns that are stored already.

    Raises:
        UsageError: one of them was asked something else, or cannot be read.
    """
    results: list[Stored] = []
    for number in NUMBERS:
        result = store.load(order.folder(release), number, order.asked(release, results))
        if result is None:
            break
        results.append(result)
    return results


async def run(order: Order, runner: Runner, report: Report) -> list[Outcome]:
    """Carry out what is not stored yet, each campaign stored as soon as it is finished.

    A release that cannot be driven does not keep the others from their turn.

    Raises:
        UsageError: something that is stored does not fit; nothing was run then.
    """
    before = [stored(order, release) for release in order.releases]
    turns = asyncio.Semaphore(order.jobs)

    async def one(release: str, results: list[Stored]) -> Outcome:
        async with turns:
            return await _release(order, release, results, runner, report)

    return await asyncio.gather(*map(one, order.releases, before))


async def _release(
    order: Order, release: str, results: list[Stored], runner: Runner, report: Report
) -> Outcome:
    folder = order.folder(release)
    for number, kept in enumerate(results, start=1):
        report(release, number, _done(kept))
    for number in NUMBERS[len(results) :]:
        asked = order.asked(release, results)
        report(release, number, _STARTING)
        try:
            result = await runner(
                Task(release, asked, str(folder)), partial(report, release, number)
            )
        except CampaignFailed as error:
            return Outcome(release, results, str(error))
        results.append(store.save(folder, number, asked, result))
        report(release, number, _done(result))
    return Outcome(release, results)


_STARTING = CampaignProgress(0, 0, 0, 0.0, "starting")


def _done(result: CampaignResult) -> CampaignProgress:
    return CampaignProgress(result.examples, result.steps, result.events, result.seconds, "done")
