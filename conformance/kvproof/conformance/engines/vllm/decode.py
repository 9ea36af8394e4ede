"""What a transfer job copies, piece by piece.

The rule is the one of the release's copy worker (``v1/kv_offload/cpu/gpu_worker.py``,
``transfer_async`` with its pointer computation, the same in 0.21 to 0.33): the blocks of all groups
lie in one list, group after group; the slots too, each group taking as many as cover its blocks; a
group's first block sits at offset ``block_index % blocks_per_chunk`` of its first slot, and the
others follow without a gap. Whoever plans a job with a gap gets its bytes misplaced, and this
module must show exactly that.
"""

from __future__ import annotations

from collections.abc import Sequence

from kvproof.conformance.trace.events import Piece


class SizesDiffer(AssertionError):
    """The blocks and the slots of a job do not match; the release's copy worker asserts too."""


def pieces(
    blocks: Sequence[int],
    group_sizes: Sequence[int],
    block_indices: Sequence[int],
    slots: Sequence[int],
    blocks_per_chunk: int,
) -> list[Piece]:
    """Pair each block with its slot and offset.

    Args:
        blocks: GPU block ids, groups one after the other.
        group_sizes: how many of ``blocks`` belong to each group.
        block_indices: position, in the request's table, of each group's first block.
        slots: slots of the tier, groups one after the other.
        blocks_per_chunk: blocks of one slot.

    Returns:
        One piece a block, in the order of ``blocks``.

    Raises:
        SizesDiffer: ``slots`` has too few or too many slots for ``blocks``.
    """
    found: list[Piece] = []
    first_block = first_slot = 0
    for group, (size, index) in enumerate(zip(group_sizes, block_indices, strict=True)):
        if size == 0:
            continue
        skip = index % blocks_per_chunk
        end_slot = first_slot - (-(size + skip) // blocks_per_chunk)
        if end_slot > len(slots):
            raise SizesDiffer(f"group {group}: {size} blocks need slots up to {end_slot}")
        for nth in range(size):
            chunk, offset = divmod(skip + nth, blocks_per_chunk)
            found.append(Piece(group, blocks[first_block + nth], slots[first_slot + chunk], offset))
        first_block += size
        first_slot = end_slot
    if first_block != len(blocks):
        raise SizesDiffer(f"{len(blocks)} blocks, of which the groups take {first_block}")
    if first_slot != len(slots):
        raise SizesDiffer(f"{len(slots)} slots, of which the groups take {first_slot}")
    return found
