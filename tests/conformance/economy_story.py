"""Hand-made traces for economy: a story whose findings of class *missed* are told."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from kvproof.conformance.monitor.monitor import Monitor
from kvproof.conformance.trace import events as ev
from kvproof.conformance.trace.events import SCHEDULER_RANK as S
from tests.conformance.story import Story, tokens

Missed = tuple[str, int, dict[str, str]]
"""Id, event index and facts of a finding."""


@dataclass
class Tale(Story):
    """A story with settings of its run, and offers that the tier does not take."""

    options: dict[str, bool | int | str | None] = field(default_factory=dict)

    @property
    def header(self) -> ev.Header:
        return msgspec.structs.replace(super().header, options=self.options)

    def missed(self) -> list[Missed]:
        """The missed findings of a run in which nothing unsafe happens."""
        monitor = Monitor(self.header)
        for event in self.events:
            assert monitor.feed(event) is None
        return [(f.id, f.index, f.facts) for f in monitor.missed]

    def refuse(self, req: str, *keys: str) -> None:
        """An offer for which there is no room."""
        self.emit(ev.PrepareStore(self.step, S, req, list(keys), True, [], []))

    def decline(self, req: str, *keys: str) -> None:
        """An offer of which nothing is taken: there already, or not wanted."""
        self.emit(ev.PrepareStore(self.step, S, req, list(keys), False, [], []))

    def displace(self, key: str, slot: int) -> None:
        """Somebody else's chunk takes the place of a key."""
        self.compute_prompt("x#0", tokens(70, 4), first_block=8)
        self.accept("x#0", (self.key("x#0", 0), slot), evicted=(key,))

    def show(self, req: str, index: int, group: int = 0) -> str:
        """A key as facts name it."""
        return f"key {self.key(req, index, group)}"

    def end(self, req: str, *blocks: int) -> None:
        """The request ends, and the window with it."""
        self.finish(req, *blocks)
        self.idle()

    def left(self, req: str, prompt: list[int], first_block: int = 1, job: int = 1) -> None:
        """A request of whole chunks that ran, stored everything and ended."""
        self.stored(req, prompt, first_block, job)
        self.end(req, *range(first_block, first_block + len(prompt) // 4))

    def told(self, *changes: tuple[str, list[str]]) -> None:
        """Events that the connector emitted."""
        self.emit(ev.KvEvents(self.step, S, [ev.KvChange(*change) for change in changes]))
