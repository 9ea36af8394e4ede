"""Who uses which slots of an order: what a user has for itself, and what it shares with others."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

NONE = -1
"""No slot."""


class Segment:
    """What one user uses: a run of the order, its youngest and its oldest slot.

    Attributes:
        young, old: these slots, both ``NONE`` when there are none.
        number: grows with the users; 0 when there is no user, or not any more.
        lends: the groups of slots that stand here and that others use, too.
        borrows: the groups of slots that its user uses and that stand elsewhere.
    """

    __slots__ = ("borrows", "lends", "number", "old", "young")

    def __init__(self, number: int = 0) -> None:
        self.young = self.old = NONE
        self.number = number
        self.lends: set[Group] = set()
        self.borrows: set[Group] = set()

    def lenders(self) -> list[Segment]:
        """In whose segments its slots stand, and theirs in turn; who came last comes last."""
        found = {group.owner for group in self.borrows}
        ahead = [owner for owner in found if owner.borrows]
        while ahead:
            new = {group.owner for group in ahead.pop().borrows} - found
            found |= new
            ahead += new
        return sorted(found, key=attrgetter("number")) if len(found) > 1 else [*found]


class Group:
    """Slots that the same users use; they stand with the one of these that came last.

    Many slots have one group, a prefix that is in use many times over, so users are counted once
    and not for each slot.
    """

    __slots__ = ("others", "owner", "slots")

    def __init__(self, owner: Segment, others: Iterable[Segment]) -> None:
        self.owner = owner
        self.others = frozenset(others)
        self.slots = 0
        owner.lends.add(self)
        for other in self.others:
            other.borrows.add(self)

    def living(self) -> set[Segment]:
        """Those of the others who have not ended."""
        return {other for other in self.others if other.number}

    def leave(self) -> None:
        """A slot is not of this group any more."""
        self.slots -= 1
        if not self.slots:
            self.owner.lends.discard(self)
            for other in self.others:
                other.borrows.discard(self)
