"""How costs grow: with running requests, prompt length, groups, and chunks in the tier."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from kvproof.conformance.bench.scheduler import rows
from kvproof.conformance.bench.scheduler.rows import Row
from kvproof.conformance.bench.scheduler.scene import BLOCK

Advance = Callable[[str, int, int], None]

_STEP_TOKENS = 1024
_LOOKUP_TOKENS = 8192
_TIMES = 5


class Growth(msgspec.Struct, frozen=True):
    """One table: ``by`` is what grows, ``settings`` what does not."""

    by: str
    settings: str
    rows: list[Row]


def by_requests() -> Growth:
    """Decode steps of more and more requests."""
    made = []
    for count in (64, 256, 1024, 4096):
        scene, taken = rows.idle_steps(count, _STEP_TOKENS, 1)
        made.append(rows.row(f"{count:,}, none completes a chunk", "ms", taken, scene))
        scene, taken = rows.busy_steps(count, _STEP_TOKENS, 1)
        made.append(rows.row(f"{count:,}, 1/16 complete one", "ms", taken, scene))
    settings = f"a decode step, requests of {_STEP_TOKENS:,} tokens, {rows.groups_of(1)}"
    return Growth("running requests", settings, made)


def by_prompt() -> Growth:
    """Lookups of longer and longer prompts."""
    made = []
    for tokens in (1 << 10, 1 << 13, 1 << 16, 1 << 20):
        prompt = rows.Prompt(tokens, 1)
        for name, taken in (
            ("first", prompt.first(_TIMES)),
            ("again", prompt.again(_TIMES)),
            ("again, after another's store", prompt.after_a_store(_TIMES)),
        ):
            made.append(rows.row(f"{tokens:,}, {name}", "ms", taken, prompt.scene))
    return Growth("tokens of the prompt", f"a lookup, all resident, {rows.groups_of(1)}", made)


def by_groups() -> Growth:
    """One full group, and more and more windows."""
    made = []
    for groups in (1, 2, 4, 8):
        scene, taken = rows.idle_steps(256, _STEP_TOKENS, groups - 1)
        made.append(rows.row(f"{groups}, none completes a chunk", "ms", taken, scene))
        scene, taken = rows.busy_steps(256, _STEP_TOKENS, groups - 1)
        made.append(rows.row(f"{groups}, 1/16 complete one", "ms", taken, scene))
        prompt = rows.Prompt(_LOOKUP_TOKENS, groups - 1)
        for name, taken in (("first lookup", prompt.first(_TIMES)), ("again", prompt.again(5))):
            made.append(rows.row(f"{groups}, {name}", "ms", taken, prompt.scene))
    settings = (
        f"a decode step of 256 requests of {_STEP_TOKENS:,} tokens;"
        f" a lookup of {_LOOKUP_TOKENS:,} tokens, all resident"
    )
    return Growth("groups", settings, made)


def by_chunks() -> Growth:
    """A tier that holds more and more besides."""
    made = []
    for chunks in (1_000, 10_000, 100_000, 1_000_000):
        prompt = rows.Prompt(_LOOKUP_TOKENS, 0, chunks - _LOOKUP_TOKENS // BLOCK)
        for name, taken in (
            ("first lookup", prompt.first(_TIMES)),
            ("again", prompt.again(_TIMES)),
        ):
            made.append(rows.row(f"{chunks:,}, {name}", "ms", taken, prompt.scene))
    settings = f"a lookup of {_LOOKUP_TOKENS:,} tokens, all resident, {rows.groups_of(0)}"
    return Growth("chunks in the tier", settings, made)


TABLES = (by_requests, by_prompt, by_groups, by_chunks)


def tables(advance: Advance) -> list[Growth]:
    """All four."""
    made = []
    for number, table in enumerate(TABLES):
        advance(table.__name__.replace("_", " "), number, len(TABLES))
        made.append(table())
    return made
