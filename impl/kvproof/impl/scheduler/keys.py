"""Keys of a request's chunks: built when they are used, since kept they are most of a request."""

from __future__ import annotations

from kvproof.impl.scheduler.geometry import Group
from kvproof.impl.scheduler.views import Key, RequestView


def keys_of(request: RequestView, group: Group, first: int, last: int) -> list[Key]:
    """The offload keys of chunks [first, last) of a request's group."""
    per, suffix = group.hashes_per_chunk, group.suffix
    hashes = request.block_hashes[(first + 1) * per - 1 : last * per : per]
    return [block_hash + suffix for block_hash in hashes]
