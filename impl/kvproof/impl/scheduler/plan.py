"""What one step asks of the workers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Transfer(NamedTuple):
    """One job's two sides.

    Attributes:
        request_id: the request that it serves.
        blocks: GPU block ids, group by group.
        group_sizes: how many of them each group has.
        first_positions: the table position of each group's first block; the others follow on, a
            chunk that is not moved left out.
        place: the tier's description of the other side.
    """

    request_id: str
    blocks: Sequence[int]
    group_sizes: Sequence[int]
    first_positions: Sequence[int]
    place: Any


@dataclass(slots=True)
class Plan:
    """The transfers of one step, by job number.

    Attributes:
        loads: tier to GPU; the engine waits for them.
        stores: GPU to tier, of what is computed by the end of this step.
        flush: jobs that must have ended before this step changes any block. A store of this very
            step among them reads nothing that the step computes.
        lost: requests whose load cannot be carried out: they are to be told that it failed.
    """

    loads: dict[int, Transfer] = field(default_factory=dict)
    stores: dict[int, Transfer] = field(default_factory=dict)
    flush: set[int] = field(default_factory=set)
    lost: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Step:
    """What the engine has just scheduled.

    Attributes:
        scheduled: tokens that this step computes, by request id.
        started: requests that were not running before. All others have computed no more since they
            were last scheduled than they were scheduled for.
        leased: called when it matters: the blocks that were handed out since the last step.
        handed: recurrent states that the engine hands over: by request id, (group, block, tokens
            that the state is of).
        put_back: requests that were preempted since the last step.
    """

    scheduled: Mapping[str, int]
    started: Collection[str]
    leased: Callable[[], set[int]]
    handed: Mapping[str, Sequence[tuple[int, int, int]]] = field(default_factory=dict)
    put_back: Collection[str] = ()
