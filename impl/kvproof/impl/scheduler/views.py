"""Whom the scheduler talks to: requests and block tables of an engine, and a tier.

The names are those of vLLM's own objects, so that they serve as they are, without wrappers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import IntEnum
from typing import Any, NamedTuple, Protocol

Key = bytes
"""An offload key: the block hash that ends a chunk, then the group's index in four bytes."""


class RequestView(Protocol):
    """A request of the engine. Counts are in tokens."""

    request_id: str
    num_computed_tokens: int
    num_prompt_tokens: int
    shared_prefix_boundary: int
    """Up to where others have the same tokens, as far as the engine has noticed; 0: not at all."""

    @property
    def block_hashes(self) -> Sequence[bytes]:
        """The hashes of its known blocks."""
        ...

    @property
    def num_tokens(self) -> int:
        """All known tokens."""
        ...


class Tables(Protocol):
    """The engine's block tables, read at the moment at which a store is planned."""

    def blocks(self, request_id: str, group: int, first: int, last: int) -> list[int]:
        """Block ids at positions [first, last) of one group; 0 where there is none (any more).

        Shorter when the table ends before ``last``.
        """
        ...

    def block(self, request_id: str, group: int, position: int) -> int | None:
        """The block id at a position; 0 where there is none any more, None beyond the end."""
        ...


class Found(IntEnum):
    """What a tier says of a key. Greater means nearer."""

    MISS = 0
    RETRY = 1
    PENDING = 2
    HIT = 3


class Room(NamedTuple):
    """The tier's answer to an offer: keys that it takes, in order, and what it evicted for them.

    ``place`` is the tier's own description of where the keys go, for its workers.
    """

    keys: Sequence[Key]
    place: Any
    evicted: Collection[Key]


class Tier(Protocol):
    """A larger, slower tier. ``context`` is what it knows a request by.

    Attributes:
        closed: nothing enters or leaves it but through this scheduler's own calls, so that an
            answer stays right until one of them is made.
        lru_capacity: how many keys a closed tier holds that evicts the key that was used longest
            ago; None of any other.
    """

    closed: bool
    lru_capacity: int | None

    def lookup(self, key: Key, context: Any) -> Found:
        """Whether a key can be loaded."""
        ...

    def hits_ahead(self, keys: Sequence[Key]) -> int:
        """How many of the first keys are hits, as far as that is known without asking; 0 is right.

        For a closed tier in this process, which need not be asked key by key.
        """
        ...

    def note(self, keys: Sequence[Key], ends: Sequence[int], context: Any) -> None:
        """Where the chunks of keys end in their request, in tokens; said before they are used."""
        ...

    def prepare_load(self, keys: Sequence[Key], context: Any) -> Any:
        """Pin keys and say where they lie."""
        ...

    def complete_load(self, keys: Sequence[Key], context: Any) -> None:
        """Unpin keys."""
        ...

    def prepare_store(self, keys: Sequence[Key], context: Any) -> Room | None:
        """Make room for those keys that it wants and does not have; None when there is no room."""
        ...

    def complete_store(self, keys: Sequence[Key], context: Any, success: bool) -> None:
        """Keys were stored on every worker, or the store failed and they are gone."""
        ...

    def touch(self, keys: Sequence[Key], context: Any) -> None:
        """Keys were used, the first of them latest."""
        ...

    def new_request(self, context: Any) -> None:
        """A request begins."""
        ...

    def finished_request(self, context: Any) -> None:
        """No more will be asked or prepared for a request."""
        ...

    def reset(self) -> None:
        """Forget everything."""
        ...
