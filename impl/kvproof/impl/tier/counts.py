"""What a tier counts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Counts:
    """Sums since the tier was made.

    Attributes:
        stored: chunks that became readable.
        failed: chunks whose store failed.
        loaded: chunks that were to be loaded.
        evicted: chunks that were given up for others.
        declined: chunks that were not wanted yet.
        refused: offers that there was no room for.
        unasked: completions of what was not under way.
    """

    stored: int = 0
    failed: int = 0
    loaded: int = 0
    evicted: int = 0
    declined: int = 0
    refused: int = 0
    unasked: int = 0
