"""Blocks and positions: what a range of tokens means in blocks, and how many a window spans.

The same holds of chunks: a chunk is a block of more tokens.
"""

from __future__ import annotations

from kvproof.spec.functions.arithmetic import quotient_is, quotients_grow
from kvproof.spec.functions.language import definition, ensures, lemma, requires, use


@lemma
def a_position_of_the_range_lies_in_a_block_of_it(
    tokens_per_block: int, first: int, boundary: int, position: int
) -> None:
    """The blocks from that of ``first`` to that of the last token hold the range. Serves E1."""
    requires(tokens_per_block >= 1, first <= position < boundary)
    ensures(
        lambda result: first // tokens_per_block <= position // tokens_per_block,
        lambda result: position // tokens_per_block <= (boundary - 1) // tokens_per_block,
    )
    use(
        quotients_grow(tokens_per_block, first, position),
        quotients_grow(tokens_per_block, position, boundary - 1),
    )


@lemma
def a_block_of_the_range_holds_a_position_of_it(
    tokens_per_block: int, first: int, boundary: int, block: int
) -> None:
    """None of them is in it for nothing: its first token, or ``first``. Serves E1."""
    requires(tokens_per_block >= 1, first < boundary)
    requires(first // tokens_per_block <= block <= (boundary - 1) // tokens_per_block)
    ensures(
        lambda result: first <= max(first, block * tokens_per_block) < boundary,
        lambda result: max(first, block * tokens_per_block) // tokens_per_block == block,
    )
    use(
        quotient_is(tokens_per_block, block * tokens_per_block, block, 0),
        quotients_grow(tokens_per_block, boundary, block * tokens_per_block),
        quotients_grow(tokens_per_block, boundary - 1, block * tokens_per_block),
        quotients_grow(tokens_per_block, block * tokens_per_block, first),
    )


@definition
def blocks_spanned(window: int, tokens_per_block: int, boundary: int) -> int:
    """Blocks with one of the ``window - 1`` positions before ``boundary``, which a window needs."""
    return (boundary - 1) // tokens_per_block - (boundary - window + 1) // tokens_per_block + 1


@definition
def rounded_up(number: int, divisor: int) -> int:
    """``number / divisor``, rounded up."""
    return (number + divisor - 1) // divisor


@lemma
def a_window_spans_exactly(window: int, tokens_per_block: int, boundary: int) -> None:
    """The window, and what is left of its last block, rounded up to blocks. Serves E1, E2."""
    requires(window >= 2, tokens_per_block >= 1, boundary >= window - 1)
    ensures(
        lambda result: (
            blocks_spanned(window, tokens_per_block, boundary)
            == rounded_up(window - 1 + (-boundary) % tokens_per_block, tokens_per_block)
        )
    )
    use(
        quotient_is(
            tokens_per_block,
            boundary - 1,
            -((-boundary) // tokens_per_block) - 1,
            tokens_per_block - 1 - (-boundary) % tokens_per_block,
        ),
        quotient_is(
            tokens_per_block,
            window - 1 + (-boundary) % tokens_per_block + tokens_per_block - 1,
            -((-boundary) // tokens_per_block) - (boundary - window + 1) // tokens_per_block,
            tokens_per_block - 1 - (boundary - window + 1) % tokens_per_block,
        ),
    )


@lemma
def a_window_spans_at_least(window: int, tokens_per_block: int, boundary: int) -> None:
    """As many blocks as its tokens fill. Serves E2."""
    requires(window >= 2, tokens_per_block >= 1, boundary >= window - 1)
    ensures(
        lambda result: (
            blocks_spanned(window, tokens_per_block, boundary)
            >= rounded_up(window - 1, tokens_per_block)
        )
    )
    use(
        a_window_spans_exactly(window, tokens_per_block, boundary),
        quotients_grow(
            tokens_per_block,
            window - 1 + tokens_per_block - 1,
            window - 1 + (-boundary) % tokens_per_block + tokens_per_block - 1,
        ),
    )


@lemma
def a_window_spans_the_least_where_a_block_ends(
    window: int, tokens_per_block: int, boundary: int
) -> None:
    """That bound is attained, at every multiple of the block. Serves E2."""
    requires(window >= 2, tokens_per_block >= 1, boundary >= window - 1)
    requires(boundary % tokens_per_block == 0)
    ensures(
        lambda result: (
            blocks_spanned(window, tokens_per_block, boundary)
            == rounded_up(window - 1, tokens_per_block)
        )
    )
    use(
        a_window_spans_exactly(window, tokens_per_block, boundary),
        quotient_is(tokens_per_block, -boundary, -(boundary // tokens_per_block), 0),
    )


@lemma
def a_window_spans_at_most(window: int, tokens_per_block: int, boundary: int) -> None:
    """One block more than its tokens but one fill, so one more than they all fill. Serves E2."""
    requires(window >= 2, tokens_per_block >= 1, boundary >= window - 1)
    ensures(
        lambda result: (
            blocks_spanned(window, tokens_per_block, boundary)
            <= rounded_up(window - 2, tokens_per_block) + 1
        ),
        lambda result: (
            blocks_spanned(window, tokens_per_block, boundary)
            <= rounded_up(window - 1, tokens_per_block) + 1
        ),
    )
    use(
        a_window_spans_exactly(window, tokens_per_block, boundary),
        quotients_grow(
            tokens_per_block,
            window - 1 + (-boundary) % tokens_per_block + tokens_per_block - 1,
            window - 2 + tokens_per_block - 1 + tokens_per_block,
        ),
        quotient_is(
            tokens_per_block,
            window - 2 + tokens_per_block - 1 + tokens_per_block,
            rounded_up(window - 2, tokens_per_block) + 1,
            (window - 2 + tokens_per_block - 1) % tokens_per_block,
        ),
        quotients_grow(
            tokens_per_block, window - 2 + tokens_per_block - 1, window - 1 + tokens_per_block - 1
        ),
    )


@lemma
def a_window_spans_the_most_just_after_a_block(
    window: int, tokens_per_block: int, boundary: int
) -> None:
    """That bound is attained, one token after every multiple of the block. Serves E2."""
    requires(window >= 2, tokens_per_block >= 1, boundary >= window - 1)
    requires((boundary - 1) % tokens_per_block == 0)
    ensures(
        lambda result: (
            blocks_spanned(window, tokens_per_block, boundary)
            == rounded_up(window - 2, tokens_per_block) + 1
        )
    )
    use(
        a_window_spans_exactly(window, tokens_per_block, boundary),
        quotient_is(
            tokens_per_block,
            -boundary,
            -((boundary - 1) // tokens_per_block) - 1,
            tokens_per_block - 1,
        ),
        quotient_is(
            tokens_per_block,
            window - 2 + tokens_per_block - 1 + tokens_per_block,
            rounded_up(window - 2, tokens_per_block) + 1,
            (window - 2 + tokens_per_block - 1) % tokens_per_block,
        ),
    )
