"""Sizes of a run's groups, in the terms of the verified functions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from kvproof.conformance.trace.events import GroupGeometry, Header
from kvproof.model import functions

_KINDS = {
    "full": functions.FULL,
    "window": functions.WINDOW,
    "chunked": functions.CHUNKED,
    "recurrent": functions.RECURRENT,
}


@dataclass(frozen=True)
class Group:
    """One group: ``window`` is 1 where the kind has none, so that it is a size everywhere."""

    kind: int
    window: int
    tokens_per_block: int
    blocks_per_chunk: int
    draft: bool

    @classmethod
    def of(cls, group: GroupGeometry, blocks_per_chunk: int) -> Group:
        """The group as a trace's header has it."""
        kind, size = _KINDS[group.kind], group.tokens_per_block
        return cls(kind, group.window or 1, size, blocks_per_chunk, group.draft)

    @property
    def tokens_per_chunk(self) -> int:
        """Tokens of one chunk."""
        return self.tokens_per_block * self.blocks_per_chunk

    def needs(self, boundary: int, chunk: int) -> bool:
        """Whether a start at ``boundary`` reads from ``chunk``."""
        return functions.needed_chunk(
            self.kind, self.window, self.tokens_per_block, self.blocks_per_chunk, boundary, chunk
        )

    def needed(self, boundary: int, floor: int = 0) -> range:
        """The chunks that a start at ``boundary`` reads from, beyond ``floor`` tokens."""
        first = max(functions.first_needed(self.kind, self.window, boundary), floor)
        size = self.tokens_per_chunk
        chunks = range(first // size, -(-boundary // size))
        return chunks if first < boundary and self.needs(boundary, chunks[-1]) else range(0)

    def keeps(self, alignment: int, tokens: int, chunk: int) -> bool:
        """Whether some multiple of ``alignment`` within ``tokens`` needs ``chunk``."""
        return functions.keeps_chunk(
            self.kind,
            self.window,
            self.tokens_per_block,
            self.blocks_per_chunk,
            alignment,
            tokens,
            chunk,
        )


@dataclass(frozen=True)
class Geometry:
    """All groups of a run."""

    groups: tuple[Group, ...]

    @classmethod
    def of(cls, header: Header) -> Geometry:
        """The groups as a trace's header has them."""
        return cls(tuple(Group.of(group, header.blocks_per_chunk) for group in header.groups))

    @cached_property
    def alignment(self) -> int:
        """Tokens between boundaries at which every group's chunks end."""
        return math.lcm(*(group.tokens_per_chunk for group in self.groups))

    @cached_property
    def largest_chunk(self) -> int:
        """Tokens of the largest chunk."""
        return max(group.tokens_per_chunk for group in self.groups)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Group numbers, full attention first: its prefix rules out the most boundaries."""
        numbers = range(len(self.groups))
        return tuple(sorted(numbers, key=lambda g: self.groups[g].kind != functions.FULL))
