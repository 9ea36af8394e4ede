"""The film of a history: event by event, the reference's moves and the facts that they changed.

The events are judged once more, by a monitor whose mapping is watched: before the first move of an
event that writes a field, the field is copied, and after the event the copies tell what changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from kvproof.conformance.monitor.job_readers import Move
from kvproof.conformance.monitor.mapping import Mapping
from kvproof.conformance.monitor.monitor import Monitor
from kvproof.conformance.monitor.world import World
from kvproof.conformance.report.names import Shown
from kvproof.conformance.report.narrate import narrate
from kvproof.conformance.trace.events import AnyEvent, Event, Header
from kvproof.spec import ir
from kvproof.spec.contract import contract

EVENTS_KEPT = 400
"""The last events of a longer trace: what broke it shows near its end."""

MOVES_KEPT = 24
CHANGES_KEPT = 40

BOARD = frozenset(
    (
        *("current", "holds", "reading", "incoming"),
        *("occupant", "storing", "ready", "pinned"),
        *("pending", "unreported", "submitted", "failed"),
    )
)
"""The fields that the page draws blocks, slots and jobs from: their changes are all kept."""

Table = dict[tuple[int, ...], int | bool]


class Change(msgspec.Struct, frozen=True, array_like=True):
    """A fact that an event changed.

    ``op`` is "+" (a row came), "-" (a row went, or a map is undefined there now) or "=" (a value
    was set; ``old`` is "" when there was none).
    """

    op: str
    field: str
    args: list[str]
    value: str
    old: str


class Frame(msgspec.Struct, frozen=True):
    """One event. ``moves_left_out`` and ``changes_left_out`` count what was too much to keep."""

    index: int
    step: int
    rank: int
    kind: str
    lane: str
    text: str
    moves: list[str]
    moves_left_out: int
    changes: list[Change]
    changes_left_out: int


class Film(msgspec.Struct, frozen=True):
    """The frames from event ``first`` on; ``opening`` are the board's facts before it."""

    first: int
    opening: list[Change]
    frames: list[Frame]


class _Watched(Mapping):
    """A mapping that notes the moves of the event at hand and what the fields held before them."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.watching = False
        self.made: list[Move] = []
        self.before: dict[str, Table] = {}

    def moves(self, event: Event) -> Iterator[Move]:
        """The moves of ``event``, noted as they are taken."""
        if not self.watching:
            yield from super().moves(event)
            return
        self.made, self.before = [], {}
        for move in super().moves(event):
            self.made.append(move)
            for field in sorted(ir.fields_written(contract().actions[move[0]])):
                if field not in self.before:
                    self.before[field] = table(self.world, field)
            yield move


def table(world: World, field: str) -> Table:
    """What the reference holds in ``field`` now: its rows, or its values by key."""
    held = getattr(world.reference, field)
    if isinstance(held, int):
        return {(): held}
    if isinstance(held, dict):
        return {k if isinstance(k, tuple) else (k,): v for k, v in held.items()}
    return {row if isinstance(row, tuple) else (row,): True for row in held}


def shoot(header: Header, events: Sequence[AnyEvent], keep: int = EVENTS_KEPT) -> Film:
    """The film of ``events``, of which the last ``keep`` get a frame."""
    monitor = Monitor(header)
    watched = monitor.mapping = _Watched(monitor.world)
    first = max(0, len(events) - keep)
    for event in events[:first]:
        monitor.feed(event)
    shown = Shown(monitor.world)
    opening = [c for field in sorted(BOARD) for c in changes(shown, field, {})]
    watched.watching = True
    frames = []
    for index, event in enumerate(events[first:], start=first):
        monitor.feed(event)
        frames.append(_frame(index, event, watched, shown))
    return Film(first, opening, frames)


def _frame(index: int, event: AnyEvent, watched: _Watched, shown: Shown) -> Frame:
    lane, text = narrate(event)
    found = [c for field, before in watched.before.items() for c in changes(shown, field, before)]
    board = [c for c in found if c.field in BOARD]
    others = [c for c in found if c.field not in BOARD]
    room = max(0, CHANGES_KEPT - len(board))
    # The last move is the one that an obligation breaks at: it is never left out.
    made = watched.made
    kept = made if len(made) <= MOVES_KEPT else [*made[: MOVES_KEPT - 1], made[-1]]
    return Frame(
        index=index,
        step=event.step,
        rank=event.rank,
        kind=str(type(event).__struct_config__.tag),
        lane=lane,
        text=text,
        moves=[shown.move(*move) for move in kept],
        moves_left_out=len(made) - len(kept),
        changes=[*board, *others[:room]],
        changes_left_out=max(0, len(others) - room),
    )


def changes(shown: Shown, field: str, before: Table) -> list[Change]:
    """How ``field`` differs from ``before``."""
    after = table(shown.world, field)
    relation = contract().fields[field].kind == "relation"
    found = []
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        op = "-" if new is None else "+" if relation else "="
        value = "" if relation or new is None else shown.value(field, new)
        was = "" if relation or old is None else shown.value(field, old)
        found.append(Change(op, field, shown.row(field, key), value, was))
    return found
