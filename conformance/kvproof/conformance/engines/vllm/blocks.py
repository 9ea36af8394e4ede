"""The tap on blocks: leases, shares and frees, from the block pool and the cache manager.

Hand-outs are counted where the pool makes them; tables are compared after each call of the cache
manager that can change one. So events come in the order of the engine's own calls, and a block that
is handed out, given up and handed out again within one window is seen each time.

Recurrent groups keep a running state that a forward advances in place. Content changes without a
hand-out then, so the block is leased again: see ``advance``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from kvproof.conformance.engines.vllm.recorder import Recorder
from kvproof.conformance.trace.events import SCHEDULER_RANK, Free, Lease, Share


class BlockTap:
    """Follows the tables of all requests of one core scheduler."""

    def __init__(self, recorder: Recorder, manager: Any, recurrent: list[tuple[int, int]]) -> None:
        """Wrap ``manager`` (the core's ``KVCacheManager``).

        Args:
            recorder: the run's recorder.
            manager: wrapped in place.
            recurrent: (group, tokens per block) of the recurrent groups.
        """
        self._recorder = recorder
        self._managers = list(manager.coordinator.single_type_managers)
        self._recurrent = recurrent
        self._blocks = manager.block_pool.blocks
        self._tables: dict[str, list[_Table]] = {}
        self._lease_of: dict[int, int] = {}
        self._next_lease = 1
        self._handed: list[int] = []
        self._fresh: set[int] = set()
        self._why = "other"
        self._wrap(manager)

    def _wrap(self, manager: Any) -> None:
        pool = manager.block_pool
        hand_out = pool.get_new_blocks

        def get_new_blocks(*args: Any, **kwargs: Any) -> Any:
            found = hand_out(*args, **kwargs)
            self._handed.extend(block.block_id for block in found)
            return found

        pool.get_new_blocks = get_new_blocks
        manager.allocate_slots = self._compared(manager.allocate_slots, slides=True)
        manager.free = self._compared(manager.free)
        manager.remove_skipped_blocks = self._compared(manager.remove_skipped_blocks, slides=True)
        if hasattr(manager, "pop_blocks_for_free"):
            manager.pop_blocks_for_free = self._compared(manager.pop_blocks_for_free)

    def _compared(self, function: Any, *, slides: bool = False) -> Any:
        """``function`` with its request's tables compared afterwards, also when it raises."""

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            subject: Any = args[0] if args else kwargs.get("request", kwargs.get("request_id"))
            self._handed.clear()
            try:
                return function(*args, **kwargs)
            finally:
                identity = subject if isinstance(subject, str) else subject.request_id
                self._compare(identity, "slide" if slides else self._why)

        return wrapped

    def _compare(self, identity: str, why: str) -> None:
        recorder = self._recorder
        name = recorder.of_id(identity)
        tables = self._tables.get(name)
        if tables is None:
            tables = self._tables[name] = [_Table() for _ in self._managers]
        gained: list[tuple[int, int, int]] = []
        for group, (manager, table) in enumerate(zip(self._managers, tables, strict=True)):
            now = [block.block_id for block in manager.req_to_blocks.get(identity, ())]
            if now == table.blocks:
                continue
            for lease in table.lost(now):
                recorder.emit(Free(recorder.step, SCHEDULER_RANK, lease, name, why))
            gained += [(group, position, now[position]) for position in table.update(now)]
        self._gain(name, tables, gained)
        if not any(table.blocks for table in tables):
            del self._tables[name]

    def _gain(self, name: str, tables: list[_Table], gained: list[tuple[int, int, int]]) -> None:
        """Shares before leases, as the manager holds cached blocks before it asks for new ones."""
        recorder = self._recorder
        for group, position, block in gained:
            if block not in self._handed:
                lease = tables[group].leases[position] = self._lease_of[block]
                recorder.emit(Share(recorder.step, SCHEDULER_RANK, lease, name, group, position))
        for group, position, block in gained:
            if block in self._handed:
                tables[group].leases[position] = self._lease(name, group, position, block)
        if len(self._handed) > sum(block in self._handed for _, _, block in gained):
            self._kept_aside(name, {block for _, _, block in gained})

    def _lease(self, name: str, group: int, position: int, block: int) -> int:
        lease = self._next_lease
        self._next_lease += 1
        self._lease_of[block] = lease
        self._fresh.add(lease)
        recorder = self._recorder
        recorder.emit(Lease(recorder.step, SCHEDULER_RANK, lease, block, name, group, position))
        return lease

    def _kept_aside(self, name: str, in_table: set[int]) -> None:
        """Blocks handed out into no table: copies that keep a cached state as it is.

        A request that goes on writing into a block whose state is cached moves the cache entry to
        a new block, which this step's copy fills. It is told as the request letting go of its own
        block, holding the new one for a moment, and sharing its own again.
        """
        recorder = self._recorder
        copies = {
            copy.block_id: (source.block_id, group)
            for group, manager in enumerate(self._managers)
            for source, copy in getattr(manager, "_pending_cow_copies", ())
        }
        for block in self._handed:
            if block in in_table or block not in copies:
                continue
            source, group = copies[block]
            position = self._tables[name][group].blocks.index(source)
            own = self._tables[name][group].leases[position]
            recorder.emit(Free(recorder.step, SCHEDULER_RANK, own, name, "other"))
            lease = self._lease(name, group, position, block)
            recorder.emit(Free(recorder.step, SCHEDULER_RANK, lease, name, "other"))
            recorder.emit(Share(recorder.step, SCHEDULER_RANK, own, name, group, position))

    @contextlib.contextmanager
    def because(self, why: str) -> Iterator[None]:
        """Blocks given up meanwhile are given up for this reason, as ``Free.why`` knows it."""
        before, self._why = self._why, why
        try:
            yield
        finally:
            self._why = before

    def lease(self, block: int) -> int:
        """The current lease of ``block``; 0 when it was never handed out."""
        return self._lease_of.get(block, 0)

    def advance(self, identity: str, start: int, end: int) -> None:
        """Lease recurrent blocks again whose state the step's forward ``[start, end)`` advances.

        The running state after ``end`` tokens lies at position ``(end - 1) // tokens_per_block``.
        When the state after ``start`` tokens lies at the same position, the forward overwrites it.
        A block that another request holds too is left alone: nobody may change it.
        """
        recorder = self._recorder
        for group, size in self._recurrent:
            position = (end - 1) // size
            if start <= position * size:
                continue
            name = recorder.of_id(identity)
            table = self._tables[name][group]
            block = table.blocks[position]
            lease = table.leases[position]
            if block == 0 or lease in self._fresh or self._blocks[block].ref_cnt != 1:
                continue
            recorder.emit(Free(recorder.step, SCHEDULER_RANK, lease, name, "advance"))
            table.leases[position] = self._lease(name, group, position, block)

    def window_closes(self) -> None:
        """The step's schedule ends: leases made so far are no longer fresh."""
        self._fresh.clear()


class _Table:
    """One group's table of one request, as last seen; block 0 is the null block, lease 0 none."""

    __slots__ = ("blocks", "leases")

    def __init__(self) -> None:
        self.blocks: list[int] = []
        self.leases: list[int] = []

    def lost(self, now: list[int]) -> list[int]:
        """Leases given up, last position first, as the manager frees them."""
        kept = len(now)
        return [
            self.leases[position]
            for position in range(len(self.blocks) - 1, -1, -1)
            if self.blocks[position]
            and (position >= kept or now[position] != self.blocks[position])
        ]

    def update(self, now: list[int]) -> list[int]:
        """Take ``now`` over; returns the positions that hold a new block."""
        before = len(self.blocks)
        gained = []
        leases = self.leases[: len(now)] + [0] * (len(now) - before)
        for position, block in enumerate(now):
            if position >= before or block != self.blocks[position]:
                leases[position] = 0
                if block:
                    gained.append(position)
        self.blocks, self.leases = now, leases
        return gained
