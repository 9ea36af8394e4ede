"""What was given to the streams of a device, and the doing of it in an order that they allow."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kvproof.conformance.device.clocks import Clock
from kvproof.conformance.device.policy import Policy

Do = Callable[[], None]


@dataclass(eq=False)
class Place:
    """Where an event was recorded: passed or not, when, and what has ended there."""

    clock: Clock
    passed: bool = False
    time: int = 0


@dataclass(eq=False)
class Task:
    """Reads, then writes; ``reads_ahead`` if it need not be its turn for that."""

    stream: int
    number: int
    read: Do
    write: Do
    reads_ahead: bool = False
    has_read: bool = False


Item = Task | Place | tuple[Place]
"""Something to do, a place to pass, or (in brackets) a place of another stream to wait for."""


@dataclass(eq=False)
class SimulatedStream:
    """Items in order; ``given`` tasks so far, and a clock of what comes before the next one."""

    name: str
    number: int
    clock: Clock = field(default_factory=Clock)
    given: int = 0
    items: deque[Item] = field(default_factory=deque)


class Queues:
    """All streams of a device. ``time`` counts what was done."""

    def __init__(self, policy: Policy) -> None:
        self.time = 0
        self._policy = policy
        self._streams: list[SimulatedStream] = []

    def stream(self, name: str) -> SimulatedStream:
        """One more stream; they are numbered from 1."""
        stream = SimulatedStream(name, len(self._streams) + 1)
        self._streams.append(stream)
        return stream

    def choose(self) -> None:
        """Let the policy do as much as it likes."""
        self.settle()
        while enabled := self._enabled():
            choice = self._policy.choose([task.stream for task in enabled])
            if choice is None:
                return
            self._run(enabled[choice])

    def progress(self) -> bool:
        """Do one thing, if there is one to do."""
        self.settle()
        enabled = self._enabled()
        if enabled:
            self._run(enabled[0])
        return bool(enabled)

    def finish(self) -> None:
        """Do everything, in an order that the policy chooses as long as it likes to."""
        self.choose()
        while self.progress():
            pass

    @property
    def streams(self) -> Sequence[SimulatedStream]:
        """All of them."""
        return self._streams

    def reach(self, place: Place) -> None:
        """Do what has to be done for this place to be passed, and no more."""
        self.settle()
        while not place.passed:
            needed = [t for t in self._enabled() if place.clock.knows(t.stream, t.number)]
            self._run(needed[0])

    def settle(self) -> None:
        """Pass every place that can be passed: that is no choice, for it touches no memory."""
        moved = True
        while moved:
            moved = False
            for stream in self._streams:
                while stream.items and self._passes(stream.items[0]):
                    stream.items.popleft()
                    moved = True

    def _passes(self, item: Item) -> bool:
        if isinstance(item, Place):
            item.passed, item.time = True, self.time
            return True
        return isinstance(item, tuple) and item[0].passed

    def _enabled(self) -> list[Task]:
        """The first task of each stream that waits for nothing, and those that may read ahead."""
        return [
            item
            for stream in self._streams
            for place, item in enumerate(stream.items)
            if isinstance(item, Task)
            if place == 0 or (item.reads_ahead and not item.has_read)
        ]

    def _run(self, task: Task) -> None:
        """Read, or write if it has read."""
        self.time += 1
        if not task.has_read:
            task.has_read = True
            task.read()
            return
        task.write()
        self._streams[task.stream - 1].items.popleft()
        self.settle()
