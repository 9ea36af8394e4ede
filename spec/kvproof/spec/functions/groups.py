"""All groups together: the greatest boundary that every one of them serves."""

from __future__ import annotations

from collections.abc import Callable

from kvproof.spec.functions.language import (
    ensures,
    exists,
    forall,
    implies,
    invariant,
    requires,
    uninterpreted,
    variant,
)


@uninterpreted
def serves(group: int, boundary: int) -> bool:
    """May ``group`` start at ``boundary``? Of each group, what ``is_served`` says of it."""
    raise NotImplementedError


def greatest_boundary(
    groups: int, greatest: Callable[[int, int], int], floor: int, limit: int
) -> int:
    """The greatest boundary in [floor, limit] that every group serves.

    ``greatest(g, n)`` is what ``greatest_served`` finds for group ``g`` with the limit ``n``. Each
    answer lowers the limit for the others until all agree. Serves E1.
    """
    requires(
        groups >= 0,
        floor <= limit,
        forall(
            lambda g, n: implies(
                0 <= g and g < groups and floor <= n and n <= limit,
                floor <= greatest(g, n) <= n and serves(g, greatest(g, n)),
            )
        ),
        forall(
            lambda g, n, m: implies(
                0 <= g and g < groups and floor <= n and n <= limit,
                implies(greatest(g, n) < m and m <= n, not serves(g, m)),
            )
        ),
    )
    ensures(
        lambda result: floor <= result <= limit,
        lambda result: forall(lambda g: implies(0 <= g and g < groups, serves(g, result))),
        lambda result: forall(
            lambda n: implies(
                result < n and n <= limit,
                exists(lambda g: 0 <= g and g < groups and not serves(g, n)),
            )
        ),
    )
    boundary = limit
    group = 0
    while group < groups:
        invariant(
            0 <= group <= groups,
            floor <= boundary <= limit,
            forall(lambda g: implies(0 <= g and g < group, serves(g, boundary))),
            forall(
                lambda n: implies(
                    boundary < n and n <= limit,
                    exists(lambda g: 0 <= g and g < groups and not serves(g, n)),
                )
            ),
        )
        variant(boundary - floor, groups - group)
        found = greatest(group, boundary)
        if found < boundary:
            boundary = found
            group = 0
        else:
            group += 1
    return boundary
