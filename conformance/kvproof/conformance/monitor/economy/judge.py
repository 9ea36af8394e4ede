"""Which events economy listens to, and in what order its judgements are made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kvproof.conformance.monitor.economy.answers import Answers
from kvproof.conformance.monitor.economy.emitted import Emitted
from kvproof.conformance.monitor.economy.geometry import Geometry
from kvproof.conformance.monitor.economy.lives import Lives
from kvproof.conformance.monitor.economy.offers import Offers
from kvproof.conformance.monitor.economy.recency import Recency
from kvproof.conformance.monitor.lookup_readers import Move
from kvproof.conformance.monitor.world import World
from kvproof.conformance.trace import events as ev


class Economy:
    """Reads a trace beside the mapping: ``before`` an event's own moves, and ``after`` them."""

    def __init__(self, world: World) -> None:
        geometry = Geometry.of(world.header)
        self._lives = Lives(world)
        self._answers = Answers(world, geometry, self._lives)
        self._offers = Offers(world, geometry, self._lives)
        self._recency = Recency(world, geometry, self._lives)
        self._emitted = Emitted(world)
        self._after: dict[type[Any], Callable[[Any], Iterator[Move]]] = {
            ev.Answer: self._answers.answer,
            ev.Scheduled: self._scheduled,
            ev.Drained: self._drained,
        }
        self._notes: dict[type[Any], Callable[[Any], None]] = {
            ev.Arrive: self._arrive,
            ev.Forward: self._lives.forward,
            ev.Preempt: self._lives.preempt,
            ev.Extended: self._lives.extend,
            ev.Finish: self._offers.finish,
            ev.Answer: self._offers.answer,
            ev.PrepareStore: self._prepare_store,
            ev.Promote: self._promote,
            ev.Promoted: self._promoted,
            ev.PrepareLoad: self._use,
            ev.Touch: self._use,
            ev.CompleteStore: self._complete_store,
            ev.CompleteLoad: self._complete_load,
            ev.Reset: self._reset,
            ev.TierReset: self._reset,
            ev.Received: self._end_of_copy,
            ev.Report: self._end_of_copy,
            ev.KvEvents: self._emitted.note,
        }

    def listens_to(self, kind: type[Any]) -> bool:
        """Whether events of a kind mean anything here."""
        return kind in self._after or kind in self._notes

    def before(self, event: ev.Event) -> Iterator[Move]:
        """Judgements over the state that an event finds."""
        if isinstance(event, ev.PrepareStore):
            yield from self._offers.judge(event)
            yield from self._recency.judge(event)

    def after(self, event: ev.Event) -> Iterator[Move]:
        """Judgements over the state that an event leaves."""
        note = self._notes.get(type(event))
        if note is not None:
            note(event)
        reader = self._after.get(type(event))
        if reader is not None:
            yield from reader(event)

    # --- judgements ---

    def _scheduled(self, event: ev.Scheduled) -> Iterator[Move]:
        self._emitted.step()
        ending = self._lives.ending[:]
        yield from self._offers.schedule(event)
        for life in ending:
            self._answers.ended(life)
            self._recency.ended(life)

    def _drained(self, event: ev.Drained) -> Iterator[Move]:
        yield from self._offers.judge_ends()
        yield from self._emitted.judge()

    # --- notes ---

    def _arrive(self, event: ev.Arrive) -> None:
        self._lives.arrive(event)
        self._recency.arrive(event)

    def _prepare_store(self, event: ev.PrepareStore) -> None:
        self._offers.note(event)
        self._recency.leave(event.evicted)
        self._recency.use(event.req, event.keys, event.refused)

    def _promote(self, event: ev.Promote) -> None:
        if event.evicted:
            self._lives.room += 1
            self._lives.disturb()

    def _promoted(self, event: ev.Promoted) -> None:
        self._lives.room += 1

    def _use(self, event: ev.PrepareLoad | ev.Touch) -> None:
        self._recency.use(event.req, event.keys)

    def _complete_store(self, event: ev.CompleteStore) -> None:
        self._lives.change_room()
        if not event.ok:
            self._recency.leave(event.keys)

    def _complete_load(self, event: ev.CompleteLoad) -> None:
        self._lives.change_room()

    def _reset(self, event: ev.Event) -> None:
        self._lives.reset()
        self._recency.reset()
        self._emitted.reset()

    def _end_of_copy(self, event: ev.Received | ev.Report) -> None:
        if not event.ok:
            self._lives.fail()
