"""The four kinds of groups: what a forward needs of each, and the greatest start it serves."""

from __future__ import annotations

from kvproof.spec.functions.arithmetic import quotients_grow
from kvproof.spec.functions.language import (
    Status,
    definition,
    ensures,
    forall,
    implies,
    invariant,
    lemma,
    requires,
    use,
    variant,
)

ABSENT, PENDING, READY = 0, 1, 2
FULL, WINDOW, CHUNKED, RECURRENT = 0, 1, 2, 3


@definition
def is_kind(kind: int) -> bool:
    """One of the four."""
    return FULL <= kind <= RECURRENT


@definition
def attends(kind: int, window: int, key: int, query: int) -> bool:
    """Does the token at position ``query`` read what position ``key <= query`` left behind?

    A recurrent state is that of the token just before.
    """
    return (
        kind == FULL
        or (kind == WINDOW and query - key < window)
        or (kind == CHUNKED and key // window == query // window)
        or (kind == RECURRENT and key >= query - 1)
    )


@definition
def first_position(kind: int, window: int, boundary: int) -> int:
    """The first position that a forward which starts at ``boundary`` needs, in closed form."""
    return (
        0
        if kind == FULL
        else max(0, boundary - window + 1)
        if kind == WINDOW
        else boundary // window * window
        if kind == CHUNKED
        else boundary - 1
    )


def first_needed(kind: int, window: int, boundary: int) -> int:
    """The first token position whose KV a forward that starts at ``boundary`` needs.

    Everything from there up to ``boundary`` is needed, and nothing before. For a recurrent group it
    is the last position: the one state. ``boundary`` itself when nothing is needed.
    Serves E1, E2.
    """
    requires(is_kind(kind), window >= 1, boundary >= 1)
    ensures(
        lambda result: result == first_position(kind, window, boundary),
        lambda result: 0 <= result <= boundary,
    )
    if kind == FULL:
        return 0
    if kind == WINDOW:
        return max(0, boundary - window + 1)
    if kind == CHUNKED:
        return boundary // window * window
    return boundary - 1


@lemma
def what_is_needed_is_what_the_first_token_attends_to(
    kind: int, window: int, boundary: int, position: int
) -> None:
    """Serves E1."""
    requires(is_kind(kind), window >= 1, 0 <= position < boundary)
    ensures(
        lambda result: (
            (first_position(kind, window, boundary) <= position)
            == attends(kind, window, position, boundary)
        )
    )


@lemma
def later_tokens_need_no_more(
    kind: int, window: int, boundary: int, position: int, later: int
) -> None:
    """What a later token of the forward reads of the past, the first one reads too. Serves E1."""
    requires(is_kind(kind), window >= 1, 0 <= position < boundary <= later)
    requires(attends(kind, window, position, later))
    ensures(lambda result: attends(kind, window, position, boundary))
    use(
        quotients_grow(window, position, boundary),
        quotients_grow(window, boundary, later),
    )


@lemma
def what_is_needed_moves_forward(kind: int, window: int, boundary: int, later: int) -> None:
    """Serves E2."""
    requires(is_kind(kind), window >= 1, 1 <= boundary <= later)
    ensures(
        lambda result: first_position(kind, window, boundary) <= first_position(kind, window, later)
    )
    use(quotients_grow(window, boundary, later))


@definition
def is_served(
    kind: int,
    window: int,
    tokens_per_block: int,
    status: Status,
    floor: int,
    boundary: int,
    at_least: int,
) -> bool:
    """May the group start at ``boundary``, with ``floor`` tokens on the GPU?

    Every block that holds a needed position not yet on the GPU is there, and a recurrent group
    starts where a block ends.
    """
    return boundary == floor or (
        (kind != RECURRENT or boundary % tokens_per_block == 0)
        and forall(
            lambda block: implies(
                max(first_position(kind, window, boundary), floor) < boundary
                and max(first_position(kind, window, boundary), floor) // tokens_per_block <= block
                and block <= (boundary - 1) // tokens_per_block,
                status(block) >= at_least,
            )
        )
    )


def served(
    kind: int,
    window: int,
    tokens_per_block: int,
    status: Status,
    floor: int,
    boundary: int,
    at_least: int,
) -> bool:
    """May the group start at ``boundary`` tokens when ``floor`` tokens are on the GPU already?

    Every block with a position in [max(first_needed, floor), boundary) has a status of at least
    ``at_least``; a recurrent group starts only where a block ends. Always so at ``floor``.
    Serves E1.
    """
    requires(is_kind(kind), window >= 1, tokens_per_block >= 1, 0 <= floor <= boundary)
    ensures(
        lambda result: (
            result == is_served(kind, window, tokens_per_block, status, floor, boundary, at_least)
        )
    )
    if boundary == floor:
        return True
    if kind == RECURRENT and boundary % tokens_per_block != 0:
        return False
    first = max(first_needed(kind, window, boundary), floor)
    if first == boundary:
        return True
    block = first // tokens_per_block
    last = (boundary - 1) // tokens_per_block
    while block <= last:
        invariant(
            first // tokens_per_block <= block,
            forall(
                lambda i: implies(
                    first // tokens_per_block <= i and i < block, status(i) >= at_least
                )
            ),
        )
        variant(last - block + 1)
        if status(block) < at_least:
            return False
        block += 1
    return True


def greatest_served(
    kind: int,
    window: int,
    tokens_per_block: int,
    status: Status,
    floor: int,
    limit: int,
    at_least: int,
) -> int:
    """The greatest boundary in [floor, limit] that the group, on its own, serves.

    ``floor`` when there is no greater one. Serves E1.
    """
    requires(is_kind(kind), window >= 1, tokens_per_block >= 1, 0 <= floor <= limit)
    ensures(
        lambda result: floor <= result <= limit,
        lambda result: is_served(kind, window, tokens_per_block, status, floor, result, at_least),
        lambda result: forall(
            lambda n: implies(
                result < n and n <= limit,
                not is_served(kind, window, tokens_per_block, status, floor, n, at_least),
            )
        ),
    )
    boundary = limit
    while boundary > floor:
        invariant(
            floor <= boundary <= limit,
            forall(
                lambda n: implies(
                    boundary < n and n <= limit,
                    not is_served(kind, window, tokens_per_block, status, floor, n, at_least),
                )
            ),
        )
        variant(boundary - floor)
        if served(kind, window, tokens_per_block, status, floor, boundary, at_least):
            return boundary
        boundary -= 1
    return floor
