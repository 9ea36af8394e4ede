"""Recurrent states: stored as they are handed over, and offered again while they are there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kvproof.impl.scheduler.geometry import Geometry, Group, Kind
from kvproof.impl.scheduler.jobs import Job
from kvproof.impl.scheduler.keys import keys_of
from kvproof.impl.scheduler.ledger import Ledger
from kvproof.impl.scheduler.plan import Plan
from kvproof.impl.scheduler.recency import Recency
from kvproof.impl.scheduler.request import RequestState
from kvproof.impl.scheduler.storing import Chunk
from kvproof.impl.scheduler.views import Key, Room, Tables

Ask = Callable[[RequestState, Sequence[Key], Sequence[int]], Room | None]
"""Offers keys of chunks with these ends to the tier; None when there is no room."""

Issue = Callable[[RequestState, Sequence[Chunk], Room, Plan], Job | None]
"""Issues the store of what the tier takes of an offer."""


class States:
    """Offers states one by one: each has its own place in its chunk."""

    def __init__(
        self,
        geometry: Geometry,
        ledger: Ledger,
        recency: Recency,
        tables: Tables,
        ask: Ask,
        issue: Issue,
    ) -> None:
        self._groups = geometry.groups
        self._ledger = ledger
        self._recency = recency
        self._tables = tables
        self._ask = ask
        self._issue = issue

    def hand_over(
        self, state: RequestState, handed: Sequence[tuple[int, int, int]], most: int, plan: Plan
    ) -> None:
        """Store states that the engine hands over, each at its boundary (S9).

        Args:
            state: whose they are.
            handed: (group, block, tokens that the state is of) of each.
            most: states of more tokens are not stored.
            plan: where their stores go.
        """
        for number, block, tokens in handed:
            group = next((g for g in self._groups if g.index == number), None)
            if group is None or not block or tokens > most:
                continue
            last, rest = divmod(tokens, group.tokens_per_chunk)
            if rest or last * group.hashes_per_chunk > len(state.request.block_hashes):
                continue
            state.cursors[group.place] = max(state.cursors[group.place], last)
            self._offer(state, group, last - 1, block, plan)

    def keep(self, state: RequestState, refused: Sequence[Chunk]) -> list[Chunk]:
        """Take the states out of what was refused: no cursor comes by them again."""
        others = []
        for chunk in refused:
            if chunk.group.kind is Kind.RECURRENT:
                at = chunk.group.place, chunk.number
                state.states[at] = chunk.blocks[-1], self._ledger.room
            else:
                others.append(chunk)
        return others

    def offer_again(
        self, state: RequestState, ended: Sequence[Sequence[int]] | None, plan: Plan
    ) -> list[Job]:
        """Offer the states that were refused, if room has changed and they are still there.

        A state that fills its block is not written any more, so it is there while the block is.
        ``ended`` is the last block table of a request that has ended.
        """
        jobs = []
        for (place, number), (block, refused_at) in list(state.states.items()):
            group = self._groups[place]
            at = (number + 1) * group.blocks_per_chunk - 1
            own = (
                self._tables.blocks(state.request.request_id, group.index, at, at + 1)
                if ended is None
                else ended[place][at : at + 1]
            )
            if list(own) != [block]:
                del state.states[place, number]
            elif refused_at != self._ledger.room:
                job = self._offer(state, group, number, block, plan)
                if job is not None:
                    jobs.append(job)
        return jobs

    def _offer(
        self, state: RequestState, group: Group, number: int, block: int, plan: Plan
    ) -> Job | None:
        self._recency.uses(state, group, number)
        keys = keys_of(state.request, group, number, number + 1)
        end = (number + 1) * group.tokens_per_chunk
        room = self._ask(state, keys, [end])
        if room is None:
            state.states[group.place, number] = block, self._ledger.room
            return None
        state.states.pop((group.place, number), None)
        chunk = Chunk(group, number, keys[0], [block], group.blocks_per_chunk - 1, end)
        return self._issue(state, [chunk], room, plan)
