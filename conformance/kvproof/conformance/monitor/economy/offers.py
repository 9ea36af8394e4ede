"""What is offered for storing: all that can be needed, once, and the same however steps are cut."""

from __future__ import annotations

import math
from collections.abc import Iterator

from kvproof.conformance.monitor.economy.geometry import Geometry
from kvproof.conformance.monitor.economy.lives import ENDS, Chunk, Life, Lives
from kvproof.conformance.monitor.lookup_readers import Move
from kvproof.conformance.monitor.world import World
from kvproof.conformance.trace import events as ev
from kvproof.model.contract import Content, Key, Lease, Request
from kvproof.model.functions import FULL, RECURRENT

Course = tuple[Content, int, int | None, int | None, tuple[int, int]]
"""What makes two requests the same: tokens, prompt, caps, and what they found at their start."""


class Offers:
    """Judges E3, E6 and E8.

    Attributes:
        ended: called with each life that has ended and been judged.
    """

    def __init__(self, world: World, geometry: Geometry, lives: Lives) -> None:
        self._world = world
        self._geometry = geometry
        self._lives = lives
        self._before: dict[Course, Life] = {}

    # --- offers ---

    def judge(self, event: ev.PrepareStore) -> Iterator[Move]:
        """An offer, before the tier takes it."""
        life = self._lives.get(event.req)
        if life is None:
            return
        if life.refused is not None and life.refused[0].issubset(event.keys):
            yield "judge_again", (life.r, self._lives.room, life.refused[1])
        where = self._world.reference.where
        for key in event.keys:
            chunk = self._chunk(key)
            if chunk is not None:
                k = self._world.key(key)
                yield "judge_twice", (life.r, k, life.fresh[chunk] if k in where else 0)

    def note(self, event: ev.PrepareStore) -> None:
        """What the tier said to it."""
        lives, life = self._lives, self._lives.get(event.req)
        if event.evicted:
            lives.change_room()
            lives.disturb()
        if event.refused:
            lives.disturb()
        else:
            lives.offered.update(self._world.key(key) for key in event.keys)
        if life is None:
            return
        chunks = [chunk for chunk in map(self._chunk, event.keys) if chunk is not None]
        if event.refused:
            life.steady = False
            life.refused = frozenset(event.keys), lives.room
            for chunk in chunks:
                life.refused_at[chunk] = lives.told
                life.refused_in[chunk] = event.step
                life.chances.pop(chunk, None)
        else:
            life.offers.update(chunks)
            life.fresh.update(chunks)
            life.open.difference_update(chunks)

    def answer(self, event: ev.Answer) -> None:
        """What was found, on the GPU or in the tier, and lies in the tier is present.

        A load up to the middle of a chunk has found all of it.
        """
        life = self._lives.get(event.req)
        if event.tokens is None or life is None:
            return
        reached = self._world.asked_from.get(life.r, 0) + event.tokens
        where = self._world.reference.where
        for group, sizes in enumerate(self._geometry.groups):
            for number in range(-(-reached // sizes.tokens_per_chunk)):
                if self._key(life.r, (group, number)) in where:
                    life.found.add((group, number))
        life.present |= life.found

    def _chunk(self, key: str) -> Chunk | None:
        """The chunk that a key names; None for a partial one."""
        group = int(key.rpartition(":")[2])
        number, rest = divmod(
            self._world.depth_named_by(key), self._geometry.groups[group].tokens_per_chunk
        )
        return (group, number - 1) if number and not rest else None

    def _key(self, r: Request, chunk: Chunk) -> Key | None:
        """The key of a request's chunk; None while the engine has no hash for it."""
        group, number = chunk
        end = (number + 1) * self._geometry.groups[group].tokens_per_chunk
        if end > self._world.hashed.get(r, 0):
            return None
        return self._world.key_of(self._world.marks[r][end], group)

    # --- chances ---

    def schedule(self, event: ev.Scheduled) -> Iterator[Move]:
        """A window closes: what its step completes could have been offered in it."""
        for computing in event.computing:
            life = self._lives.get(computing.req)
            if life is not None:
                if life.start is None:
                    life.start = self._world.asked_from.get(life.r, 0), computing.start
                life.states.add(computing.end)
                self._examine(life, computing.end, event.step)
        yield from self.judge_ends()

    def finish(self, event: ev.Finish) -> None:
        """A request ends: its blocks may still be stored within this window."""
        life = self._lives.get(event.req)
        if life is None:
            return
        # Scheduling ahead, a step is under way whose output will count for nothing.
        under_way = 1 if self._world.header.options.get("asynchronous") else 0
        ends = [end for step, end in life.forwards if step < event.step - under_way]
        life.horizon = self._world.limits[life.r].to_store(ends[-1] if ends else 0)
        life.steady = life.steady and event.status in ENDS
        if event.status in ENDS or event.status == "aborted":
            could, chances = set(life.could), life.chances.copy()
            self._examine(life, life.horizon, event.step)
            for chunk in (life.could - could) | (life.chances - chances).keys():
                life.last_chance[chunk] = self._leases(life.r, chunk)
            self._lives.ending.append(life)

    def _examine(self, life: Life, computed: int, step: int) -> None:
        for group, sizes in enumerate(self._geometry.groups):
            # What a drafter wrote for the last token may change until the next one is computed.
            complete = (computed - sizes.draft) // sizes.tokens_per_chunk
            life.open.update((group, n) for n in range(life.examined[group], complete))
            life.examined[group] = max(life.examined[group], complete)
        for chunk in list(life.open):
            self._visit(life, chunk, step)

    def _visit(self, life: Life, chunk: Chunk, step: int) -> None:
        key = self._key(life.r, chunk)
        if key is None:
            return
        held = self._is_held(life, chunk)
        if held:
            life.could.add(chunk)
        if key in self._world.reference.where:
            life.present.add(chunk)
        if not held or chunk in life.offers or chunk in life.present:
            life.open.discard(chunk)
        elif self._may_store(life, chunk) and life.refused_at.get(chunk, -1) < self._lives.told:
            # Requests have their turns: what changes after a refusal helps from the next window on.
            # What a manager of several tiers moves between them helps nobody who cannot know of it.
            life.chances[chunk] += life.refused_in.get(chunk) != step

    def _may_store(self, life: Life, chunk: Chunk) -> bool:
        """Whether the limits, as they are now, let a chunk be stored: a session's prompt grows."""
        group, number = chunk
        end = (number + 1) * self._geometry.groups[group].tokens_per_chunk
        return self._world.limits[life.r].to_store(end) >= end

    def _is_held(self, life: Life, chunk: Chunk) -> bool:
        """Whether the request has all blocks of a complete chunk; of a state, just that one."""
        group, number = chunk
        sizes = self._geometry.groups[group]
        count = sizes.blocks_per_chunk
        blocks = range(number * count, (number + 1) * count)
        if sizes.kind == RECURRENT:
            if (number + 1) * sizes.tokens_per_chunk not in life.states:
                return False
            blocks = blocks[-1:]
        table = self._world.tables.get(life.r, {}).get(group, {})
        return all(index in table for index in blocks)

    def _leases(self, r: Request, chunk: Chunk) -> list[Lease]:
        group, number = chunk
        count = self._geometry.groups[group].blocks_per_chunk
        table = self._world.tables.get(r, {}).get(group, {})
        return [table[i] for i in range(number * count, (number + 1) * count) if i in table]

    # --- ends ---

    def judge_ends(self) -> Iterator[Move]:
        """The lives that ended in the window that closes."""
        ending = self._lives.ending[:]
        self._lives.ending.clear()
        for life in ending:
            self._withdraw(life)
            for chunk in self._kept(life):
                key = self._key(life.r, chunk)
                if key is not None:
                    offers = life.offers[chunk] + (chunk in life.present)
                    yield "judge_chunk", (life.r, key, life.chances[chunk], offers)
            if life.steady:
                yield from self._compare(life)

    def _withdraw(self, life: Life) -> None:
        """At its end a chance was none if a block has been handed out again in this very window."""
        superseded = self._world.reference.superseded_at
        for chunk, leases in life.last_chance.items():
            if any(lease in superseded for lease in leases):
                life.chances[chunk] -= life.chances[chunk] > 0
                life.could.discard(chunk)

    def _kept(self, life: Life) -> Iterator[Chunk]:
        """The chunks that some lookup can need."""
        for group, sizes in enumerate(self._geometry.groups):
            complete = life.horizon // sizes.tokens_per_chunk
            # A drafter may still rewrite the last chunk.
            for number in range(complete - sizes.draft):
                if sizes.kind == FULL or self._is_kept(life, group, number):
                    yield group, number

    def _is_kept(self, life: Life, group: int, number: int) -> bool:
        sizes, alignment = self._geometry.groups[group], self._geometry.alignment
        interval = self._world.header.options.get("retention_interval")
        if not isinstance(interval, int):
            return sizes.keeps(alignment, life.horizon, number)
        prompt = (self._world.limits[life.r].prompt - 1) // alignment * alignment
        if 0 < prompt <= life.horizon and sizes.needs(prompt, number):
            return True
        return interval > 0 and sizes.keeps(math.lcm(alignment, interval), life.horizon, number)

    def _compare(self, life: Life) -> Iterator[Move]:
        """With the last request that had the same course."""
        limits, marks = self._world.limits[life.r], self._world.marks[life.r]
        if life.start is None or life.horizon >= len(marks):
            return
        course = (
            marks[life.horizon],
            limits.prompt,
            limits.max_load,
            limits.max_offload,
            life.start,
        )
        before = self._before.get(course)
        self._before[course] = life
        if before is None:
            return
        # What a lookup found need not be offered, whether it was or not.
        for chunk in sorted((life.could & before.could) - (life.found | before.found)):
            key = self._key(life.r, chunk)
            if key is not None and self._is_comparable(life, chunk):
                left, left_before = int(chunk in life.offers), int(chunk in before.offers)
                yield "judge_tail", (life.r, before.r, key, left, left_before)

    def _is_comparable(self, life: Life, chunk: Chunk) -> bool:
        """Whether a chunk is within what was computed and not kept for the sake of others.

        Where not every boundary is retained, the engine adds some at which its prompts parted.
        """
        group, number = chunk
        if (number + 1) * self._size(chunk) > life.horizon:
            return False
        sparse = isinstance(self._world.header.options.get("retention_interval"), int)
        full = self._geometry.groups[group].kind == FULL
        return full or not sparse or self._is_kept(life, group, number)

    def _size(self, chunk: Chunk) -> int:
        return self._geometry.groups[chunk[0]].tokens_per_chunk
