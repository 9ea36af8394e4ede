"""Draws what lies in a tier, asks our scheduler, and compares its answer with the verified one.

Runs inside a release: ``python -m tests.conformance.answers cpu|tiering EXAMPLES``. Prints how many
answers there were of which kind; an answer that differs fails, with the drawn example.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections import Counter
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvproof.conformance.engines.base import Add, Setup, Step, Unsupported
from kvproof.conformance.engines.names import OURS
from kvproof.conformance.engines.vllm import VllmTarget
from kvproof.conformance.fuzz.strategies import group_sets
from kvproof.conformance.monitor.economy.geometry import Geometry, Group
from kvproof.conformance.trace.events import Answer, AnyEvent
from kvproof.model import functions
from kvproof.model.functions import ABSENT, FULL, READY, RECURRENT

MOST_TOKENS = 48

Chunk = tuple[int, int]
"""A group, and a chunk of the prompt in it."""


class Contents:
    """Chunks of one prompt: ``first`` lie in the CPU tier, ``behind`` only in that behind it."""

    def __init__(self, first: set[Chunk], behind: set[Chunk]) -> None:
        self.first = first
        self.behind = behind - first

    def __repr__(self) -> str:
        return f"first {sorted(self.first)}, behind {sorted(self.behind)}"


def greatest(geometry: Geometry, present: set[Chunk], tokens: int) -> int:
    """The greatest boundary that all groups serve, by the verified functions; the GPU has nothing.

    The last token is always computed.
    """

    def of_group(number: int, limit: int) -> int:
        group = geometry.groups[number]

        def status(block: int) -> int:
            chunk, offset = functions.place_of(block, group.blocks_per_chunk)
            if group.kind == RECURRENT and offset != group.blocks_per_chunk - 1:
                return ABSENT
            return READY if (number, chunk) in present else ABSENT

        return functions.greatest_served(
            group.kind, group.window, group.tokens_per_block, status, 0, limit, READY
        )

    return functions.greatest_boundary(len(geometry.groups), of_group, 0, tokens - 1)


def draw_contents(data: st.DataObject, geometry: Geometry, tokens: int, two: bool) -> Contents:
    """Chunks of the prompt that are there: mostly runs from its start, with holes."""
    first: set[Chunk] = set()
    behind: set[Chunk] = set()
    for number, group in enumerate(geometry.groups):
        chunks = range(tokens // group.tokens_per_chunk)
        places = ("first", "first", "first", "behind" if two else "first", "nowhere")
        for chunk in chunks:
            place = data.draw(st.sampled_from(places))
            if place == "first":
                first.add((number, chunk))
            elif place == "behind":
                behind.add((number, chunk))
    return Contents(first, behind)


class Asked:
    """One engine, whose tier is filled, and whose first answer is taken."""

    def __init__(self, target: VllmTarget, setup: Setup) -> None:
        self._events: list[AnyEvent] = []
        self.engine: Any = target.start(setup, self._events.append)
        self._manager = self.engine._tables.manager
        self._base = importlib.import_module("vllm.v1.kv_offload.base")
        self._size = self.engine.header.tokens_per_hash

    def fill(self, contents: Contents, groups: tuple[Group, ...], prompt: tuple[int, ...]) -> None:
        """Store chunks of ``prompt``; what is behind is stored first, and forgotten in front."""
        hashes = self.engine._clients._request(Add("filler", prompt, 1)).block_hashes
        for chunks in (contents.behind, contents.first):
            if chunks is contents.first and contents.behind:
                self._manager.reset_cache()
            keys = [
                self._base.make_offload_key(
                    hashes[(chunk + 1) * groups[group].tokens_per_chunk // self._size - 1], group
                )
                for group, chunk in sorted(chunks)
            ]
            if keys:
                self._store(keys)

    def _store(self, keys: list[bytes]) -> None:
        manager, base = self._manager, self._base
        context = base.ReqContext(req_id="filler")
        manager.on_new_request(context)
        stored = manager.prepare_store(keys, context)
        assert list(stored.keys_to_store) == keys
        manager.complete_store(keys, context, True)
        manager.on_request_finished(context)
        manager.on_schedule_end(base.ScheduleEndContext(new_req_ids=[], preempted_req_ids=()))

    def answer(self, prompt: tuple[int, ...]) -> tuple[int, int]:
        """The first answer that is not put off, and how often it was put off before."""
        assert self.engine.play(Add("asked", prompt, 1))
        for polls in range(8):
            self.engine.play(Step("all"))
            answers = [e for e in self._events if isinstance(e, Answer)]
            if answers and answers[-1].tokens is not None:
                return answers[-1].tokens, polls
        raise AssertionError("put off for ever")


def main(tier: str, examples: int) -> None:
    """Draw and compare."""
    target = VllmTarget(OURS)
    seen: Counter[str] = Counter()

    @settings(
        max_examples=examples,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data(), group_sets(), st.sampled_from((1, 1, 2, 3)), st.integers(2, MOST_TOKENS))
    def compare(data: st.DataObject, groups: Any, per_chunk: int, tokens: int) -> None:
        if any(group.draft for group in groups):
            return  # a drafter's last chunk counts for less
        setup = Setup(
            groups, per_chunk, num_gpu_blocks=256, num_slots=256, max_batch_tokens=64, tier=tier
        )
        try:
            asked = Asked(target, setup)
        except Unsupported:
            return
        prompt = tuple(range(tokens))
        try:
            geometry = Geometry.of(asked.engine.header)
            contents = draw_contents(data, geometry, tokens, tier == "tiering")
            asked.fill(contents, geometry.groups, prompt)
            best = greatest(geometry, contents.first | contents.behind, tokens)
            if best < geometry.largest_chunk:
                best = 0  # a load of less than a chunk is nobody's duty
            found, polls = asked.answer(prompt)
        finally:
            asked.engine.close()
        if found != best and not (best == 0 and found < geometry.largest_chunk):
            raise AssertionError(f"{found} instead of {best}: {setup} {tokens} tokens, {contents}")
        seen["answers"] += 1
        seen["hits"] += best > 0
        seen["inside a chunk"] += best % geometry.alignment > 0
        seen["put off"] += polls > 0
        seen["with holes"] += 0 < best < greatest(geometry, _all(geometry, tokens), tokens)
        seen["hybrid"] += any(group.kind != FULL for group in geometry.groups)

    compare()
    print(json.dumps(dict(sorted(seen.items()))))


def _all(geometry: Geometry, tokens: int) -> set[Chunk]:
    return {
        (number, chunk)
        for number, group in enumerate(geometry.groups)
        for chunk in range(tokens // group.tokens_per_chunk)
    }


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
