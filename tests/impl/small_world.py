"""A small engine and tier for the scheduler: real objects in memory, without vLLM."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kvproof.impl.scheduler.geometry import Geometry, Kind, geometry
from kvproof.impl.scheduler.plan import Plan, Step
from kvproof.impl.scheduler.request import Limits
from kvproof.impl.scheduler.scheduler import OffloadScheduler, Options
from kvproof.impl.scheduler.stores import StorePolicy
from kvproof.impl.scheduler.views import Found, Key, Room


def full(tokens_per_block: int, draft: bool = False) -> tuple[Kind, int, int, bool]:
    return Kind.FULL, tokens_per_block, 0, draft


def window(tokens_per_block: int, tokens: int, draft: bool = False) -> tuple[Kind, int, int, bool]:
    return Kind.WINDOW, tokens_per_block, tokens, draft


def chunked(tokens_per_block: int, tokens: int) -> tuple[Kind, int, int, bool]:
    return Kind.CHUNKED, tokens_per_block, tokens, False


def recurrent(tokens_per_block: int) -> tuple[Kind, int, int, bool]:
    return Kind.RECURRENT, tokens_per_block, 0, False


def sizes(
    *groups: tuple[Kind, int, int, bool], blocks_per_chunk: int = 1, tokens_per_hash: int = 1
) -> Geometry:
    """A geometry of groups 0, 1, ...; a hash a token unless said otherwise."""
    return geometry(
        [(index, *group) for index, group in enumerate(groups)], blocks_per_chunk, tokens_per_hash
    )


def key(group: int, last: int, of: str = "a") -> Key:
    """The key of the chunk that ends with hash number ``last`` of the prompt ``of``."""
    return f"{of}{last}".encode() + group.to_bytes(4, "big")


@dataclass
class SmallRequest:
    """A request with a hash for each ``tokens_per_hash`` known tokens, named after its prompt."""

    request_id: str
    num_prompt_tokens: int
    of: str = "a"
    tokens_per_hash: int = 1
    num_computed_tokens: int = 0
    output: int = 0
    shared_prefix_boundary: int = 0

    @property
    def num_tokens(self) -> int:
        return self.num_prompt_tokens + self.output

    @property
    def block_hashes(self) -> list[bytes]:
        count = self.num_tokens // self.tokens_per_hash
        return [f"{self.of}{number}".encode() for number in range(count)]


@dataclass
class SmallTables:
    """Block tables, written by the test."""

    tables: dict[tuple[str, int], list[int]] = field(default_factory=dict)

    def blocks(self, request_id: str, group: int, first: int, last: int) -> list[int]:
        return self.tables.get((request_id, group), [])[first:last]

    def block(self, request_id: str, group: int, position: int) -> int | None:
        table = self.tables.get((request_id, group), [])
        return table[position] if position < len(table) else None


class SmallTier:
    """A tier of so many slots; evicts what was used least lately and is neither pinned nor stored.

    Attributes:
        chunks: key -> PENDING while it is being stored, HIT afterwards; least lately used first.
        asked: the keys that were looked up.
    """

    def __init__(self, slots: int = 1 << 30, closed: bool = True) -> None:
        self.closed = closed
        self.lru_capacity = slots if closed and slots < 1 << 30 else None
        self.slots = slots
        self.chunks: dict[Key, Found] = {}
        self.pins: dict[Key, int] = {}
        self.asked: list[Key] = []
        self.finished: list[Any] = []
        self.ends: dict[Key, int] = {}
        self.fast = False

    def lookup(self, key: Key, context: Any) -> Found:
        self.asked.append(key)
        return self.chunks.get(key, Found.MISS)

    def hits_ahead(self, keys: Sequence[Key]) -> int:
        if not self.fast:
            return 0
        hits = (number for number, key in enumerate(keys) if self.chunks.get(key) is not Found.HIT)
        return next(hits, len(keys))

    def note(self, keys: Sequence[Key], ends: Sequence[int], context: Any) -> None:
        self.ends.update(zip(keys, ends, strict=True))

    def prepare_load(self, keys: Sequence[Key], context: Any) -> Any:
        for one in keys:
            assert self.chunks[one] is Found.HIT
            self.pins[one] = self.pins.get(one, 0) + 1
        return list(keys)

    def complete_load(self, keys: Sequence[Key], context: Any) -> None:
        for one in keys:
            self.pins[one] -= 1

    def prepare_store(self, keys: Sequence[Key], context: Any) -> Room | None:
        wanted = [one for one in keys if one not in self.chunks]
        idle = [
            one
            for one, found in self.chunks.items()
            if found is Found.HIT and not self.pins.get(one) and one not in keys
        ]
        short = len(self.chunks) + len(wanted) - self.slots
        if short > len(idle):
            return None
        evicted = idle[: max(0, short)]
        for one in evicted:
            del self.chunks[one]
        self.chunks.update(dict.fromkeys(wanted, Found.PENDING))
        return Room(wanted, tuple(wanted), evicted)

    def complete_store(self, keys: Sequence[Key], context: Any, success: bool) -> None:
        for one in keys:
            if success:
                self.chunks[one] = Found.HIT
            else:
                del self.chunks[one]

    def touch(self, keys: Sequence[Key], context: Any) -> None:
        for one in reversed(keys):
            if one in self.chunks:
                self.chunks[one] = self.chunks.pop(one)

    def new_request(self, context: Any) -> None:
        pass

    def finished_request(self, context: Any) -> None:
        self.finished.append(context)

    def reset(self) -> None:
        self.chunks.clear()
        self.pins.clear()

    def fill(self, keys: Iterable[Key], found: Found = Found.HIT) -> None:
        self.chunks.update(dict.fromkeys(keys, found))


class World:
    """A scheduler with its tier and tables, and the calls that an engine would make."""

    def __init__(
        self,
        sizes: Geometry,
        tier: SmallTier | None = None,
        *,
        workers: int = 1,
        avoid_double_loads: bool = True,
        **stores: Any,
    ) -> None:
        self.tier = tier or SmallTier()
        self.tables = SmallTables()
        options = Options(workers, StorePolicy(**stores), avoid_double_loads)
        self.scheduler = OffloadScheduler(sizes, self.tier, self.tables, options)
        self.requests: dict[str, SmallRequest] = {}
        self.running: set[str] = set()

    def add(self, request: SmallRequest, limits: Limits | None = None) -> SmallRequest:
        self.requests[request.request_id] = request
        self.scheduler.add(request, request.request_id, limits or Limits())
        return request

    def table(self, request_id: str, *groups: list[int]) -> None:
        """The block tables of a request."""
        for group, blocks in enumerate(groups):
            self.tables.tables[request_id, group] = blocks

    def step(
        self,
        scheduled: dict[str, int],
        leased: Collection[int] = (),
        handed: dict[str, list[tuple[int, int, int]]] | None = None,
        put_back: Collection[str] = (),
    ) -> Plan:
        """Schedule a step, compute it; every request samples a token at its prompt's end.

        Requests that are put back have nothing computed any more.
        """
        self.running.difference_update(put_back)
        for request_id in put_back:
            self.requests[request_id].num_computed_tokens = 0
        started = [one for one in scheduled if one not in self.running]
        self.running.update(scheduled)
        plan = self.scheduler.plan(
            Step(scheduled, started, lambda: set(leased), handed or {}, put_back)
        )
        for request_id, tokens in scheduled.items():
            request = self.requests[request_id]
            request.num_computed_tokens += tokens
            if request.num_computed_tokens == request.num_tokens:
                request.output += 1
        return plan

    def finish(self, request_id: str) -> None:
        """The request ends; its last token was sampled and not computed."""
        request = self.requests.pop(request_id)
        self.running.discard(request_id)
        groups = self.scheduler.geometry.groups
        blocks = [self.tables.tables.get((request_id, group.index), []) for group in groups]
        self.scheduler.finish(request_id, request.num_computed_tokens, blocks)
