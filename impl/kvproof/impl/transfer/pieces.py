"""Which block lies where in which chunk: what one transfer job moves, as arrays.

A group's blocks follow on from a table position. Only its first chunk may begin in the middle, and
only its last one may end before its last block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
AnyIds = Sequence[int] | npt.NDArray[np.integer]


@dataclass(frozen=True, slots=True)
class Pieces:
    """What one group moves: block ``blocks[i]`` is piece ``offsets[i]`` of the chunk in a slot.

    Attributes:
        group: the group's place among those that are offloaded.
        blocks: GPU block ids.
        slots: for each block, the slot of its chunk.
        offsets: for each block, its number within the chunk, from 0.
    """

    group: int
    blocks: Ids
    slots: Ids
    offsets: Ids


def pieces(
    blocks: AnyIds,
    group_sizes: Sequence[int],
    first_positions: Sequence[int],
    slots: AnyIds,
    blocks_per_chunk: int,
) -> list[Pieces]:
    """The pieces of one job, group by group; groups that move nothing are left out.

    Args:
        blocks: GPU block ids, group by group.
        group_sizes: how many of them each group has.
        first_positions: the table position of each group's first block.
        slots: the slots of the chunks, group by group, in the order of the blocks.
        blocks_per_chunk: blocks of one chunk.

    Raises:
        ValueError: blocks, sizes, positions and slots do not belong together.
    """
    if min(group_sizes, default=0) < 0 or sum(group_sizes) != len(blocks):
        raise ValueError(f"{len(blocks)} blocks for groups of {list(group_sizes)}")
    if len(group_sizes) != len(first_positions):
        raise ValueError(f"{len(first_positions)} positions for {len(group_sizes)} groups")
    block_ids, slot_ids = np.asarray(blocks, np.int64), np.asarray(slots, np.int64)
    found = []
    block = slot = 0
    for group, (size, first) in enumerate(zip(group_sizes, first_positions, strict=True)):
        if size:
            skipped = first % blocks_per_chunk
            chunks = (skipped + size - 1) // blocks_per_chunk + 1
            own = slot_ids[slot : slot + chunks]
            if len(own) < chunks:
                raise ValueError(f"{len(slots)} slots are too few for groups of {group_sizes}")
            of, offset = _places(own, skipped, size, blocks_per_chunk)
            found.append(Pieces(group, block_ids[block : block + size], of, offset))
            block += size
            slot += len(own)
    if slot != len(slots):
        raise ValueError(f"{len(slots)} slots, of which blocks at {first_positions} fill {slot}")
    return found


def _places(slots: Ids, skipped: int, size: int, blocks_per_chunk: int) -> tuple[Ids, Ids]:
    """For each block its slot and its offset there, after the first ``skipped`` places."""
    if blocks_per_chunk == 1:
        return slots, np.broadcast_to(np.int64(0), size)
    whole = slice(skipped, skipped + size)
    offsets = np.tile(np.arange(blocks_per_chunk), len(slots))
    return np.repeat(slots, blocks_per_chunk)[whole], offsets[whole]
