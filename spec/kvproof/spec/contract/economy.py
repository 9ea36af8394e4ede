"""What is judged of work and room: nothing here changes anything, and nothing depends on it.

A finding of these is a hit that was lost, or work that was done twice. The quantities are computed
by the monitor from the trace and the state; the functions that it uses are proved on their own.
"""

from __future__ import annotations

from kvproof.spec.contract.sorts import Key, Request, Residency
from kvproof.spec.contract.state import State
from kvproof.spec.lang import Expr, Int, action, either, oblige


class EconomyMoves(State):
    """Judgements of class *missed*."""

    # --- what is found again ---

    @action(by="scheduler")
    def judge_answer(self, r: Expr[Request], reached: Int, greatest: Int) -> None:
        """An answer reaches up to ``reached`` tokens; ``greatest`` could be served."""
        oblige("E1", greatest <= reached)

    @action(by="scheduler")
    def judge_need(self, r: Expr[Request], k: Expr[Key], boundary: Int, offers: Int) -> None:
        """A lookup needs a key at a boundary that an ended request had computed and could keep."""
        oblige("E2", 0 < offers)

    @action(by="scheduler")
    def judge_repeat(self, r: Expr[Request], reached: Int, stored: Int) -> None:
        """A request repeats one that ended, of which all of ``stored`` tokens was stored."""
        oblige("E4", stored <= reached)

    # --- what is offered ---

    @action(by="scheduler")
    def judge_chunk(self, r: Expr[Request], k: Expr[Key], chances: Int, offers: Int) -> None:
        """A request has ended; in ``chances`` windows a chunk was complete and its blocks there."""
        oblige("E3", either(chances == 0, 0 < offers))

    @action(by="scheduler")
    def judge_again(self, r: Expr[Request], room: Int, refused_at: Int) -> None:
        """A refused offer is repeated: room has changed ``room`` times so far."""
        oblige("E6", refused_at < room)

    @action(by="scheduler")
    def judge_twice(self, r: Expr[Request], k: Expr[Key], offers: Int) -> None:
        """A resident key is offered that its request has offered ``offers`` times already."""
        oblige("E6", offers == 0)

    @action(by="scheduler")
    def judge_tail(
        self, r: Expr[Request], other: Expr[Request], k: Expr[Key], left: Int, left_before: Int
    ) -> None:
        """Two requests of the same tokens could both leave a key: either both did, or neither."""
        oblige("E8", left == left_before)

    # --- what stays ---

    @action(by="tier")
    def judge_events(self, k: Expr[Key], said: Int, there: Int) -> None:
        """By the emitted events a key is in the tier ``said`` times."""
        oblige("E5", said == there)

    @action(by="tier")
    def judge_age(self, x: Expr[Residency], other: Expr[Residency], used: Int, older: Int) -> None:
        """One residency leaves, another could have: the last requests to use them, by arrival."""
        oblige("E7", used <= older)

    @action(by="tier")
    def judge_order(
        self, x: Expr[Residency], other: Expr[Residency], chunk: Int, tail: Int
    ) -> None:
        """Chunk ``chunk`` of a prefix leaves; ``tail``, beyond reach without it, stays."""
        oblige("E7", tail <= chunk)
