"""Offers to the tier, and the stores of what it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvproof.impl.scheduler.geometry import Geometry, Kind
from kvproof.impl.scheduler.jobs import Job
from kvproof.impl.scheduler.ledger import Ledger
from kvproof.impl.scheduler.loads import keys_of
from kvproof.impl.scheduler.plan import Plan, Step, Transfer
from kvproof.impl.scheduler.request import RequestState
from kvproof.impl.scheduler.storing import NEVER, Chunk, chunks_on_offer, due, grain, last_chunk
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
        self._grains = [grain(group, geometry.alignment) for group in geometry.groups]
        self._partial = ledger.tier.closed

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
            job = self.offer(state, end.tokens, end.blocks, plan)
            # The blocks are free: whoever got one in this step will write it in this step.
            if job is not None and not leased.isdisjoint(job.blocks):
                plan.flush.add(job.number)
            self._touch(state, end.tokens)
            self.ledger.tier.finished_request(state.context)
            self.ledger.forget_request(state.request.request_id)

    def _touch(self, state: RequestState, tokens: int) -> None:
        """What a repeat of the request will need was used now, heads last to leave (E7)."""
        tokens = min(tokens, state.request.num_tokens, self._most(state))
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
        most = self._most(state)
        tokens = min(computed, state.request.num_tokens, most)
        reached: list[int] = []
        chunks = self._collect(state, tokens, ended, reached)
        state.due = due(self.geometry, reached, tokens, most)
        fresh, waiting = self._sift(state, chunks) if state.refused else (chunks, [])
        room, refused = self._ask(state, fresh)
        if waiting or refused:
            self._wait(state, reached, chunks, waiting + refused)
            if ended is None:
                self.waiting[state.request.request_id] = state
        else:
            self._accepted(state)
        state.cursors = reached
        return self._store(state, fresh, room, plan) if room is not None else None

    def _sift(
        self, state: RequestState, chunks: Sequence[Chunk]
    ) -> tuple[list[Chunk], list[Chunk]]:
        """What to offer now, and what was refused and waits for room to change (M6)."""
        unchanged = self.ledger.room == state.refused_at
        fresh: list[Chunk] = []
        waiting: list[Chunk] = []
        for chunk in chunks:
            if chunk.key not in state.settled:
                again = unchanged and chunk.key in state.refused
                (waiting if again else fresh).append(chunk)
        return fresh, waiting

    def _accepted(self, state: RequestState) -> None:
        """Nothing of a request waits for room."""
        if state.refused:
            state.refused = state.settled = frozenset()
            # Under the id of a request that has ended, another one may be waiting.
            if self.waiting.get(state.request.request_id) is state:
                del self.waiting[state.request.request_id]

    def _wait(
        self,
        state: RequestState,
        reached: list[int],
        chunks: Sequence[Chunk],
        refused: Sequence[Chunk],
    ) -> None:
        """Hold the cursors back at what was refused, which waits for room to change (M6)."""
        for chunk in refused:
            reached[chunk.group.place] = min(reached[chunk.group.place], chunk.number)
        state.refused = frozenset(chunk.key for chunk in refused)
        state.settled = frozenset(c.key for c in chunks if c.key not in state.refused)
        state.refused_at = self.ledger.room
        self.ledger.counts["refused_offers"] += 1

    def _most(self, state: RequestState) -> int:
        """Up to which position chunks may be stored at all."""
        most = state.request.num_prompt_tokens if self.prompt_only else NEVER
        cap = state.limits.max_store
        return most if cap is None else min(most, cap)

    def _collect(
        self,
        state: RequestState,
        tokens: int,
        ended: Sequence[Sequence[int]] | None,
        reached: list[int],
    ) -> list[Chunk]:
        """The chunks that can be stored from the cursors on; ``reached`` is where these get to."""
        request = state.request
        hashes = request.block_hashes
        drafting = ended is None and tokens > request.num_prompt_tokens
        found: list[Chunk] = []
        for group, first in zip(self.geometry.groups, state.cursors, strict=True):
            last = last_chunk(group, tokens, len(hashes), drafting)
            if last > first and group.kind is Kind.RECURRENT:
                # States are handed over while the request runs; its last one is in the last block.
                ends = ended is not None and tokens % group.tokens_per_chunk == 0
                first, last = (last - 1, last) if ends else (first, first)
            if last > first:
                per = group.blocks_per_chunk
                blocks: Sequence[int]
                if ended is None:
                    blocks = self.tables.blocks(
                        request.request_id, group.index, first * per, last * per
                    )
                else:
                    blocks = ended[group.place][first * per : last * per]
                found += chunks_on_offer(
                    group, hashes, blocks, first, self._grains[group.place], self._partial
                )
                first += len(blocks) // per
            reached.append(first)
        return found

    def _ask(self, state: RequestState, chunks: list[Chunk]) -> tuple[Room | None, list[Chunk]]:
        """Ask for room, for less of it while there is none: what was granted, what was refused."""
        refused: list[Chunk] = []
        offer = chunks
        while offer:
            room = self.ledger.tier.prepare_store([chunk.key for chunk in offer], state.context)
            if room is not None:
                return room, refused
            # The first half by position: a prefix is of use without what follows it.
            by_end = sorted(offer, key=lambda c: (c.number + 1) * c.group.tokens_per_chunk)
            kept = {chunk.key for chunk in by_end[: len(offer) // 2]}
            refused += [chunk for chunk in offer if chunk.key not in kept]
            offer = [chunk for chunk in offer if chunk.key in kept]
        return None, refused

    # --- stores ---

    def _store(
        self, state: RequestState, offer: Sequence[Chunk], room: Room, plan: Plan
    ) -> Job | None:
        """Issue the store of what the tier takes of an offer."""
        if room.evicted:
            self.ledger.gone(room.evicted)
        if not room.keys:
            return None
        # Most often all of them, and then there is nothing to pick.
        if len(room.keys) < len(offer):
            taken = set(room.keys)
            offer = [chunk for chunk in offer if chunk.key in taken]
        blocks: list[int] = []
        sizes = [0] * len(self.geometry.groups)
        firsts = [0] * len(self.geometry.groups)
        for group, number, key, own, missing in offer:
            place = group.place
            if not sizes[place]:
                firsts[place] = number * group.blocks_per_chunk + missing
            sizes[place] += len(own)
            blocks += own
            if missing:
                self.ledger.coverage[key] = missing
        request_id = state.request.request_id
        job = self.ledger.issue_store(request_id, room.keys, state.context, blocks)
        plan.stores[job.number] = Transfer(request_id, blocks, sizes, firsts, room.place)
        return job

    def store_states(self, state: RequestState, step: Step, plan: Plan) -> None:
        """Store the recurrent states that the engine hands over, each at its boundary (S9)."""
        request = state.request
        most = min(request.num_tokens, self._most(state))
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
