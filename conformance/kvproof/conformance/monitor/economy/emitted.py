"""What the emitted events say is in the tier."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kvproof.conformance.monitor.lookup_readers import Move
from kvproof.conformance.monitor.world import World
from kvproof.conformance.trace import events as ev


class Emitted:
    """Judges E5, where a run emits events at all.

    Releases differ in whether an event says the group; where it does not, a hash counts as often as
    there are groups that have it. Events are taken at the end of a step: what a reset does to the
    tier can be told only once a step has followed.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._seen = False
        self._grouped = True
        self._untold = False
        self._said: Counter[str] = Counter()

    def note(self, event: ev.KvEvents) -> None:
        """A batch of events, in their order."""
        self._seen = True
        for change in event.changes:
            self._grouped = self._grouped and all(":" in key for key in change.keys)
            match change.what:
                case "stored":
                    self._said.update(change.keys)
                case "removed":
                    self._said.subtract(change.keys)
                case _:
                    self._said.clear()

    def reset(self) -> None:
        """The tier has forgotten all, between two steps: nobody has been asked for events since."""
        self._untold = True

    def step(self) -> None:
        """A step is scheduled; when it ends, events are taken."""
        self._untold = False

    def judge(self) -> Iterator[Move]:
        """At rest, all events have been taken: each key is told as often as it is there.

        One key of each group stands for all: one that is told wrongly, if there is one.
        """
        if not self._seen or self._untold:
            return
        there: Counter[str] = Counter()
        for k in self._world.reference.where:
            named = str(self._world.names.original("Key", k))
            there[named if self._grouped else named.rpartition(":")[0]] += 1
        shown: dict[str, str] = {}
        for name in sorted({*there, *self._said}, key=lambda n: (there[n] == self._said[n], n)):
            shown.setdefault(name.partition(":")[2], name)
        for name in shown.values():
            key = self._world.key(name if self._grouped else f"{name}:0")
            yield "judge_events", (key, self._said[name], there[name])
