"""What a request offers for storing: complete chunks whose blocks are its own right now.

The cursor of a group moves only past chunks that were accepted, are present, were declined, or can
never serve (M6). Block ids are read from the engine's table at this moment, so a block that has
slid away is simply not there (M4 holds by construction). Only of a request that has ended since the
last step are they remembered, as they were until then.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kvproof.impl.scheduler.geometry import Geometry, Group, Kind
from kvproof.impl.scheduler.views import Key

NEVER = 1 << 62
"""More tokens than any request has."""


class Chunk(NamedTuple):
    """One chunk on offer. A named tuple, since it is made for every chunk that is stored.

    Attributes:
        group: its group.
        number: its number in the request.
        key: its offload key.
        blocks: its GPU blocks, without the ``missing`` first ones.
        missing: how many blocks at its start are no longer there.
        end: how many tokens of the request there are up to its end.
    """

    group: Group
    number: int
    key: Key
    blocks: Sequence[int]
    missing: int
    end: int


def with_open(
    blocks: Sequence[Sequence[int]], open_blocks: Mapping[int, tuple[int, Sequence[int]]]
) -> Sequence[Sequence[int]]:
    """An ended request's tables, with what had not slid away at the last plan for it.

    Args:
        blocks: per group, its last table; empty when the request was put back.
        open_blocks: place of a group -> (first position, block ids).
    """
    if not open_blocks:
        return blocks
    tables = [list(table) for table in blocks]
    for place, (first, ids) in open_blocks.items():
        table = tables[place]
        for position, block in enumerate(ids[: max(0, len(table) - first)], first):
            table[position] = table[position] or block
    return tables


def last_chunk(group: Group, tokens: int, hashes: int) -> int:
    """How many leading chunks are complete and keyed, when ``tokens`` are computed."""
    chunks = tokens // group.tokens_per_chunk
    keyed = hashes // group.hashes_per_chunk
    return chunks if chunks < keyed else keyed


def due(
    geometry: Geometry,
    cursors: Sequence[int],
    tokens: int = 0,
    most: int = NEVER,
    states: bool = False,
) -> int:
    """The number of computed tokens at which the next chunk of some group can be stored.

    Recurrent states are handed over, so their groups are never due, unless ``states`` says so.

    Args:
        geometry: the groups.
        cursors: the next chunk to offer, per group.
        tokens: how many tokens were computed when the cursors got there.
        most: beyond so many tokens nothing is stored; NEVER when no chunk is left before that.
    """
    first = NEVER
    for group, cursor in zip(geometry.groups, cursors, strict=True):
        if group.kind is Kind.RECURRENT and not states:
            continue
        size = group.tokens_per_chunk
        end = (cursor + 1) * size
        if end > most:
            continue
        if group.draft and end <= tokens:
            # Complete and yet not offered: it waits for the token after it.
            end += 1
        if end < first:
            first = end
    return first


def needs(group: Group, chunk: int, boundary: int) -> bool:
    """Whether a start at ``boundary``, at which the group's chunks end, reads the chunk."""
    size = group.tokens_per_chunk
    # A drafter's chunk counts together with the one behind it.
    last = boundary + size if group.draft else boundary
    return chunk * size < last and group.first_needed(boundary) < (chunk + 1) * size


def serves(group: Group, chunk: int, alignment: int) -> bool:
    """Whether a multiple of ``alignment``, where all groups' chunks end, reads the chunk (E2)."""
    size = group.tokens_per_chunk
    start, end = chunk * size, (chunk + 1) * size
    if group.draft and start and start % alignment == 0:
        return True
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


def serves_in_part(group: Group, chunk: int, missing: int, alignment: int) -> bool:
    """Whether a multiple of ``alignment`` reads a chunk, and not its ``missing`` first blocks.

    One that does not would take the place of the whole chunk, which the tier then does not want.
    """
    size, window = group.tokens_per_chunk, group.window
    start, end = chunk * size, (chunk + 1) * size
    match group.kind:
        case Kind.WINDOW:
            # The last boundary that reads the chunk at all reads least of it.
            last = end + window - 2
        case Kind.CHUNKED:
            last = ((end - 1) // window + 1) * window - 1
        case _:
            return False
    boundary = last // alignment * alignment
    there = start + missing * group.tokens_per_block
    return boundary > start and group.first_needed(boundary) >= there


def grain(group: Group, alignment: int) -> int:
    """``alignment``, or 0 when a group has no chunk that ``serves`` says no to."""
    period = math.lcm(alignment, group.window or 1)
    chunks = range(period // group.tokens_per_chunk)
    return 0 if all(serves(group, chunk, alignment) for chunk in chunks) else alignment


def chunks_on_offer(
    group: Group,
    hashes: Sequence[bytes],
    blocks: Sequence[int],
    first: int,
    alignment: int,
    partial: int,
) -> list[Chunk]:
    """The chunks from ``first`` on that can be stored from ``blocks``.

    Args:
        group: their group.
        hashes: the request's block hashes.
        blocks: the table's entries from chunk ``first`` on, 0 where there is none.
        first: the first chunk.
        alignment: see ``serves``; what no such boundary reads is not worth a slot. 0: all is.
        partial: a chunk may go without blocks at its start, when a window has left them, if a
            multiple of so many tokens has a use for it; 0: none may.
    """
    per, suffix, size = group.hashes_per_chunk, group.suffix, group.tokens_per_chunk
    count = group.blocks_per_chunk
    found = []
    if count == 1:
        # As below, without slices of one block or named arguments: the most frequent setup by far.
        for number, block in enumerate(blocks, first):
            if block and not (alignment and not serves(group, number, alignment)):
                key = hashes[(number + 1) * per - 1] + suffix
                chunk = (group, number, key, [block], 0, (number + 1) * size)
                found.append(tuple.__new__(Chunk, chunk))
        return found
    for offset in range(len(blocks) // count):
        number = first + offset
        own = blocks[offset * count : (offset + 1) * count]
        missing = 0
        if group.kind is Kind.RECURRENT:
            # The state at its end is all of a chunk that serves.
            missing, own = count - 1, own[-1:]
            if not own[0]:
                continue
        elif 0 in own:
            while missing < count and own[missing] == 0:
                missing += 1
            own = own[missing:]
            # Nothing but holes, or one behind a block that is there: not a chunk.
            if not own or 0 in own:
                continue
            if not partial or not serves_in_part(group, number, missing, partial):
                continue
        if alignment and not serves(group, number, alignment):
            continue
        key = hashes[(number + 1) * per - 1] + suffix
        found.append(Chunk(group, number, key, own, missing, (number + 1) * size))
    return found
