"""What a forward reads and writes, per group kind.

Reads are checked at the boundary where a block's earlier slots end and this forward's begin: what
lies before was read, and so checked, by the forward that wrote after it, or came as one piece.
"""

from __future__ import annotations

from collections.abc import Iterator

from kvproof.conformance.trace.events import GroupGeometry


def reads(group: GroupGeometry, start: int) -> Iterator[tuple[int, int]]:
    """(block index, tokens) pairs: the forward needs the prefix of ``tokens`` tokens there.

    ``start`` is the first position that it computes; nothing earlier means nothing to read.
    """
    if start <= 0:
        return
    size = group.tokens_per_block
    if group.kind == "recurrent":
        yield (start - 1) // size, start
        return
    first = 0
    if group.kind == "window" and group.window is not None:
        first = max(0, start - group.window + 1)
    elif group.kind == "chunked" and group.window is not None:
        first = start // group.window * group.window
    if first >= start:
        return
    for index in range(first // size, (start - 1) // size + 1):
        yield index, min(start, (index + 1) * size)


def writes(group: GroupGeometry, start: int, end: int) -> Iterator[tuple[int, int]]:
    """(block index, tokens) pairs: afterwards the slot there holds the prefix of ``tokens``."""
    size = group.tokens_per_block
    if group.kind == "recurrent":
        if end > start:
            yield (end - 1) // size, end
        return
    for position in range(start, end):
        yield position // size, position + 1


def advances(group: GroupGeometry, start: int, end: int) -> bool:
    """Whether the forward overwrites, in place, the running state that it reads."""
    if group.kind != "recurrent":
        return False
    return start > (end - 1) // group.tokens_per_block * group.tokens_per_block
