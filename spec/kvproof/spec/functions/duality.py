"""What the store keeps is what the lookup needs: blocks, chunks and positions meet."""

from __future__ import annotations

from kvproof.spec.functions.arithmetic import nested_quotients, quotient_is
from kvproof.spec.functions.kinds import RECURRENT, first_position, is_kind, is_served
from kvproof.spec.functions.language import (
    Status,
    ensures,
    forall,
    implies,
    lemma,
    requires,
    use,
)
from kvproof.spec.functions.spans import a_block_of_the_range_holds_a_position_of_it
from kvproof.spec.functions.store import reads_chunk


@lemma
def a_needed_position_lies_in_a_needed_chunk(
    kind: int,
    window: int,
    tokens_per_block: int,
    blocks_per_chunk: int,
    boundary: int,
    position: int,
) -> None:
    """The chunk of the block of a needed position is needed. Serves E2."""
    requires(is_kind(kind), window >= 1, tokens_per_block >= 1, blocks_per_chunk >= 1)
    requires(boundary >= 1, kind != RECURRENT or boundary % tokens_per_block == 0)
    requires(first_position(kind, window, boundary) <= position < boundary)
    ensures(
        lambda result: reads_chunk(
            kind,
            window,
            tokens_per_block,
            blocks_per_chunk,
            boundary,
            position // tokens_per_block // blocks_per_chunk,
        )
    )
    use(nested_quotients(tokens_per_block, blocks_per_chunk, position))


@lemma
def a_needed_block_lies_in_a_needed_chunk(
    kind: int,
    window: int,
    tokens_per_block: int,
    blocks_per_chunk: int,
    boundary: int,
    block: int,
) -> None:
    """The chunk of a block that ``is_served`` asks for is needed. Serves E2."""
    requires(is_kind(kind), window >= 1, tokens_per_block >= 1, blocks_per_chunk >= 1)
    requires(boundary >= 1, kind != RECURRENT or boundary % tokens_per_block == 0)
    requires(first_position(kind, window, boundary) < boundary)
    requires(
        first_position(kind, window, boundary) // tokens_per_block <= block,
        block <= (boundary - 1) // tokens_per_block,
    )
    ensures(
        lambda result: reads_chunk(
            kind,
            window,
            tokens_per_block,
            blocks_per_chunk,
            boundary,
            block // blocks_per_chunk,
        )
    )
    use(
        a_block_of_the_range_holds_a_position_of_it(
            tokens_per_block, first_position(kind, window, boundary), boundary, block
        ),
        a_needed_position_lies_in_a_needed_chunk(
            kind,
            window,
            tokens_per_block,
            blocks_per_chunk,
            boundary,
            max(first_position(kind, window, boundary), block * tokens_per_block),
        ),
    )


@lemma
def a_needed_chunk_holds_a_needed_position(
    kind: int,
    window: int,
    tokens_per_block: int,
    blocks_per_chunk: int,
    boundary: int,
    chunk: int,
) -> None:
    """No chunk is needed for nothing: its first token, or the first needed one. Serves E2."""
    requires(is_kind(kind), window >= 1, tokens_per_block >= 1, blocks_per_chunk >= 1)
    requires(
        reads_chunk(kind, window, tokens_per_block, blocks_per_chunk, boundary, chunk),
    )
    ensures(
        lambda result: (
            first_position(kind, window, boundary)
            <= max(
                first_position(kind, window, boundary),
                chunk * (tokens_per_block * blocks_per_chunk),
            )
            < boundary
        ),
        lambda result: (
            max(
                first_position(kind, window, boundary),
                chunk * (tokens_per_block * blocks_per_chunk),
            )
            // tokens_per_block
            // blocks_per_chunk
            == chunk
        ),
    )
    use(
        nested_quotients(
            tokens_per_block,
            blocks_per_chunk,
            max(
                first_position(kind, window, boundary),
                chunk * (tokens_per_block * blocks_per_chunk),
            ),
        ),
        quotient_is(
            tokens_per_block * blocks_per_chunk,
            max(
                first_position(kind, window, boundary),
                chunk * (tokens_per_block * blocks_per_chunk),
            ),
            chunk,
            max(
                first_position(kind, window, boundary),
                chunk * (tokens_per_block * blocks_per_chunk),
            )
            - chunk * (tokens_per_block * blocks_per_chunk),
        ),
    )


@lemma
def what_is_kept_serves(
    kind: int,
    window: int,
    tokens_per_block: int,
    blocks_per_chunk: int,
    alignment: int,
    tokens: int,
    status: Status,
    boundary: int,
    at_least: int,
) -> None:
    """With every chunk there that ``keeps_chunk`` keeps, every boundary is served that can be.

    Serves E2, E4.
    """
    requires(is_kind(kind), window >= 1, tokens_per_block >= 1, blocks_per_chunk >= 1)
    requires(alignment >= 1, 1 <= boundary <= tokens, boundary % alignment == 0)
    requires(kind != RECURRENT or boundary % tokens_per_block == 0)
    requires(
        forall(
            lambda n, block: implies(
                1 <= n
                and n <= tokens
                and n % alignment == 0
                and reads_chunk(
                    kind, window, tokens_per_block, blocks_per_chunk, n, block // blocks_per_chunk
                ),
                status(block) >= at_least,
            )
        )
    )
    ensures(lambda result: is_served(kind, window, tokens_per_block, status, 0, boundary, at_least))
    use(
        forall(
            lambda block: a_needed_block_lies_in_a_needed_chunk(
                kind, window, tokens_per_block, blocks_per_chunk, boundary, block
            )
        )
    )


@lemma
def a_place_holds_one_block(chunk: int, offset: int, blocks_per_chunk: int) -> None:
    """Every place of a chunk is the place of exactly one block. Serves S4."""
    requires(blocks_per_chunk >= 1, 0 <= offset < blocks_per_chunk)
    ensures(
        lambda result: (chunk * blocks_per_chunk + offset) // blocks_per_chunk == chunk,
        lambda result: (chunk * blocks_per_chunk + offset) % blocks_per_chunk == offset,
    )
    use(quotient_is(blocks_per_chunk, chunk * blocks_per_chunk + offset, chunk, offset))


@lemma
def blocks_have_different_places(block: int, other: int, blocks_per_chunk: int) -> None:
    """Two blocks never lie in the same chunk at the same offset. Serves S4."""
    requires(blocks_per_chunk >= 1, block != other)
    ensures(
        lambda result: (
            block // blocks_per_chunk != other // blocks_per_chunk
            or block % blocks_per_chunk != other % blocks_per_chunk
        )
    )
