"""What is seen of one connector with one model, and whether that is right."""

from __future__ import annotations

import msgspec

FAILING_ROUNDS = 3
"""How often everything is asked for while loads fail."""

EVERY = 3
"""Each load with a number that this divides fails then."""

TIERS: dict[str, str] = {"cpu": "FaultySpec", "ours": "FaultyOwnSpec"}
"""Each tier's spec; a connector over another tier than "cpu" is called ``CONNECTOR:TIER``."""


class Seen(msgspec.Struct):
    """What one connector did with one model.

    Attributes:
        connector: "ours" or "stock"; with ":ours" behind it, over our own tier.
        requests: how many there were in each round.
        equal: how many had the reference's tokens when all was computed, and when it was loaded.
        external: tokens that were loaded instead of computed, as the engine counts them.
        loads: transfer jobs that brought them.
        changed: requests whose tokens the control changed.
        failing: requests that were answered while loads failed.
        failing_equal: how many of those had the reference's tokens.
        failed: loads that were made to fail, by way.
        ended: why the engine ended while loads failed; empty when it went on.
        preempted: requests that were preempted in all rounds.
        seconds: from the making of the engine to its end.
    """

    connector: str
    requests: int
    equal: tuple[int, int] = (0, 0)
    external: int = 0
    loads: int = 0
    changed: int = 0
    failing: int = 0
    failing_equal: int = 0
    failed: dict[str, int] = {}
    ended: str = ""
    preempted: int = 0
    seconds: float = 0.0

    def holds(self) -> bool:
        """Whether tokens were right in every round, and every round could have shown it."""
        return (
            self.equal == (self.requests, self.requests)
            and self.external > 0
            and self.changed > 0
            and sum(self.failed.values()) > 0
            and not self.ended
            and self.failing_equal == self.failing == self.requests * FAILING_ROUNDS
        )
