"""Offers to the tier, and the stores of what it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from kvproof.impl.scheduler.geometry import Geometry, Kind
from kvproof.impl.scheduler.jobs import Job
from kvproof.impl.scheduler.ledger import Ledger
from kvproof.impl.scheduler.plan import Plan, Transfer
from kvproof.impl.scheduler.recency import Recency
from kvproof.impl.scheduler.request import RequestState
from kvproof.impl.scheduler.retention import Retention
from kvproof.impl.scheduler.states import States
from kvproof.impl.scheduler.storing import NEVER, Chunk, chunks_on_offer, due, grain, last_chunk
from kvproof.impl.scheduler.views import Key, Room, Tables


@dataclass(frozen=True, slots=True)
class StorePolicy:
    """What is worth storing.

    Attributes:
        prompt_only: no chunk that holds a generated token.
        retention: the engine's interval, in tokens; see ``Retention``.
        speculating: the engine computes drafts, so a state may be of fewer tokens than were
            computed: only those count that the engine hands over.
    """

    prompt_only: bool = False
    retention: int | None = None
    speculating: bool = False


@dataclass(frozen=True, slots=True)
class Ending:
    """A request that has ended and may still have chunks to offer, from blocks just given up.

    ``tokens`` of it are computed; ``blocks`` is its last block table, per group, with what it gave
    up since the last step.
    """

    state: RequestState
    tokens: int
    blocks: Sequence[Sequence[int]]


class Stores:
    """Plans what leaves the GPU.

    Attributes:
        ending: requests that have ended since the last step.
        waiting: requests whose last offer was refused, by id.
        open: by id, the blocks of windowed groups whose chunks are complete and not offered, as
            they were when a step last computed tokens of the request: place of the group -> (first
            position, block ids).
    """

    def __init__(
        self,
        geometry: Geometry,
        ledger: Ledger,
        recency: Recency,
        tables: Tables,
        policy: StorePolicy,
    ) -> None:
        self.geometry = geometry
        self.ledger = ledger
        self.recency = recency
        self.tables = tables
        self.policy = policy
        self.ending: list[Ending] = []
        self.waiting: dict[str, RequestState] = {}
        self.open: dict[str, dict[int, tuple[int, Sequence[int]]]] = {}
        self._states = States(geometry, ledger, recency, tables, self._ask_tier, self._store)
        self._retention = Retention.of(geometry, policy.retention)
        # What is handed over then ends with a block, which need not be the end of a chunk.
        self._watches_states = self._retention is not None and any(
            group.blocks_per_chunk > 1 for group in geometry.groups
        )
        self._grains = [grain(group, geometry.alignment) for group in geometry.groups]
        self._partial = geometry.alignment if ledger.tier.closed else 0
        self._sliding = [g for g in geometry.groups if g.kind in (Kind.WINDOW, Kind.CHUNKED)]
        # Of these groups every chunk is one block, and worth a slot.
        self._plain = [
            group.blocks_per_chunk == 1
            and group.kind is not Kind.RECURRENT
            and not alignment
            and self._retention is None
            for group, alignment in zip(geometry.groups, self._grains, strict=True)
        ]

    def first_due(self) -> int:
        """The computed tokens at which a new request first has something to offer."""
        return self._due([0] * len(self.geometry.groups))

    def _due(self, cursors: Sequence[int], tokens: int = 0, most: int = NEVER) -> int:
        return due(self.geometry, cursors, tokens, most, self._watches_states)

    def restart(self, state: RequestState) -> None:
        """Offer everything again: the tier has forgotten it."""
        state.cursors = [0] * len(self.geometry.groups)
        # The request may end before that.
        self.remember(state, NEVER)
        state.due = self.first_due()
        state.refused, state.settled = {}, frozenset()
        state.states.clear()
        self.waiting.pop(state.request.request_id, None)

    # --- a step ---

    def put_back(self, state: RequestState) -> None:
        """A request has lost its blocks.

        When it is taken up again it may share blocks of windows that slid away, in its first run,
        while there was no room for them.
        """
        for group in self._sliding:
            state.cursors[group.place] = 0
        state.settled = frozenset()
        self.open.pop(state.request.request_id, None)

    def started(self, state: RequestState) -> None:
        """A request is taken up, perhaps again: what it computes once more is offered once more."""
        computed = state.request.num_computed_tokens
        groups = self.geometry.groups
        back = [
            min(cursor, computed // group.tokens_per_chunk)
            for cursor, group in zip(state.cursors, groups, strict=True)
        ]
        state.states.clear()
        self.open.pop(state.request.request_id, None)
        # Also when the cursors stay: a session that goes on has a longer prompt.
        state.due = self._due(back)
        if back != state.cursors:
            state.cursors = back
            # What was refused goes on waiting for room (E6).
            state.settled = frozenset()
        self._wait_no_more(state)

    def end(self, leased: set[int], plan: Plan) -> None:
        """Offer what ended requests have left, flush what is overwritten at once, say goodbye."""
        while self.ending:
            end = self.ending[0]
            state = end.state
            jobs = self.offer_states(state, end.blocks, plan)
            jobs += self.offer(state, end.tokens, end.blocks, plan)
            if self.may_be_taken(state):
                # What was taken just now has made room, and there is no other time.
                jobs += self.offer(state, end.tokens, end.blocks, plan)
            # The blocks are free: whoever got one in this step will write it in this step.
            plan.flush.update(job.number for job in jobs if not leased.isdisjoint(job.blocks))
            self.recency.conclude(state, self._storable(state, end.tokens))
            self.recency.leave(state)
            del self.ending[0]
            self.ledger.tier.finished_request(state.context)
            self.ledger.forget_request(state.request.request_id)

    def _storable(self, state: RequestState, computed: int) -> int:
        """How many of ``computed`` tokens are known and may be stored."""
        return min(computed, state.request.num_tokens, self._most(state))

    # --- offers ---

    def offer(
        self,
        state: RequestState,
        computed: int,
        ended: Sequence[Sequence[int]] | None,
        plan: Plan,
    ) -> list[Job]:
        """Offer the chunks that are complete with ``computed`` tokens; the jobs, if any.

        ``ended`` is the last block table of a request that has ended.
        """
        most = self._most(state)
        known = min(computed, state.request.num_tokens)
        tokens = min(known, most)
        # What a drafter wrote for a generated token is rewritten until the next one is known.
        unsettled = ended is None and known > state.request.num_prompt_tokens
        drafted = min(known - 1, most) if unsettled else tokens
        reached: list[int] = []
        chunks = self._collect(state, tokens, drafted, tokens == computed, ended, reached)
        state.due = self._due(reached, tokens, most)
        fresh, waiting = self._sift(state, chunks) if state.refused else (chunks, [])
        jobs, refused = self._ask(state, fresh, plan)
        if ended is None:
            refused = self._states.keep(state, refused)
        if state.refused or refused:
            self._wait(state, reached, chunks, waiting, refused)
        if ended is None and (state.refused or state.states):
            self.waiting[state.request.request_id] = state
        state.cursors = reached
        if ended is None and self._sliding:
            self.remember(state, computed)
        return jobs

    def remember(self, state: RequestState, computed: int) -> None:
        """Remember the blocks of what ``computed`` tokens complete and nobody has offered.

        The engine takes what a window has left out of the table before it tells of an end.
        """
        request_id, most = state.request.request_id, self._most(state)
        found: dict[int, tuple[int, Sequence[int]]] = {}
        for group in self._sliding:
            first, last = state.cursors[group.place], min(computed, most) // group.tokens_per_chunk
            if first < last:
                first, last = first * group.blocks_per_chunk, last * group.blocks_per_chunk
                found[group.place] = (
                    first,
                    self.tables.blocks(request_id, group.index, first, last),
                )
        if found:
            self.open[request_id] = found
        else:
            self.open.pop(request_id, None)

    def _sift(
        self, state: RequestState, chunks: Sequence[Chunk]
    ) -> tuple[list[Chunk], list[Chunk]]:
        """What to offer now, and what was refused and waits for room to change (M6)."""
        room, refused = self.ledger.room, state.refused
        fresh: list[Chunk] = []
        waiting: list[Chunk] = []
        for chunk in chunks:
            if chunk.key not in state.settled:
                (waiting if refused.get(chunk.key) == room else fresh).append(chunk)
        return fresh, waiting

    def may_be_taken(self, state: RequestState) -> bool:
        """Whether room has changed since something of a request was refused."""
        room = self.ledger.room
        return any(refused_at != room for refused_at in state.refused.values())

    def _wait_no_more(self, state: RequestState) -> None:
        # Under the id of a request that has ended, another one may be waiting.
        request_id = state.request.request_id
        if not (state.refused or state.states) and self.waiting.get(request_id) is state:
            del self.waiting[request_id]

    def _wait(
        self,
        state: RequestState,
        reached: list[int],
        chunks: Sequence[Chunk],
        waiting: Sequence[Chunk],
        refused: Sequence[Chunk],
    ) -> None:
        """Hold the cursors back at what was refused, which waits for room to change (M6).

        Args:
            state: whose chunks.
            reached: its cursors.
            chunks: all that might have been offered.
            waiting: those of them that were refused before, and not offered.
            refused: those that were refused now.
        """
        room, before = self.ledger.room, state.refused
        seen = {chunk.key for chunk in chunks}
        # What was refused of a request that was put back since is not seen until it is computed
        # again; while room has not changed it is not worth another offer then (E6).
        state.refused = {k: at for k, at in before.items() if at == room and k not in seen}
        state.refused |= {chunk.key: before[chunk.key] for chunk in waiting}
        state.refused |= dict.fromkeys((chunk.key for chunk in refused), room)
        for chunk in (*waiting, *refused):
            place = chunk.group.place
            reached[place] = min(reached[place], chunk.number)
        if waiting or refused:
            state.settled = frozenset(seen.difference(state.refused))
        elif not state.refused:
            state.settled = frozenset()
            self._wait_no_more(state)

    def _most(self, state: RequestState) -> int:
        """Up to which position chunks may be stored at all."""
        most = state.request.num_prompt_tokens if self.policy.prompt_only else NEVER
        cap = state.limits.max_store
        return most if cap is None else min(most, cap)

    def _collect(
        self,
        state: RequestState,
        tokens: int,
        drafted: int,
        exact: bool,
        ended: Sequence[Sequence[int]] | None,
        reached: list[int],
    ) -> list[Chunk]:
        """The chunks that can be stored from the cursors on; ``reached`` is where these get to.

        ``drafted``: as ``tokens``, in drafters' groups. ``exact``: ``tokens`` are all that is
        computed.
        """
        request, retention = state.request, self._retention
        request_id, hashes = request.request_id, request.block_hashes
        hashed = len(hashes)
        grains, partial, uses = self._grains, self._partial, self.recency.uses
        table, at = self.tables.blocks, self.tables.block
        found: list[Chunk] = []
        of_groups = zip(self.geometry.groups, state.cursors, self._plain, strict=True)
        for group, first, plain in of_groups:
            last = last_chunk(group, drafted if group.draft else tokens, hashed)
            if plain and last == first + 1 and ended is None:
                # As below, for the one chunk of one block that a decoding request completes.
                block = at(request_id, group.index, first)
                if block:
                    uses(state, group, first)
                    key = hashes[last * group.hashes_per_chunk - 1] + group.suffix
                    end = last * group.tokens_per_chunk
                    found.append(tuple.__new__(Chunk, (group, first, key, (block,), 0, end)))
                reached.append(first if block is None else last)
                continue
            if last > first and group.kind is Kind.RECURRENT:
                ends = exact and tokens == last * group.tokens_per_chunk
                first, last = self._latest_state(first, last, ends, ended is not None)
            if last > first:
                per = group.blocks_per_chunk
                blocks: Sequence[int]
                if ended is None:
                    blocks = table(request_id, group.index, first * per, last * per)
                else:
                    blocks = ended[group.place][first * per : last * per]
                chunks = chunks_on_offer(group, hashes, blocks, first, grains[group.place], partial)
                if retention is not None:
                    chunks = [c for c in chunks if retention.keeps(request, group, c.number)]
                if chunks:
                    uses(state, group, chunks[0].number)
                found += chunks
                first += len(blocks) // per
            reached.append(first)
        return found

    def _latest_state(self, first: int, last: int, ends: bool, ended: bool) -> tuple[int, int]:
        """The chunk, as [first, last), whose state a request's last computed block is sure to be.

        While the request runs, the engine hands states over; its last one nobody hands over.
        ``ends``: what is computed ends with chunk ``last - 1``.
        """
        if ends and (ended or self._watches_states) and not self.policy.speculating:
            return last - 1, last
        return (last, last) if self._watches_states else (first, first)

    def _ask(
        self, state: RequestState, chunks: list[Chunk], plan: Plan
    ) -> tuple[list[Job], list[Chunk]]:
        """Offer chunks, fewer while there is no room for all: their jobs, and what was refused.

        When it returns, all that was refused has been since room last changed.
        """
        jobs: list[Job] = []
        rest, size = chunks, len(chunks)
        while rest:
            whole = size == len(rest)
            offer = rest if whole else _heads(rest, size)
            # The columns of many named tuples, at a fraction of what their attributes cost.
            _, _, keys, _, _, ends = zip(*offer, strict=True)
            room = self._ask_tier(state, keys, ends)
            if room is not None:
                job = self._store(state, offer, room, plan)
                if job is not None:
                    jobs.append(job)
                if whole:
                    return jobs, []
                granted = set(keys)
                rest = [chunk for chunk in rest if chunk.key not in granted]
                size = len(rest)
            elif size == 1:
                break
            else:
                size //= 2
        return jobs, rest

    def _ask_tier(
        self, state: RequestState, keys: Sequence[Key], ends: Sequence[int]
    ) -> Room | None:
        """Offer keys, when nothing that is in use can be the first to leave for them."""
        self.recency.enter(state, len(keys), max(ends))
        self.recency.before_offer(len(keys))
        return self.ledger.ask(keys, ends, state.context)

    # --- stores ---

    def _store(
        self, state: RequestState, offer: Sequence[Chunk], room: Room, plan: Plan
    ) -> Job | None:
        """Issue the store of what the tier takes of an offer."""
        if room.evicted:
            self.ledger.gone(room.evicted)
        if not room.keys:
            self._use(state, offer)
            return None
        # Most often all of them, and then there is nothing to pick.
        if len(room.keys) < len(offer):
            taken = set(room.keys)
            self._use(state, [chunk for chunk in offer if chunk.key not in taken])
            offer = [chunk for chunk in offer if chunk.key in taken]
        blocks: list[int] = []
        sizes = [0] * len(self.geometry.groups)
        firsts = [0] * len(self.geometry.groups)
        for group, number, key, own, missing, _ in offer:
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

    def _use(self, state: RequestState, chunks: Sequence[Chunk]) -> None:
        """Chunks that were there already are in use again: older ones are to leave first (E7)."""
        by_end = sorted(chunks, key=attrgetter("end"))
        self.ledger.touch([chunk.key for chunk in by_end], state.context)

    # --- states ---

    def hand_over(
        self, state: RequestState, handed: Sequence[tuple[int, int, int]], plan: Plan
    ) -> None:
        """Store the recurrent states that the engine hands over."""
        most = min(state.request.num_tokens, self._most(state))
        self._states.hand_over(state, handed, most, plan)
        if state.states:
            self.waiting[state.request.request_id] = state

    def offer_states(
        self, state: RequestState, ended: Sequence[Sequence[int]] | None, plan: Plan
    ) -> list[Job]:
        """Offer the states again that were refused."""
        jobs = self._states.offer_again(state, ended, plan)
        self._wait_no_more(state)
        return jobs


def _heads(chunks: Sequence[Chunk], count: int) -> list[Chunk]:
    """The first chunks by position, in their own order: a prefix is of use without what follows."""
    by_end = sorted(chunks, key=attrgetter("end"))
    kept = {chunk.key for chunk in by_end[:count]}
    return [chunk for chunk in chunks if chunk.key in kept]
