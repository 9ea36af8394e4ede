"""Slots from the one used longest ago to the one used last; a use is O(1) a slot.

A doubly linked list in two lists of slot numbers. What one user uses is a *segment*, a run without
gaps: it moves to the young end as a whole whenever that user comes back, because a use lasts as
long as its user. Inside a segment, the *chained* slots are a prefix whose head leaves last, in
whichever order they came, and all of them leave before the others. What several use stands in the
segment of the one that came last, and that segment is younger than theirs: of a prefix it has the
head.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from operator import attrgetter

from kvproof.impl.tier.segments import NONE, Group, Segment

UNCHAINED = -1
"""The rank of a slot that is of use without those before it."""


class Order:
    """Slots in the order of their last use.

    Slots that are held keep their places, and are passed over where the next one to leave is looked
    for. Few stand there: what is held was used lately, so it is young.

    Args:
        pins: by slot, 0 when it may leave.
        ranks: by slot, how far along in its prefix a chained one is; ``UNCHAINED`` for the others.
            Both are read, never written.
    """

    def __init__(self, pins: Sequence[int], ranks: Sequence[int]) -> None:
        self._pins, self._ranks = pins, ranks
        # The list is a circle through one place that is no slot.
        self._root = len(pins)
        self._segments: dict[Hashable, Segment] = {}
        self._users = 0
        self.clear()

    def clear(self) -> None:
        """Nothing is here; who is using something, and who came when, stays known."""
        root = self._root
        self._younger = [*[0] * root, root]
        self._older = [*[0] * root, root]
        self._segment: list[Segment | None] = [None] * root
        self._group: list[Group | None] = [None] * root
        self._segments = {user: Segment(own.number) for user, own in self._segments.items()}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __contains__(self, slot: int) -> bool:
        return self._segment[slot] is not None

    def __iter__(self) -> Iterator[int]:
        """The oldest first."""
        slot = self._younger[self._root]
        while slot != self._root:
            yield slot
            slot = self._younger[slot]

    # --- uses ---

    def use(self, slots: Iterable[int], user: Hashable) -> None:
        """A user uses slots, new ones or ones that are here; all that it uses becomes young.

        Chained ones take their place in the prefix; the others leave after all else.
        """
        mine = self._refreshed(user)
        segment, groups, ranks = self._segment, self._group, self._ranks
        made: dict[Group | Segment | None, Group] = {}
        near = NONE
        changed: list[int] = []
        for slot in slots:
            owner, rank = segment[slot], ranks[slot]
            if owner is None:
                self._size += 1
            elif owner is mine:
                if rank != UNCHAINED:
                    continue
                self._unlink(slot, owner)
            elif owner.number > mine.number:
                # It will be in use for longer, so it stays where it is.
                if (group := groups[slot]) is None or mine not in group.others:
                    self._share(slot, owner, mine, made)
                    changed.append(slot)
                continue
            else:
                self._unlink(slot, owner)
                if owner.number:
                    self._share(slot, mine, owner, made)
            self._join(mine, slot, rank, near)
            if rank != UNCHAINED:
                changed.append(slot)
                near = slot
        if made or mine.lends:
            self._spread(changed)
        # A segment that was empty begins at the young end, above those that it borrows from.
        if mine.borrows and (made or self._older[self._root] == mine.young):
            self._raise(mine)

    def _share(
        self,
        slot: int,
        owner: Segment,
        other: Segment,
        made: dict[Group | Segment | None, Group],
    ) -> None:
        """A slot is to stand with ``owner``; ``other`` uses it, too, and who has used it so far.

        ``made`` has the groups of slots that went this way, by what they were part of before.
        """
        earlier = self._group[slot]
        known = earlier or self._segment[slot]
        if known not in made:
            made[known] = Group(owner, [other, *(earlier.living() if earlier else ())])
        self._regroup(slot, made[known])

    def _regroup(self, slot: int, group: Group | None) -> None:
        """Note who uses a slot beside its owner."""
        earlier = self._group[slot]
        if group is not None:
            group.slots += 1
        self._group[slot] = group
        if earlier is not None:
            earlier.leave()

    def _spread(self, slots: list[int]) -> None:
        """Whoever uses a chained slot also uses what is before it in the prefix.

        Args:
            slots: those that have come to a segment, or to a user more, from head to tail.
        """
        segment, groups, ranks = self._segment, self._group, self._ranks
        made: dict[tuple[Group, Group], Group] = {}
        for slot in reversed(slots):
            own = segment[slot]
            if own is None or ranks[slot] == UNCHAINED:
                continue
            if slot != own.old:
                self._inherit(slot, groups[self._older[slot]], made)
            while (group := groups[slot]) is not None and slot != own.young:
                slot = self._younger[slot]
                if ranks[slot] == UNCHAINED or not self._inherit(slot, group, made):
                    break

    def _inherit(
        self, slot: int, group: Group | None, made: dict[tuple[Group, Group], Group]
    ) -> bool:
        """Whether a slot has more users with those of a slot behind it."""
        earlier = self._group[slot]
        if group is None or group is earlier:
            return False
        if earlier is None:
            self._regroup(slot, group)
            return True
        users = earlier.living()
        if users >= group.living():
            return False
        if (earlier, group) not in made:
            made[earlier, group] = Group(group.owner, users | group.living())
        self._regroup(slot, made[earlier, group])
        return True

    def _join(self, mine: Segment, slot: int, rank: int, near: int = NONE) -> None:
        """Let a slot take its place in a segment, most often right behind ``near``."""
        older, younger = self._older, self._younger
        above = self._above(mine, slot, rank, near)
        below = older[above]
        older[above] = younger[below] = slot
        older[slot] = below
        younger[slot] = above
        self._segment[slot] = mine

    def _above(self, mine: Segment, slot: int, rank: int, near: int) -> int:
        """The next younger neighbour of a slot that joins a segment; its ends follow."""
        if mine.old == NONE:
            mine.young = mine.old = slot
            return self._root
        if rank == UNCHAINED:
            above, mine.young = self._younger[mine.young], slot
            return above
        above, ranks = mine.old, self._ranks
        if ranks[above] <= rank:
            mine.old = slot
            return above
        # What follows it in the prefix is here already: most often a request was put back. So it
        # stands above the oldest, and what comes with it stands there, too.
        if near != NONE and UNCHAINED < ranks[near] <= rank:
            older = self._older
            while ranks[older[near]] <= rank:
                near = older[near]
            return near
        while ranks[above] > rank and above != mine.young:
            above = self._younger[above]
        if ranks[above] > rank:
            above, mine.young = self._younger[above], slot
        return above

    def touch(self, slots: Sequence[int], user: Hashable) -> None:
        """A user uses slots; of all that it uses the first leaves last."""
        self.use(self._ascending(reversed(slots)), user)

    def _ascending(self, slots: Iterable[int]) -> list[int]:
        """Slots in an order in which each takes its place quickly, and the same place as before.

        Chained ones from head to tail, given from tail to head; the others as they come.
        """
        ranks, found = self._ranks, list(slots)
        chained = [slot for slot in found if ranks[slot] != UNCHAINED]
        if not chained:
            return found
        chained.reverse()
        return [*chained, *(slot for slot in found if ranks[slot] == UNCHAINED)]

    def begin(self, user: Hashable) -> None:
        """A user comes; what several use stays with the one that came last."""
        self.forget(user)
        self._users += 1
        self._segments[user] = Segment(self._users)

    def forget(self, user: Hashable) -> None:
        """A user has ended; what it used stays where it is, or goes to others that use it still.

        Those become young with it, or it would leave before what its user leaves behind.
        """
        ended = self._segments.pop(user, None)
        if ended is None:
            return
        ended.number = 0
        heirs: dict[Group, Segment] = {}
        left: dict[Group, Group | None] = {}
        near: dict[Segment, int] = {}
        moved: list[int] = []
        # In an order in which they keep theirs.
        for slot in self._ascending(self._of(ended)) if ended.lends else ():
            group = self._group[slot]
            if group is None:
                continue
            if group not in left:
                living = group.living()
                left[group] = None
                if living:
                    heir = heirs[group] = max(living, key=attrgetter("number"))
                    living.remove(heir)
                    left[group] = Group(heir, living) if living else None
            if group in heirs:
                heir = heirs[group]
                self._unlink(slot, ended)
                self._join(heir, slot, self._ranks[slot], near.get(heir, NONE))
                if self._ranks[slot] != UNCHAINED:
                    near[heir] = slot
                    moved.append(slot)
            self._regroup(slot, left[group])
        self._spread(moved)
        for heir in sorted(set(heirs.values()), key=attrgetter("number")):
            self._raise(heir)

    def _of(self, segment: Segment) -> Iterator[int]:
        """The slots of a segment, the oldest first."""
        slot = segment.old
        while slot != NONE:
            yield slot
            slot = NONE if slot == segment.young else self._younger[slot]

    def _refreshed(self, user: Hashable) -> Segment:
        """A user's segment, at the young end."""
        if user not in self._segments:
            self.begin(user)
        segment = self._segments[user]
        self._raise(segment)
        return segment

    def _raise(self, segment: Segment) -> None:
        """A segment becomes young, and those above it in which slots of its user stand."""
        self._to_young_end(segment)
        if segment.borrows:
            for lender in segment.lenders():
                self._to_young_end(lender)

    def _to_young_end(self, segment: Segment) -> None:
        older, root, young = self._older, self._root, segment.young
        top = older[root]
        if young != top and young != NONE:
            younger, old = self._younger, segment.old
            above, below = younger[young], older[old]
            older[above], younger[below] = below, above
            older[root], younger[young] = young, root
            older[old], younger[top] = top, old

    # --- leaving ---

    def oldest(self, count: int, spared: Collection[int], user: Hashable, own: bool) -> list[int]:
        """So many slots that may leave, or all, the oldest first.

        Args:
            count: how many at most.
            spared: slots that must not leave.
            user: who needs room; what it uses becomes young with this.
            own: whether what it uses itself may leave, too.
        """
        mine = self._refreshed(user)
        pins, younger, groups, root = self._pins, self._younger, self._group, self._root
        found: list[int] = []
        slot = younger[root]
        while slot != root and len(found) < count:
            if not own and self._segment[slot] is mine:
                slot = younger[mine.young]
                continue
            if not pins[slot] and slot not in spared:
                group = groups[slot]
                if own or group is None or mine not in group.others:
                    found.append(slot)
            slot = younger[slot]
        return found

    def remove(self, slots: Iterable[int]) -> None:
        """Slots are here no more."""
        for slot in slots:
            self._unlink(slot, self._segment[slot])
            self._regroup(slot, None)
            self._segment[slot] = None
            self._size -= 1

    # --- the list ---

    def _unlink(self, slot: int, segment: Segment | None) -> None:
        """Take a slot out from between its neighbours; ``segment`` is its own.

        Raises:
            LookupError: it is not here.
        """
        if segment is None:
            raise LookupError(f"slot {slot} is not in this order")
        above, below = self._younger[slot], self._older[slot]
        self._older[above], self._younger[below] = below, above
        if segment.young == slot:
            if segment.old == slot:
                segment.young = segment.old = NONE
            else:
                segment.young = below
        elif segment.old == slot:
            segment.old = above
