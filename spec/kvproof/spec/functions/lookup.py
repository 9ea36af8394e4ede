"""Runs of chunks that are in the tier, or on their way into it."""

from __future__ import annotations

from kvproof.spec.functions.kinds import ABSENT, PENDING
from kvproof.spec.functions.language import (
    Status,
    definition,
    ensures,
    exists,
    forall,
    implies,
    invariant,
    requires,
    variant,
)


@definition
def all_there(status: Status, start: int, end: int) -> bool:
    """No chunk in [start, end) is absent."""
    return forall(lambda chunk: implies(start <= chunk and chunk < end, status(chunk) != ABSENT))


@definition
def some_pending(status: Status, start: int, end: int) -> bool:
    """Some chunk in [start, end) is on its way."""
    return exists(lambda chunk: start <= chunk and chunk < end and status(chunk) == PENDING)


def prefix_hits(status: Status, start: int, end: int) -> tuple[int, bool]:
    """How many chunks from ``start`` on are not absent, and whether one of these is pending.

    The run ends before the first absent chunk, or at ``end``. Serves E1, L3.
    """
    requires(start <= end)
    ensures(
        lambda result: 0 <= result[0] <= end - start,
        lambda result: all_there(status, start, start + result[0]),
        lambda result: result[0] == end - start or status(start + result[0]) == ABSENT,
        lambda result: result[1] == some_pending(status, start, start + result[0]),
    )
    chunk = start
    pending = False
    while chunk < end and status(chunk) != ABSENT:
        invariant(
            start <= chunk <= end,
            all_there(status, start, chunk),
            pending == some_pending(status, start, chunk),
        )
        variant(end - chunk)
        pending = pending or status(chunk) == PENDING
        chunk += 1
    return chunk - start, pending


@definition
def run_length(stop: int, end: int, window: int, last_window: int) -> int:
    """How many chunks a run that stops at ``stop`` must have."""
    return last_window if stop == end else window


@definition
def stops_at(
    status: Status, start: int, stop: int, end: int, window: int, last_window: int
) -> bool:
    """Does a run stop at ``stop``: one that is long enough, or one that begins at ``start``?"""
    return all_there(status, max(start, stop - run_length(stop, end, window, last_window)), stop)


def suffix_hits(status: Status, start: int, end: int, window: int, last_window: int) -> int:
    """The greatest ``stop`` in [start, end] such that enough chunks before it are not absent.

    Enough are ``window`` chunks, ``last_window`` at ``end``, or all from ``start`` on when there
    are fewer than that. ``start`` itself when no chunk qualifies. Serves E1.
    """
    requires(start <= end, 1 <= window <= last_window)
    ensures(
        lambda result: start <= result <= end,
        lambda result: stops_at(status, start, result, end, window, last_window),
        lambda result: forall(
            lambda stop: implies(
                result < stop and stop <= end,
                not stops_at(status, start, stop, end, window, last_window),
            )
        ),
    )
    stop = end
    chunk = end
    while chunk > start:
        invariant(
            start <= chunk <= stop <= end,
            stop - chunk < run_length(stop, end, window, last_window),
            all_there(status, chunk, stop),
            forall(
                lambda later: implies(
                    stop < later and later <= end,
                    not stops_at(status, start, later, end, window, last_window),
                )
            ),
        )
        variant(chunk - start)
        chunk -= 1
        if status(chunk) == ABSENT:
            if stop == end and end - chunk - 1 > window:
                return end - 1
            stop = chunk
        elif stop - chunk == (last_window if stop == end else window):
            return stop
    return stop
