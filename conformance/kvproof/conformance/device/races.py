"""Two accesses to the same bytes, one of them a write, that nothing orders."""

from __future__ import annotations

from dataclasses import dataclass

from kvproof.conformance.device.clocks import Clock
from kvproof.conformance.device.memory import Memory


@dataclass(frozen=True, slots=True)
class Access:
    """What one operation does with memory.

    Attributes:
        what: the operation, in words.
        stream: the number of its stream; the calling thread has one too.
        number: its number in that stream, from 1.
        reads: the set of bytes that it reads.
        writes: the set of bytes that it writes.
        before_reads: what has ended before it reads.
        before_writes: what has ended before it writes.
    """

    what: str
    stream: int
    number: int
    reads: int
    writes: int
    before_reads: Clock
    before_writes: Clock


@dataclass(frozen=True, slots=True)
class Race:
    """``later`` does not wait for ``earlier``, which was submitted before it."""

    earlier: Access
    earlier_does: str
    later: Access
    later_does: str
    where: str

    @property
    def missing(self) -> str:
        """The edge that would order them, in words."""
        return f"the end of {self.earlier.what} before {self.later.what} {self.later_does}"

    def __str__(self) -> str:
        return (
            f"{self.earlier.what} {self.earlier_does} and {self.later.what} {self.later_does}"
            f" {self.where}; missing: {self.missing}"
        )


class Races:
    """Compares each access with all earlier ones. ``found`` has the races, one for each pair."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._accesses: list[Access] = []
        self.found: list[Race] = []

    def add(self, later: Access) -> None:
        """One more access, submitted after those before."""
        for earlier in self._accesses:
            self._compare(earlier, later)
        self._accesses.append(later)

    def forget(self) -> None:
        """All of these have ended, and whoever comes later knows it."""
        self._accesses.clear()

    def _compare(self, earlier: Access, later: Access) -> None:
        after_writes = later.before_writes.knows(earlier.stream, earlier.number)
        after_reads = later.before_reads.knows(earlier.stream, earlier.number)
        kinds = [
            (earlier.writes, "writes", later.reads, "reads", after_reads),
            (earlier.writes, "writes", later.writes, "writes", after_writes),
            (earlier.reads, "reads", later.writes, "writes", after_writes),
        ]
        for one, one_does, other, other_does, ordered in kinds:
            if not ordered and one & other:
                where = self._memory.say(one & other)
                self.found.append(Race(earlier, one_does, later, other_does, where))
                return
