"""What an engine holds: blocks, chunks, requests, and all tables of its connector scheduler.

Tables are found by walking the scheduler's own objects, so that none is missed by being new. Own
are the objects whose classes come from the package of the scheduler's class.
"""

from __future__ import annotations

import gc
from collections import Counter, deque
from collections.abc import Iterator
from typing import Any

_TABLES = (dict, list, set, deque)


class Holdings:
    """Counts of one engine, made anew at each call."""

    def __init__(self, core: Any, scheduler: Any, manager: Any, blocks: int) -> None:
        """Look at an engine from now on.

        Args:
            core: the core's scheduler.
            scheduler: the connector's scheduler.
            manager: the tier's manager; of several tiers, the first one counts.
            blocks: how many GPU blocks there are to hand out.
        """
        self._core = core
        self._scheduler = scheduler
        self._slots = getattr(manager, "primary_tier", getattr(manager, "_backing", manager))
        self._blocks = blocks
        self._package = _package(type(scheduler))

    def handed_out(self) -> dict[str, int]:
        """What requests hold, or left behind."""
        pool = self._core.kv_cache_manager.block_pool
        return {
            "GPU blocks": self._blocks - pool.get_num_free_blocks(),
            "requests of the core": len(self._core.requests),
            "chunks": self._chunks(),
            "chunks that may not go": self._chunks() - self._slots._num_evictable_cache_chunks,
        }

    def tables(self) -> dict[str, int]:
        """How many entries the scheduler's own tables have; empty ones are left out."""
        return {path: size for path, size in self._tables(self._scheduler, "", set()) if size}

    def objects(self) -> Counter[str]:
        """How many objects of the scheduler's own classes are alive, by class."""
        gc.collect()
        kinds = Counter(map(type, gc.get_objects()))
        return Counter(
            {
                f"{kind.__module__}.{kind.__qualname__}": count
                for kind, count in kinds.items()
                if self._is_own(kind)
            }
        )

    def _is_own(self, kind: type) -> bool:
        # Some classes, made in C, have something else there than a name.
        return isinstance(kind.__module__, str) and kind.__module__.startswith(self._package)

    def _chunks(self) -> int:
        return int(self._slots._num_allocated_chunks - len(self._slots._free_list))

    def _tables(self, owner: Any, path: str, seen: set[int]) -> Iterator[tuple[str, int]]:
        seen.add(id(owner))
        for name, value in _fields(owner):
            below = f"{path}.{name}" if path else name
            if isinstance(value, _TABLES):
                yield below, len(value)
            elif self._is_own(type(value)) and id(value) not in seen:
                yield from self._tables(value, below, seen)


def _package(owner: type) -> str:
    """``kvproof.impl.connector.scheduler`` is of ``kvproof.impl``; one name stands for itself."""
    return ".".join(owner.__module__.split(".")[:2])


def _fields(owner: Any) -> Iterator[tuple[str, Any]]:
    yield from getattr(owner, "__dict__", {}).items()
    for kind in type(owner).__mro__:
        for name in getattr(kind, "__slots__", ()):
            if hasattr(owner, name):
                yield name, getattr(owner, name)
