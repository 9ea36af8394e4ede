"""What is stored: which chunks are complete, which of them are kept, and where a block lies."""

from __future__ import annotations

from kvproof.spec.functions.arithmetic import (
    multiples_are_apart,
    multiples_follow,
    products_are_multiples,
)
from kvproof.spec.functions.kinds import (
    RECURRENT,
    first_needed,
    first_position,
    is_kind,
    what_is_needed_moves_forward,
)
from kvproof.spec.functions.language import (
    definition,
    ensures,
    exists,
    forall,
    implies,
    invariant,
    requires,
    use,
    variant,
)


@definition
def is_complete(
    chunk: int,
    computed: int,
    allocated_blocks: int,
    keyed: int,
    tokens_per_block: int,
    blocks_per_chunk: int,
) -> bool:
    """The chunk has a key, all its blocks, and all its tokens are computed."""
    return (
        chunk < keyed
        and (chunk + 1) * blocks_per_chunk <= allocated_blocks
        and (chunk + 1) * (tokens_per_block * blocks_per_chunk) <= computed
    )


def chunk_range(
    stored: int,
    computed: int,
    allocated_blocks: int,
    keyed: int,
    tokens_per_block: int,
    blocks_per_chunk: int,
) -> tuple[int, int]:
    """The chunks [first, last) to offer next: from the cursor on, all that are complete.

    ``computed`` counts tokens, ``allocated_blocks`` blocks, ``stored`` and ``keyed`` chunks. Each
    chunk of the range is keyed, allocated and computed, and the one after it is not.
    Serves P7, E3.
    """
    requires(tokens_per_block >= 1, blocks_per_chunk >= 1, stored >= 0)
    ensures(
        lambda result: result[0] == stored and stored <= result[1],
        lambda result: forall(
            lambda chunk: implies(
                result[0] <= chunk and chunk < result[1],
                is_complete(
                    chunk,
                    computed,
                    allocated_blocks,
                    keyed,
                    tokens_per_block,
                    blocks_per_chunk,
                ),
            )
        ),
        lambda result: (
            not is_complete(
                result[1], computed, allocated_blocks, keyed, tokens_per_block, blocks_per_chunk
            )
        ),
    )
    by_tokens = computed // (tokens_per_block * blocks_per_chunk)
    by_blocks = allocated_blocks // blocks_per_chunk
    return stored, max(stored, min(by_tokens, by_blocks, keyed))


@definition
def reads_chunk(
    kind: int,
    window: int,
    tokens_per_block: int,
    blocks_per_chunk: int,
    boundary: int,
    chunk: int,
) -> bool:
    """A position that a start at ``boundary`` needs lies in ``chunk``, in closed form."""
    return (
        boundary >= 1
        and (kind != RECURRENT or boundary % tokens_per_block == 0)
        and first_position(kind, window, boundary) < boundary
        and first_position(kind, window, boundary)
        < (chunk + 1) * (tokens_per_block * blocks_per_chunk)
        and chunk * (tokens_per_block * blocks_per_chunk) < boundary
    )


def needed_chunk(
    kind: int,
    window: int,
    tokens_per_block: int,
    blocks_per_chunk: int,
    boundary: int,
    chunk: int,
) -> bool:
    """Does a start at ``boundary``, with nothing on the GPU, read a block of ``chunk``?

    No for a boundary at which the group cannot start at all. Serves E2.
    """
    requires(is_kind(kind), window >= 1, tokens_per_block >= 1, blocks_per_chunk >= 1)
    requires(boundary >= 0, chunk >= 0)
    ensures(
        lambda result: (
            result == reads_chunk(kind, window, tokens_per_block, blocks_per_chunk, boundary, chunk)
        )
    )
    if boundary == 0:
        return False
    if kind == RECURRENT and boundary % tokens_per_block != 0:
        return False
    first = first_needed(kind, window, boundary)
    tokens_per_chunk = tokens_per_block * blocks_per_chunk
    start = chunk * tokens_per_chunk
    return first < boundary and first < start + tokens_per_chunk and start < boundary


def keeps_chunk(
    kind: int,
    window: int,
    tokens_per_block: int,
    blocks_per_chunk: int,
    alignment: int,
    tokens: int,
    chunk: int,
) -> bool:
    """The least store mask: is ``chunk`` needed at some boundary that a lookup may answer?

    Those are the multiples of ``alignment``, from the first to the last within ``tokens``. Exactly
    the chunks that are needed at one of them are kept. Serves E2.
    """
    requires(is_kind(kind), window >= 1, tokens_per_block >= 1, blocks_per_chunk >= 1)
    requires(alignment >= 1, chunk >= 0)
    ensures(
        lambda result: implies(
            result,
            exists(
                lambda n: (
                    1 <= n
                    and n <= tokens
                    and n % alignment == 0
                    and reads_chunk(kind, window, tokens_per_block, blocks_per_chunk, n, chunk)
                )
            ),
        ),
        lambda result: forall(
            lambda n: implies(
                n <= tokens
                and n % alignment == 0
                and reads_chunk(kind, window, tokens_per_block, blocks_per_chunk, n, chunk),
                result,
            )
        ),
    )
    use(
        products_are_multiples(
            alignment, chunk * (tokens_per_block * blocks_per_chunk) // alignment + 1
        )
    )
    use(
        forall(
            lambda n: multiples_are_apart(
                alignment,
                n,
                (chunk * (tokens_per_block * blocks_per_chunk) // alignment + 1) * alignment,
            )
        )
    )
    tokens_per_chunk = tokens_per_block * blocks_per_chunk
    start = chunk * tokens_per_chunk
    end = start + tokens_per_chunk
    boundary = (start // alignment + 1) * alignment
    while boundary <= tokens and first_needed(kind, window, boundary) < end:
        invariant(
            boundary > start,
            boundary % alignment == 0,
            forall(
                lambda n: implies(
                    n < boundary and n % alignment == 0,
                    not reads_chunk(kind, window, tokens_per_block, blocks_per_chunk, n, chunk),
                )
            ),
        )
        variant(tokens - boundary)
        use(multiples_follow(alignment, boundary))
        use(forall(lambda n: multiples_are_apart(alignment, boundary, n)))
        use(forall(lambda n: what_is_needed_moves_forward(kind, window, boundary, n)))
        if needed_chunk(kind, window, tokens_per_block, blocks_per_chunk, boundary, chunk):
            return True
        boundary += alignment
    return False


def place_of(block: int, blocks_per_chunk: int) -> tuple[int, int]:
    """The chunk in which a block lies, and its offset there. Serves S4."""
    requires(blocks_per_chunk >= 1, block >= 0)
    ensures(
        lambda result: result[0] * blocks_per_chunk + result[1] == block,
        lambda result: 0 <= result[1] < blocks_per_chunk,
        lambda result: result[0] >= 0,
    )
    return block // blocks_per_chunk, block % blocks_per_chunk
