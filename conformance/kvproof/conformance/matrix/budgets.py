"""What a release is asked: two campaigns that share one budget.

The first passes over nothing. The second draws other examples: it passes over what the first one
found, or what is known anyway, and most of its examples lack something that each loud finding of
the first one needs, so that its time goes into the rest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import msgspec

from kvproof.conformance.fuzz.campaign import CampaignResult
from kvproof.conformance.fuzz.traits import Trait, traits_of
from kvproof.conformance.monitor.finding import MISSED, Signature

NUMBERS = (1, 2)

LOUD = 0.02
"""The share of a campaign's examples that a finding must end to be avoided afterwards."""


class Bounds(msgspec.Struct, frozen=True):
    """What one release may spend on both campaigns; None is no bound."""

    seconds: float | None
    max_examples: int | None


class Asked(msgspec.Struct, frozen=True):
    """What one campaign is asked: all that its result depends on, beside the release.

    ``allow`` holds the signatures that are passed over, sorted; ``avoid`` the traits of each
    finding that is to be kept away; ``severity`` is the least class that is judged.
    """

    seed: int
    seconds: float | None
    max_examples: int | None
    allow: list[Signature]
    avoid: list[list[Trait]] = []
    severity: str = MISSED


def first(seed: int, bounds: Bounds, severity: str = MISSED) -> Asked:
    """The campaign with everything on, over half the budget: the larger half of odd examples."""
    examples = None if bounds.max_examples is None else -(-bounds.max_examples // 2)
    return Asked(seed, _half(bounds.seconds), examples, [], [], severity)


def second(
    seed: int,
    bounds: Bounds,
    passed_over: Iterable[Signature],
    avoid: Sequence[Sequence[Trait]] = (),
    severity: str = MISSED,
) -> Asked:
    """The campaign over the other half, with a seed of its own."""
    examples = None if bounds.max_examples is None else bounds.max_examples // 2
    return Asked(
        derived(seed),
        _half(bounds.seconds),
        examples,
        sorted(set(passed_over)),
        [list(traits) for traits in avoid],
        severity,
    )


def loud(result: CampaignResult) -> list[list[Trait]]:
    """The traits of each finding that ended many examples of a campaign, the loudest first.

    A finding whose history has no trait cannot be kept away, and is left out.
    """
    ended = [
        (1 + result.again.get(str(found.finding.signature()), 0), found)
        for found in result.found
        if found.finding.severity != MISSED
    ]
    ended.sort(key=lambda one: (-one[0], one[1].example))
    traits = [traits_of(found.history) for times, found in ended if times >= LOUD * result.examples]
    return [one for number, one in enumerate(traits) if one and one not in traits[:number]]


def derived(seed: int) -> int:
    """The second campaign's seed: far from ``seed``, and always the same."""
    return int.from_bytes(hashlib.sha256(f"second budget of {seed}".encode()).digest()[:4], "big")


def _half(seconds: float | None) -> float | None:
    return None if seconds is None else seconds / 2
