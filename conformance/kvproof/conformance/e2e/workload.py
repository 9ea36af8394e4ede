"""What is asked of an engine: prompts with prefixes in common, around block and chunk borders."""

from __future__ import annotations

import random

from kvproof.conformance.e2e.models import VOCABULARY

NEW_TOKENS = 24
"""Tokens that each request generates."""

MAX_LENGTH = 1024
"""Tokens of the longest request that an engine is set up for."""


def prompts() -> list[list[int]]:
    """Token ids of each prompt; the same on every call."""
    draw = random.Random(7)

    def fresh(count: int) -> list[int]:
        return [draw.randrange(3, VOCABULARY) for _ in range(count)]

    common = fresh(420)
    return [
        common[:300] + fresh(60),
        common,
        common[:300] + fresh(91),
        common + fresh(220),
        fresh(33),
        fresh(64),
        fresh(257),
        fresh(600),
    ]
