"""What a job copies: which piece goes to which slot and offset, and where that lies in memory.

A group's blocks follow on from a table position and fill the job's slots one after the other. Only
the first slot may be filled from its middle on, and only the last one not to its end.
"""

from __future__ import annotations

from kvproof.spec.functions.arithmetic import products_grow, quotient_is, quotients_grow
from kvproof.spec.functions.language import (
    definition,
    ensures,
    forall,
    implies,
    lemma,
    requires,
    use,
)


def piece_place(first_position: int, number: int, blocks_per_chunk: int) -> tuple[int, int]:
    """Which of the job's slots piece ``number`` of a group goes to, and at which offset.

    The slot is the one of the chunk in which the piece's block lies, and the offset is the block's
    own. Serves S4.
    """
    requires(blocks_per_chunk >= 1, first_position >= 0, number >= 0)
    ensures(
        lambda result: (
            result[0]
            == (first_position + number) // blocks_per_chunk - first_position // blocks_per_chunk
        ),
        lambda result: result[1] == (first_position + number) % blocks_per_chunk,
        lambda result: result[0] >= 0,
    )
    use(
        quotient_is(
            blocks_per_chunk,
            first_position + number,
            first_position // blocks_per_chunk
            + (first_position % blocks_per_chunk + number) // blocks_per_chunk,
            (first_position % blocks_per_chunk + number) % blocks_per_chunk,
        ),
        quotients_grow(blocks_per_chunk, 0, first_position % blocks_per_chunk + number),
    )
    skipped = first_position % blocks_per_chunk
    return (skipped + number) // blocks_per_chunk, (skipped + number) % blocks_per_chunk


@definition
def slot_of(first_position: int, number: int, blocks_per_chunk: int) -> int:
    """The slot of a piece, among the job's slots of its group."""
    return (first_position % blocks_per_chunk + number) // blocks_per_chunk


@definition
def offset_of(first_position: int, number: int, blocks_per_chunk: int) -> int:
    """The offset of a piece in its slot."""
    return (first_position % blocks_per_chunk + number) % blocks_per_chunk


def slots_filled(first_position: int, pieces: int, blocks_per_chunk: int) -> int:
    """How many slots a group's pieces fill: all of them have room there, and none is without.

    Serves S4.
    """
    requires(blocks_per_chunk >= 1, first_position >= 0, pieces >= 0)
    ensures(
        lambda result: (result == 0) == (pieces == 0),
        lambda result: forall(
            lambda number: implies(
                0 <= number and number < pieces,
                slot_of(first_position, number, blocks_per_chunk) < result,
            )
        ),
        lambda result: implies(
            pieces >= 1, slot_of(first_position, pieces - 1, blocks_per_chunk) == result - 1
        ),
    )
    use(
        forall(
            lambda number: quotients_grow(
                blocks_per_chunk,
                first_position % blocks_per_chunk + number,
                first_position % blocks_per_chunk + pieces - 1,
            )
        ),
        quotients_grow(blocks_per_chunk, 0, first_position % blocks_per_chunk + pieces - 1),
    )
    if pieces == 0:
        return 0
    return (first_position % blocks_per_chunk + pieces - 1) // blocks_per_chunk + 1


@lemma
def no_two_pieces_share_a_place(
    first_position: int, one: int, other: int, blocks_per_chunk: int
) -> None:
    """Each place is written by one piece. Serves S4."""
    requires(blocks_per_chunk >= 1, first_position >= 0, 0 <= one < other)
    ensures(
        lambda result: (
            slot_of(first_position, one, blocks_per_chunk)
            != slot_of(first_position, other, blocks_per_chunk)
            or offset_of(first_position, one, blocks_per_chunk)
            != offset_of(first_position, other, blocks_per_chunk)
        )
    )


@lemma
def every_slot_is_filled(
    first_position: int, pieces: int, slot: int, blocks_per_chunk: int
) -> None:
    """A slot that the pieces reach has a piece of its own: its first place, or the first piece.

    Serves S4.
    """
    requires(blocks_per_chunk >= 1, first_position >= 0, pieces >= 1)
    requires(0 <= slot <= slot_of(first_position, pieces - 1, blocks_per_chunk))
    ensures(
        lambda result: 0 <= max(0, slot * blocks_per_chunk - first_position % blocks_per_chunk),
        lambda result: max(0, slot * blocks_per_chunk - first_position % blocks_per_chunk) < pieces,
        lambda result: (
            slot_of(
                first_position,
                max(0, slot * blocks_per_chunk - first_position % blocks_per_chunk),
                blocks_per_chunk,
            )
            == slot
        ),
    )
    use(
        products_grow(
            blocks_per_chunk, slot, slot_of(first_position, pieces - 1, blocks_per_chunk)
        ),
        products_grow(blocks_per_chunk, 0, slot),
        quotient_is(blocks_per_chunk, slot * blocks_per_chunk, slot, 0),
        quotient_is(
            blocks_per_chunk,
            first_position % blocks_per_chunk,
            0,
            first_position % blocks_per_chunk,
        ),
    )


# --- where a place lies ---------------------------------------------------------------------------


@definition
def begins(slot: int, slot_stride: int, offset: int, piece_stride: int) -> int:
    """The first byte of a place in the tier, from the first one of slot 0."""
    return slot * slot_stride + offset * piece_stride


@lemma
def a_place_lies_in_its_slot(
    size: int, blocks_per_chunk: int, slot_stride: int, piece_stride: int, slot: int, offset: int
) -> None:
    """From its first byte to its last. Serves S4."""
    requires(size >= 1, blocks_per_chunk >= 1, piece_stride >= size)
    requires((blocks_per_chunk - 1) * piece_stride + size <= slot_stride)
    requires(slot >= 0, 0 <= offset < blocks_per_chunk)
    ensures(
        lambda result: slot * slot_stride <= begins(slot, slot_stride, offset, piece_stride),
        lambda result: (
            begins(slot, slot_stride, offset, piece_stride) + size <= (slot + 1) * slot_stride
        ),
    )
    use(
        products_grow(piece_stride, offset, blocks_per_chunk - 1),
        products_grow(piece_stride, 0, offset),
    )


@lemma
def a_place_lies_in_the_tier(
    size: int,
    blocks_per_chunk: int,
    slot_stride: int,
    piece_stride: int,
    slots: int,
    slot: int,
    offset: int,
) -> None:
    """No copy leaves the tier. Serves S4."""
    requires(size >= 1, blocks_per_chunk >= 1, piece_stride >= size)
    requires((blocks_per_chunk - 1) * piece_stride + size <= slot_stride)
    requires(0 <= slot < slots, 0 <= offset < blocks_per_chunk)
    ensures(
        lambda result: begins(slot, slot_stride, offset, piece_stride) >= 0,
        lambda result: (
            begins(slot, slot_stride, offset, piece_stride) + size <= slots * slot_stride
        ),
    )
    use(
        a_place_lies_in_its_slot(size, blocks_per_chunk, slot_stride, piece_stride, slot, offset),
        products_grow(piece_stride, 0, blocks_per_chunk - 1),
        products_grow(slot_stride, slot, slots),
        products_grow(slot_stride, 0, slot),
    )


@lemma
def places_of_a_slot_are_apart(
    size: int, slot_stride: int, piece_stride: int, slot: int, less: int, more: int
) -> None:
    """The one with the smaller offset ends before the other begins. Serves S4."""
    requires(size >= 1, piece_stride >= size, less < more)
    ensures(
        lambda result: (
            begins(slot, slot_stride, less, piece_stride) + size
            <= begins(slot, slot_stride, more, piece_stride)
        )
    )
    use(products_grow(piece_stride, less, more))


@lemma
def places_of_two_slots_are_apart(
    size: int,
    blocks_per_chunk: int,
    slot_stride: int,
    piece_stride: int,
    less: int,
    more: int,
    one: int,
    other: int,
) -> None:
    """The one in the earlier slot ends before the other begins. Serves S4."""
    requires(size >= 1, piece_stride >= 1, less < more, 0 <= one < blocks_per_chunk, other >= 0)
    requires((blocks_per_chunk - 1) * piece_stride + size <= slot_stride)
    ensures(
        lambda result: (
            begins(less, slot_stride, one, piece_stride) + size
            <= begins(more, slot_stride, other, piece_stride)
        )
    )
    use(
        products_grow(piece_stride, one, blocks_per_chunk - 1),
        products_grow(piece_stride, 0, blocks_per_chunk - 1),
        products_grow(piece_stride, 0, other),
        products_grow(slot_stride, less, more),
    )


@lemma
def pages_packed_in_a_block_are_apart(
    stride: int,
    one_place: int,
    one_size: int,
    other_place: int,
    other_size: int,
    less: int,
    more: int,
) -> None:
    """Layers that lie in a block one after the other share no byte, in one block or in two.

    Serves S4.
    """
    requires(one_size >= 1, other_size >= 1, one_place >= 0)
    requires(one_place + one_size <= other_place, other_place + other_size <= stride)
    requires(less < more)
    ensures(
        lambda result: less * stride + one_place + one_size <= less * stride + other_place,
        lambda result: less * stride + other_place + other_size <= more * stride + one_place,
        lambda result: less * stride + one_place + one_size <= more * stride + other_place,
    )
    use(products_grow(stride, less, more))
