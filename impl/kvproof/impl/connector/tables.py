"""vLLM's own block tables, read where they are."""

from __future__ import annotations

from typing import Any


class CoreTables:
    """Implements ``views.Tables`` over the core's KV-cache manager, once it is bound."""

    def __init__(self) -> None:
        self._tables: list[dict[str, list[Any]]] = []

    def bind(self, kv_cache_manager: Any) -> None:
        """The core tells its connector of its manager right after both were made."""
        groups = kv_cache_manager.coordinator.single_type_managers
        self._tables = [group.req_to_blocks for group in groups]

    def blocks(self, request_id: str, group: int, first: int, last: int) -> list[int]:
        """Block ids at positions [first, last) of one group; 0 where there is none (any more)."""
        table = self._tables[group].get(request_id, ())
        # Where there is no block the core has its null block, whose id is 0.
        return [block.block_id for block in table[first:last]]

    def block(self, request_id: str, group: int, position: int) -> int | None:
        """The block id at a position; 0 where there is none any more, None beyond the end."""
        table = self._tables[group].get(request_id, ())
        return table[position].block_id if position < len(table) else None
