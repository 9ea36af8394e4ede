"""What the scheduler remembers of a request, and what the request allows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kvproof.impl.scheduler.lookup import Answer
from kvproof.impl.scheduler.views import Key, RequestView


@dataclass(frozen=True, slots=True)
class Limits:
    """Caps of one request, in tokens; None is no cap, 0 is one.

    Attributes:
        max_load: how many tokens may be loaded beyond what is computed.
        max_store: up to which position chunks may be stored.
        skip_reading: nothing may be loaded.
    """

    max_load: int | None = None
    max_store: int | None = None
    skip_reading: bool = False


@dataclass(slots=True)
class RequestState:
    """One life of a request id.

    Attributes:
        request: the engine's request.
        context: what the tier knows it by.
        limits: what it allows.
        cursors: the next chunk to offer, per group.
        due: computed tokens at which some group may have something to offer.
        alarm: when it will be looked at; see ``Alarms``.
        refused: keys that the tier had no room for, and how often room had changed by then.
        settled: keys beyond a refused one that need not be offered again.
        states: recurrent states that the tier had no room for: (place of the group, chunk) -> the
            block that it is in, and how often room had changed by then.
        asked: (computed tokens, limit, changes of the tier) of the last lookup.
        losses: how often keys had been lost by then.
        whole: all that the answer rests on was looked up for the question that it answers.
        answer: what that lookup found.
        awaits: the first job number that was still to come when its lookup was first put off.
        filled: its blocks hold all that the engine counts as computed: a load of ours has come in,
            or a step has computed tokens of it, since it was last asked for.
        runs: a step has computed tokens of it since it was last asked for.
        since: the first chunk that it offered or loaded, per group; see ``Recency``.
        used_to: up to how many tokens its chunks may be in the tier; see ``Recency``.
        young: none of its keys in the tier is the oldest before so many keys have moved.
        polls: how often it was put off since then with none of the earlier jobs in flight.
        given_up: a load that was promised could not be made, and it has not run since.
    """

    request: RequestView
    context: Any
    limits: Limits
    cursors: list[int]
    due: int
    alarm: int = 0
    refused: dict[Key, int] = field(default_factory=dict)
    settled: frozenset[Key] = frozenset()
    states: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    asked: tuple[int, int, int] | None = None
    losses: int = -1
    whole: bool = True
    answer: Answer = field(default_factory=lambda: Answer(0))
    awaits: int | None = None
    filled: bool = False
    runs: bool = False
    since: dict[int, int] = field(default_factory=dict)
    used_to: int = 0
    young: int = 0
    polls: int = 0
    given_up: bool = False
