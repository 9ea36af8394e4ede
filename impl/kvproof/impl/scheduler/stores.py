"""Offers to the tier, and the stores of what it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvproof.impl.scheduler.geometry import Geometry, Group, Kind
from kvproof.impl.scheduler.jobs import Job
from kvproof.impl.scheduler.ledger import Ledger
from kvproof.impl.scheduler.loads import keys_of
from kvproof.impl.scheduler.plan import Plan, Step, Transfer
from kvproof.impl.scheduler.request import RequestState
from kvproof.impl.scheduler.storing import (
    Chunk,
    chunks_on_offer,
    due,
    last_chunk,
    read_blocks,
)
from kvproof.impl.scheduler.views import Room, Tables


@dataclass(frozen=True, slots=True)
class Ending:
    """A request that has ended and may still have chunks to offer, from blocks just given up.

    ``tokens`` of it are computed; ``blocks`` is its last block table, per group.
    """

    state: RequestState
    tokens: int
    blocks: Sequence[Sequence[int]]


class Stores:
    """Plans what leaves the GPU.

    Attributes:
        ending: requests that have ended since the last step.
        waiting: requests whose last offer was refused, by id.
    """

    def __init__(
        self, geometry: Geometry, ledger: Ledger, tables: Tables, prompt_only: bool
    ) -> None:
        self.geometry = geometry
        self.ledger = ledger
        self.tables = tables
        self.prompt_only = prompt_only
        self.ending: list[Ending] = []
        self.waiting: dict[str, RequestState] = {}

    def first_due(self) -> int:
        """The computed tokens at which a new request first has something to offer."""
        return due(self.geometry, [0] * len(self.geometry.groups))

    def restart(self, state: RequestState) -> None:
        """Offer everything again: the tier has forgotten it."""
        state.cursors = [0] * len(self.geometry.groups)
        state.due = self.first_due()
        state.refused = state.settled = frozenset()
        self.waiting.pop(state.request.request_id, None)

    # --- a step ---

    def end(self, leased: set[int], plan: Plan) -> None:
        """Offer what ended requests have left, flush what is overwritten at once, say goodbye."""
        ending, self.ending = self.ending, []
        for end in ending:
            state = end.state
            self.waiting.pop(state.request.request_id, None)
            job = self.offer(state, end.tokens, end.blocks, plan)
            # The blocks are free: whoever got one in this step will write it in this step.
            if job is not None and not leased.isdisjoint(job.blocks):
                plan.flush.add(job.number)
            self._touch(state, end.tokens)
            self.ledger.tier.finished_request(state.context)
            self.ledger.forget_request(state.request.request_id)

    def _touch(self, state: RequestState, tokens: int) -> None:
        """What a repeat of the request will need was used now, heads last to leave (E7)."""
        tokens = self._storable(state, tokens)
        for group in self.geometry.groups:
            last = min(
                tokens // group.tokens_per_chunk,
                len(state.request.block_hashes) // group.hashes_per_chunk,
            )
            boundary = last * group.tokens_per_chunk
            if boundary:
                first = group.first_needed(boundary) // group.tokens_per_chunk
                self.ledger.tier.touch(keys_of(state.request, group, first, last), state.context)

    # --- offers ---

    def offer(
        self,
        state: RequestState,
        computed: int,
        ended: Sequence[Sequence[int]] | None,
        plan: Plan,
    ) -> Job | None:
        """Offer the chunks that are complete with ``computed`` tokens; the job, if any.

        ``ended`` is the last block table of a request that has ended.
        """
        tokens = self._storable(state, computed)
        reached: list[int] = []
        chunks: list[Chunk] = []
        for group in self.geometry.groups:
            cursor, found = self._chunks(state, group, tokens, ended)
            reached.append(cursor)
            chunks += found
        state.due = due(self.geometry, reached)
        unchanged = self.ledger.room == state.refused_at
        waiting: list[Chunk] = []
        fresh: list[Chunk] = []
        for chunk in chunks:
            if chunk.key not in state.settled:
                again = unchanged and chunk.key in state.refused
                (waiting if again else fresh).append(chunk)
        room, refused = self._ask(state, fresh)
        self._settle(state, reached, chunks, waiting + refused)
        return self._store(state, fresh, room, plan) if room is not None else None

    def _settle(
        self,
        state: RequestState,
        reached: list[int],
        chunks: Sequence[Chunk],
        refused: Sequence[Chunk],
    ) -> None:
        """Move the cursors past all but what was refused, which waits for room to change (M6)."""
        for chunk in refused:
            reached[chunk.group.place] = min(reached[chunk.group.place], chunk.index)
        state.cursors = reached
        state.refused = frozenset(chunk.key for chunk in refused)
        beyond = (chunk.key for chunk in chunks if refused and chunk.key not in state.refused)
        state.settled = frozenset(beyond)
        state.refused_at = self.ledger.room
        if refused:
            self.ledger.counts["refused_offers"] += 1
            self.waiting[state.request.request_id] = state
        else:
            self.waiting.pop(state.request.request_id, None)

    def _storable(self, state: RequestState, computed: int) -> int:
        """Up to which position chunks may be stored."""
        request = state.request
        tokens = min(computed, request.num_tokens)
        if self.prompt_only:
            tokens = min(tokens, request.num_prompt_tokens)
        if state.limits.max_store is not None:
            tokens = min(tokens, state.limits.max_store)
        return tokens

    def _chunks(
        self,
        state: RequestState,
        group: Group,
        tokens: int,
        ended: Sequence[Sequence[int]] | None,
    ) -> tuple[int, list[Chunk]]:
        """How far a group's cursor gets, and the chunks on the way that can be stored."""
        request, first = state.request, state.cursors[group.place]
        last = last_chunk(
            group, tokens, len(request.block_hashes), request.num_prompt_tokens, ended is not None
        )
        if group.kind is Kind.RECURRENT:
            # States are handed over while the request runs; its last one is in the last block.
            if ended is None or tokens % group.tokens_per_chunk or last < 1:
                return first, []
            first = max(first, last - 1)
        if last <= first:
            return first, []
        per = group.blocks_per_chunk
        if ended is None:
            blocks: Sequence[int] = read_blocks(self.tables, request.request_id, group, first, last)
        else:
            blocks = ended[group.place][first * per : last * per]
        chunks = chunks_on_offer(
            group,
            request.block_hashes,
            blocks,
            first,
            self.geometry.alignment,
            self.ledger.tier.closed,
        )
        return first + len(blocks) // per, chunks

    def _ask(self, state: RequestState, chunks: list[Chunk]) -> tuple[Room | None, list[Chunk]]:
        """Ask for room, for less of it while there is none: what was granted, what was refused."""
        refused: list[Chunk] = []
        offer = chunks
        while offer:
            room = self.ledger.tier.prepare_store([chunk.key for chunk in offer], state.context)
            if room is not None:
                return room, refused
            # The first half by position: a prefix is of use without what follows it.
            by_end = sorted(offer, key=lambda c: (c.index + 1) * c.group.tokens_per_chunk)
            kept = {chunk.key for chunk in by_end[: len(offer) // 2]}
            refused += [chunk for chunk in offer if chunk.key not in kept]
            offer = [chunk for chunk in offer if chunk.key in kept]
        return None, refused

    # --- stores ---

    def _store(
        self, state: RequestState, offer: Sequence[Chunk], room: Room, plan: Plan
    ) -> Job | None:
        """Issue the store of what the tier takes of an offer."""
        self.ledger.gone(room.evicted)
        if not room.keys:
            return None
        taken = set(room.keys)
        blocks: list[int] = []
        sizes = [0] * len(self.geometry.groups)
        firsts = [0] * len(self.geometry.groups)
        for chunk in offer:
            if chunk.key not in taken:
                continue
            place = chunk.group.place
            if not sizes[place]:
                firsts[place] = chunk.index * chunk.group.blocks_per_chunk + chunk.missing
            sizes[place] += len(chunk.blocks)
            blocks += chunk.blocks
            if chunk.missing:
                self.ledger.coverage[chunk.key] = chunk.missing
        return self._issue(state, room, blocks, sizes, firsts, plan)

    def _issue(
        self,
        state: RequestState,
        room: Room,
        blocks: list[int],
        sizes: list[int],
        firsts: list[int],
        plan: Plan,
    ) -> Job:
        request_id = state.request.request_id
        job = self.ledger.issue_store(request_id, list(room.keys), state.context, blocks)
        plan.stores[job.number] = Transfer(request_id, blocks, sizes, firsts, room.place)
        return job

    def store_states(self, state: RequestState, step: Step, plan: Plan) -> None:
        """Store the recurrent states that the engine hands over, each at its boundary (S9)."""
        request = state.request
        most = self._storable(state, request.num_tokens)
        for number, block, tokens in step.handed[request.request_id]:
            group = next((g for g in self.geometry.groups if g.index == number), None)
            if group is None or not block or tokens > most:
                continue
            last, rest = divmod(tokens, group.tokens_per_chunk)
            if rest or last * group.hashes_per_chunk > len(request.block_hashes):
                continue
            keys = keys_of(request, group, last - 1, last)
            room = self.ledger.tier.prepare_store(keys, state.context)
            if room is None:
                self.ledger.counts["refused_offers"] += 1
                continue
            state.cursors[group.place] = max(state.cursors[group.place], last)
            chunk = Chunk(group, last - 1, keys[0], [block], group.blocks_per_chunk - 1)
            self._store(state, [chunk], room, plan)
