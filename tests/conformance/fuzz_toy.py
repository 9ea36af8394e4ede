"""A test double for the shrinker and the campaign: an engine of a few lines with a planted fault.

Its scheduler breaks when a step ends no copies while two live requests share their first three
tokens and the tier was reset at least once before. So the shortest failing history is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from kvproof.conformance.engines.base import (
    Abort,
    Add,
    Drain,
    Emit,
    GroupSetup,
    Move,
    ResetCache,
    Setup,
    Step,
)
from kvproof.conformance.monitor.finding import Finding
from kvproof.conformance.trace.events import (
    SCHEDULER_RANK,
    SCHEMA_VERSION,
    AnyEvent,
    Arrive,
    Finish,
    GroupGeometry,
    Header,
    Raised,
    Reset,
)

SHARED = 3


class ToyEngine:
    """Implements ``Engine``."""

    def __init__(self, setup: Setup, emit: Emit) -> None:
        self.crashed = False
        self.header = Header(
            schema=SCHEMA_VERSION,
            target="toy",
            groups=[GroupGeometry(g.kind, g.tokens_per_block, g.window) for g in setup.groups],
            blocks_per_chunk=setup.blocks_per_chunk,
            tokens_per_hash=setup.groups[0].tokens_per_block,
            num_gpu_blocks=setup.num_gpu_blocks,
            num_slots=setup.num_slots,
            num_workers=setup.num_workers,
            lanes="direction",
            features={},
            options={},
        )
        self._emit = emit
        self._live: dict[str, tuple[int, ...]] = {}
        self._resets = 0
        self._steps = 0

    def play(self, move: Move) -> bool:
        match move:
            case Add(req, tokens):
                if req in self._live:
                    return False
                self._live[req] = tokens
                self._emit(Arrive(self._steps, SCHEDULER_RANK, req, list(tokens)))
            case Abort(req):
                if self._live.pop(req, None) is None:
                    return False
                self._emit(Finish(self._steps, SCHEDULER_RANK, req, "aborted"))
            case ResetCache(connector=connector):
                self._resets += connector
                self._emit(Reset(self._steps, SCHEDULER_RANK))
            case Step(finish):
                self._steps += 1
                if finish == "none" and self._resets and self._overlap():
                    self.crashed = True
                    self._emit(
                        Raised(self._steps, SCHEDULER_RANK, "schedule", "Planted", "toy.py:1")
                    )
            case Drain():
                self._live.clear()
        return True

    def _overlap(self) -> bool:
        heads = [tokens[:SHARED] for tokens in self._live.values() if len(tokens) >= SHARED]
        return len(heads) > len(set(heads))

    def close(self) -> None:
        pass


class ToyTarget:
    """Implements ``Target``; refuses recurrent groups, as old releases do."""

    name = "toy"

    def supports(self, setup: Setup) -> str | None:
        refused = any(group.kind == "recurrent" for group in setup.groups)
        return "no recurrent groups here" if refused else None

    def plain(self) -> None:
        """There is no other scheduler in it."""

    def start(self, setup: Setup, emit: Emit) -> ToyEngine:
        return ToyEngine(setup, emit)


class RaisedIsWrong:
    """A judge that knows one rule: nothing raises."""

    def __init__(self, header: Header) -> None:
        self.missed: list[Finding] = []
        self._events = 0
        self._counts: Counter[str] = Counter()

    def feed(self, event: AnyEvent) -> Finding | None:
        self._events += 1
        self._counts[type(event).__name__] += 1
        if not isinstance(event, Raised):
            return None
        return Finding(
            id="P11",
            sentence="Nothing raises.",
            culprit="scheduler",
            severity="unsafe",
            index=self._events - 1,
            step=event.step,
            action="crash",
            event="raised",
            facts={"call": event.call, "exception": event.exception, "where": event.where},
        )

    def coverage(self) -> Mapping[str, int]:
        return {"evict": 0, **self._counts}


ONE_GROUP = Setup(groups=(GroupSetup("full", 2),))
