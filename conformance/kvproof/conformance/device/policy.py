"""When the device does what it may do: early, late, at random, or in every possible order."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

T = TypeVar("T")


class Policy(Protocol):
    """Chooses among what the device may do next."""

    def choose(self, streams: Sequence[int]) -> int | None:
        """The index of what to do, by whose stream it is; None to let the calling thread go on."""
        ...


class Early:
    """Does all at once."""

    def choose(self, streams: Sequence[int]) -> int | None:
        """The first."""
        return 0


class Late:
    """Does nothing that nobody waits for."""

    def choose(self, streams: Sequence[int]) -> int | None:
        """None."""
        return None


class Priorities:
    """Random, but persistently so: streams have priorities, which change now and then.

    Orders that differ much from the usual one are found sooner in this way than by a coin for each
    operation, since a stream is starved for long (Burckhardt and others, "A randomized scheduler
    with probabilistic guarantees of finding bugs", 2010).
    """

    def __init__(self, seed: int, changes: float = 0.1) -> None:
        """``changes``: how often priorities change, per choice."""
        self._random = random.Random(seed)
        self._changes = changes
        self._priorities: dict[int | None, float] = {}

    def choose(self, streams: Sequence[int]) -> int | None:
        """The stream with the highest priority; the calling thread takes part as one."""
        parties: list[int | None] = [*streams, None]
        if self._random.random() < self._changes:
            self._priorities[self._random.choice(parties)] = self._random.random()
        best = max(parties, key=self._priority)
        return None if best is None else streams.index(best)

    def _priority(self, party: int | None) -> float:
        if party not in self._priorities:
            self._priorities[party] = self._random.random()
        return self._priorities[party]


@dataclass
class Script:
    """Follows choices made before, then goes on with the first; notes how many there were."""

    choices: list[int]
    taken: list[int] = field(default_factory=list)
    widths: list[int] = field(default_factory=list)

    def choose(self, streams: Sequence[int]) -> int | None:
        """Choice 0 lets the calling thread go on."""
        at = len(self.taken)
        choice = self.choices[at] if at < len(self.choices) else 0
        self.taken.append(choice)
        self.widths.append(len(streams) + 1)
        return None if choice == 0 else choice - 1


def every_order(run: Callable[[Policy], T], limit: int) -> Iterator[T]:
    """What ``run`` returns under each order that there is, ``limit`` of them at most.

    ``run`` must do the same whenever it is given the same choices.
    """
    choices: list[int] | None = []
    while choices is not None and limit:
        script = Script(choices)
        yield run(script)
        limit -= 1
        choices = _next(script)


def _next(script: Script) -> list[int] | None:
    for at in reversed(range(len(script.taken))):
        if script.taken[at] + 1 < script.widths[at]:
            return [*script.taken[:at], script.taken[at] + 1]
    return None
