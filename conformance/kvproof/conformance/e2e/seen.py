"""What is seen of one connector with one model, and whether that is right."""

from __future__ import annotations

import msgspec

FAILING_ROUNDS = 3
"""How often everything is asked for while loads fail."""

EVERY = 3
"""Each load with a number that this divides fails then."""

WORKERS = 2
"""Workers of an engine that has several."""

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


class SeenWorkers(msgspec.Struct):
    """What our connector did with a model and several workers.

    Attributes:
        requests: how many there were in each round.
        loaded: how many had the same tokens loaded as computed.
        external: tokens that were loaded instead of computed, as the engine counts them.
        changed: by worker, how many had other tokens when all that it had in the tier was zeroed.
        put_back: by worker, how many had the right ones when its bytes were there again.
        left: files in shared memory, after the engine and a look for what others have left.
        failed: loads that failed on one worker and not on the other, in an engine of its own.
        failing: how many had the right tokens in that engine.
    """

    requests: int
    loaded: int = 0
    external: int = 0
    changed: list[int] = []
    put_back: list[int] = []
    left: int = 0
    failed: int = 0
    failing: int = 0

    def holds(self) -> bool:
        """Whether tokens were right in every round, and every round could have shown it."""
        return (
            self.loaded == self.failing == self.requests
            and self.external > 0
            and len(self.changed) == WORKERS
            and min(self.changed) > 0
            and self.put_back == [self.requests] * WORKERS
            and self.failed > 0
            and self.left == 0
        )
