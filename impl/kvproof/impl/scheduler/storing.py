"""What a request offers for storing: complete chunks whose blocks are its own right now.

The cursor of a group moves only past chunks that were accepted, are present, were declined, or can
never serve (M6). Block ids are read from the engine's table at this moment, never remembered, so a
block that has slid away is simply not there (M4 holds by construction).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvproof.impl.scheduler.geometry import Geometry, Group, Kind
from kvproof.impl.scheduler.views import Key, Tables

NEVER = 1 << 62
"""More tokens than any request has."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One chunk on offer.

    Attributes:
        group: its group.
        index: its number in the request.
        key: its offload key.
        blocks: its GPU blocks, without the ``missing`` first ones.
        missing: how many blocks at its start are no longer there.
    """

    group: Group
    index: int
    key: Key
    blocks: Sequence[int]
    missing: int


def last_chunk(group: Group, tokens: int, hashes: int, prompt: int, finished: bool) -> int:
    """How many leading chunks are complete and keyed, when ``tokens`` are computed.

    The last chunk of a drafter is rewritten while tokens are rejected, so it waits for the next.
    """
    chunks = tokens // group.tokens_per_chunk
    if group.draft and tokens > prompt and not finished:
        chunks -= 1
    return max(0, min(chunks, hashes // group.hashes_per_chunk))


def due(geometry: Geometry, cursors: Sequence[int]) -> int:
    """The number of computed tokens at which the next chunk of some group is complete.

    Recurrent states are handed over, so their groups are never due.
    """
    return min(
        (
            (cursor + 1) * group.tokens_per_chunk
            for group, cursor in zip(geometry.groups, cursors, strict=True)
            if group.kind is not Kind.RECURRENT
        ),
        default=NEVER,
    )


def serves(group: Group, chunk: int, alignment: int) -> bool:
    """Whether a boundary at which all groups have complete chunks reads the chunk (E2)."""
    size = group.tokens_per_chunk
    start, end = chunk * size, (chunk + 1) * size
    match group.kind:
        case Kind.FULL:
            return True
        case Kind.RECURRENT:
            return end % alignment == 0
        case Kind.WINDOW:
            # The first aligned boundary beyond the chunk's start reaches back the farthest into it.
            boundary = (start // alignment + 1) * alignment
            return boundary - group.window + 1 < end
        case Kind.CHUNKED:
            boundary = (start // alignment + 1) * alignment
            return boundary // group.window * group.window < end


def read_blocks(tables: Tables, request_id: str, group: Group, first: int, last: int) -> list[int]:
    """The table's blocks of chunks [first, last); 0 where there is none."""
    per = group.blocks_per_chunk
    return tables.blocks(request_id, group.index, first * per, last * per)


def chunks_on_offer(
    group: Group,
    hashes: Sequence[bytes],
    blocks: Sequence[int],
    first: int,
    alignment: int,
    partial: bool,
) -> list[Chunk]:
    """The chunks from ``first`` on that can be stored from ``blocks``.

    Args:
        group: their group.
        hashes: the request's block hashes.
        blocks: the table's entries from chunk ``first`` on, 0 where there is none.
        first: the first chunk.
        alignment: see ``serves``; what no such boundary reads is not worth a slot.
        partial: whether a chunk may go without blocks at its start (its window has left them).
    """
    per, suffix = group.hashes_per_chunk, group.suffix
    count = group.blocks_per_chunk
    found = []
    for offset in range(len(blocks) // count):
        index = first + offset
        own = blocks[offset * count : (offset + 1) * count]
        missing = 0
        while missing < count and own[missing] == 0:
            missing += 1
        # A hole behind a block that is there, or nothing but holes: not a chunk.
        if missing == count or 0 in own[missing:]:
            continue
        state_only = group.kind is Kind.RECURRENT and missing == count - 1
        if missing and not (partial or state_only):
            continue
        if not serves(group, index, alignment):
            continue
        key = hashes[(index + 1) * per - 1] + suffix
        found.append(Chunk(group, index, key, own[missing:], missing))
    return found
