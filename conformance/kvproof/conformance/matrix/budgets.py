"""What a release is asked: two campaigns that share one budget.

The first passes over nothing. The second draws other examples, and what the first one found, or
what is known anyway, ends its examples without being shrunk again: its time goes into the rest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from kvproof.conformance.monitor.finding import Signature

NUMBERS = (1, 2)


class Bounds(msgspec.Struct, frozen=True):
    """What one release may spend on both campaigns; None is no bound."""

    seconds: float | None
    max_examples: int | None


class Asked(msgspec.Struct, frozen=True):
    """What one campaign is asked: all that its result depends on, beside the release.

    ``allow`` holds the signatures that are passed over, sorted.
    """

    seed: int
    seconds: float | None
    max_examples: int | None
    allow: list[Signature]


def first(seed: int, bounds: Bounds) -> Asked:
    """The campaign with everything on, over half the budget: the larger half of odd examples."""
    examples = None if bounds.max_examples is None else -(-bounds.max_examples // 2)
    return Asked(seed, _half(bounds.seconds), examples, [])


def second(seed: int, bounds: Bounds, passed_over: Iterable[Signature]) -> Asked:
    """The campaign over the other half, with a seed of its own."""
    examples = None if bounds.max_examples is None else bounds.max_examples // 2
    return Asked(derived(seed), _half(bounds.seconds), examples, sorted(set(passed_over)))


def derived(seed: int) -> int:
    """The second campaign's seed: far from ``seed``, and always the same."""
    return int.from_bytes(hashlib.sha256(f"second budget of {seed}".encode()).digest()[:4], "big")


def _half(seconds: float | None) -> float | None:
    return None if seconds is None else seconds / 2
