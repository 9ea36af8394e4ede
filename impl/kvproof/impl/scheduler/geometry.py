"""Sizes that never change while an engine runs: groups, chunks, hashes.

Token positions are counted from 0; a *boundary* of n tokens lies before position n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum


class Kind(Enum):
    """What a KV-cache group's layers attend to."""

    FULL = "full"
    WINDOW = "window"
    CHUNKED = "chunked"
    RECURRENT = "recurrent"


@dataclass(frozen=True, slots=True)
class Group:
    """One KV-cache group.

    Attributes:
        index: the group's number in offload keys and block tables.
        place: its position among the groups that are offloaded.
        kind: what its layers attend to.
        tokens_per_block: tokens of one GPU block.
        window: WINDOW: tokens that a token attends to, itself included; CHUNKED: tokens of one
            attention chunk; otherwise 0.
        draft: the group belongs to a drafter, whose last chunk is rewritten while tokens are
            rejected.
        blocks_per_chunk: blocks of one offloaded chunk.
        hashes_per_chunk: block hashes of one chunk; a chunk's last hash names it.
    """

    index: int
    place: int
    kind: Kind
    tokens_per_block: int
    window: int = 0
    draft: bool = False
    blocks_per_chunk: int = 1
    hashes_per_chunk: int = 1
    tokens_per_chunk: int = field(init=False)
    suffix: bytes = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens_per_chunk", self.tokens_per_block * self.blocks_per_chunk)
        object.__setattr__(self, "suffix", self.index.to_bytes(4, "big"))

    def first_needed(self, boundary: int) -> int:
        """The first position that a forward starting at ``boundary`` reads (at least 1 token)."""
        match self.kind:
            case Kind.FULL:
                return 0
            case Kind.WINDOW:
                return max(0, boundary - self.window + 1)
            case Kind.CHUNKED:
                return boundary // self.window * self.window
            case Kind.RECURRENT:
                return boundary - 1


@dataclass(frozen=True, slots=True)
class Geometry:
    """All groups, and what they have in common.

    Attributes:
        groups: in the order of the block tables.
        alignment: tokens between two boundaries at which every group has complete chunks.
        prefix: the groups that need everything before a boundary.
        suffix: the other groups: what they need ends at the boundary.
    """

    groups: tuple[Group, ...]
    alignment: int = field(init=False)
    prefix: tuple[Group, ...] = field(init=False)
    suffix: tuple[Group, ...] = field(init=False)

    def __post_init__(self) -> None:
        chunks = (group.tokens_per_chunk for group in self.groups)
        object.__setattr__(self, "alignment", math.lcm(*chunks))
        full = tuple(g for g in self.groups if g.kind is Kind.FULL)
        object.__setattr__(self, "prefix", full)
        object.__setattr__(self, "suffix", tuple(g for g in self.groups if g not in full))


def geometry(
    groups: list[tuple[int, Kind, int, int, bool]], blocks_per_chunk: int, tokens_per_hash: int
) -> Geometry:
    """Check sizes and derive the rest.

    Args:
        groups: (index, kind, tokens per block, window, draft) of each group, as in ``Group``.
        blocks_per_chunk: blocks of one chunk, in every group.
        tokens_per_hash: tokens of one block hash.

    Raises:
        ValueError: a size is not positive, or a chunk does not end with a block hash.
    """
    if not groups:
        raise ValueError("there is no KV-cache group to offload")
    if blocks_per_chunk < 1 or tokens_per_hash < 1:
        raise ValueError("blocks_per_chunk and tokens_per_hash must be at least 1")
    made = []
    for place, (index, kind, tokens_per_block, window, draft) in enumerate(groups):
        tokens_per_chunk = tokens_per_block * blocks_per_chunk
        if tokens_per_block < 1 or tokens_per_chunk % tokens_per_hash:
            raise ValueError(
                f"group {index}: a chunk of {tokens_per_chunk} tokens is not a multiple of"
                f" {tokens_per_hash}, the tokens of a block hash"
            )
        if kind in (Kind.WINDOW, Kind.CHUNKED) and window < 1:
            raise ValueError(f"group {index}: a {kind.value} group needs a window")
        hashes = tokens_per_chunk // tokens_per_hash
        made.append(
            Group(index, place, kind, tokens_per_block, window, draft, blocks_per_chunk, hashes)
        )
    return Geometry(tuple(made))
