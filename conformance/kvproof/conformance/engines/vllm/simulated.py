"""A copier that copies: kvproof's engine of transfers, on its CUDA runtime, on a simulated device.

What the worker submits moves bytes, what the model computes writes and reads some, and the device
does all of it as early or as late as streams and events allow. Which copies end before a poll is
the history's choice as ever; in which order the device works is drawn from the setup.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

import msgspec

from kvproof.conformance.device.caches import Placed, SimulatedCaches, Stretch
from kvproof.conformance.device.cuda import COMPUTE, EmulatedCuda
from kvproof.conformance.device.device import SimulatedDevice
from kvproof.conformance.device.policy import Priorities
from kvproof.conformance.engines.base import GroupSetup, Setup
from kvproof.conformance.engines.vllm import decode
from kvproof.conformance.engines.vllm.copier import RecordingCopier
from kvproof.conformance.planted import planted_runtime
from kvproof.conformance.trace.events import Computing, Done, Raced, WrongBytes
from kvproof.impl.transfer.cuda import CudaRuntime
from kvproof.impl.transfer.engine import Ended, TransferEngine
from kvproof.impl.transfer.pieces import pieces

POLLS_TO_REST = 8
"""So many polls with nothing in flight, and the calling thread waits for the model, too."""

COPY_CALLS = frozenset({"cuMemcpyBatchAsync", "cudaMemcpyAsync"})


class SimulatedCopier(RecordingCopier):
    """One rank's copies, and its model."""

    def __init__(self, *arguments: Any, setup: Setup) -> None:
        super().__init__(*arguments)
        seed = zlib.crc32(msgspec.json.encode(setup)) + self._rank
        self._groups = setup.groups
        self._device = SimulatedDevice(Priorities(seed))
        self._caches = SimulatedCaches(
            self._device,
            [group.tokens_per_block for group in setup.groups],
            setup.num_gpu_blocks + 1,
            setup.num_slots,
            setup.blocks_per_chunk,
        )
        self._cuda = EmulatedCuda(self._device)
        runtime = CudaRuntime(0, lambda: COMPUTE, None, self._cuda)
        self._engine: TransferEngine[Any, Any] = TransferEngine(
            planted_runtime(setup.planted, runtime), self._caches.layout
        )
        self._tables: dict[str, list[list[int]]] = {}
        self._moved: dict[int, list[Placed]] = {}
        self._known: dict[int, Ended] = {}
        self._told = self._complained = self._idle = 0

    # --- the copier's interface ---

    def wait(self, job_ids: Iterable[int]) -> None:
        """Let the engine wait for the named jobs."""
        jobs = [int(job) for job in job_ids]
        self._engine.wait(jobs)
        self._collect()
        super().wait(jobs)
        self._look()

    def get_finished(self) -> list[Any]:
        """Let those copies end that the step's policy says, then hand over all that has ended."""
        failing = {
            "kv-store": self.fail in ("all", "stores"),
            "kv-load": self.fail in ("all", "loads"),
        }
        self._cuda.broken = {name for name, fails in failing.items() if fails}
        self._collect()
        moved = True
        while moved and self._awaited():
            moved = self._device.progress()
            self._collect()
        self._cuda.broken = set()
        ended = super().get_finished()
        self._idle += not (self._stores or self._loads)
        if self._idle >= POLLS_TO_REST and not (self._stores or self._loads):
            self._idle = 0
            self._device.rest()
            self._caches.look()
        self._look()
        return ended

    def shutdown(self) -> None:
        """End the engine, and see that nothing is left of it."""
        self._engine.shutdown()

    # --- the model ---

    def changes(self, output: Any) -> None:
        """What happens to tables and blocks before a step's copies are submitted."""
        # First of all, for an id may be used again at once.
        for identity in output.finished_req_ids:
            self._tables.pop(identity, None)
        for new in output.scheduled_new_reqs:
            self._tables[new.req_id] = [list(ids) for ids in new.block_ids]
        cached = output.scheduled_cached_reqs
        for identity, ids in zip(cached.req_ids, cached.new_block_ids, strict=True):
            if identity in cached.resumed_req_ids:
                self._tables[identity] = [list(own) for own in ids or ()]
            elif ids is not None:
                for own, more in zip(self._tables[identity], ids, strict=True):
                    own.extend(more)
        if zeroed := getattr(output, "new_block_ids_to_zero", None):
            self._caches.clear(f"the clearing of step {self.step}", zeroed)
        for one in getattr(output, "kv_cache_block_copies", None) or ():
            what = f"the block copy of step {self.step}"
            self._caches.copy_block(what, one.src_block_id, one.dst_block_id)

    def forward(self, output: Any, computing: list[Computing]) -> None:
        """The model reads what each token attends to, and writes what it computes."""
        reads: list[Stretch] = []
        writes: list[Stretch] = []
        for identity, one in zip(output.num_scheduled_tokens, computing, strict=True):
            for number, group in enumerate(self._groups):
                table = self._tables[identity][number]
                first = _first_read(group, one.start)
                reads += _stretches(number, group, table, first, one.start)
                writes += _stretches(number, group, table, one.start, one.end)
        self._caches.compute(f"the forward of step {self.step}", reads, writes)
        self._look()

    # --- what it does ---

    def _submit(self, lane: dict[int, None], job: int, blocks: Any, slots: Any) -> bool:
        if not super()._submit(lane, job, blocks, slots):
            return False
        per = self._blocks_per_chunk
        of = blocks.block_ids, blocks.group_sizes, blocks.block_indices, slots.block_ids
        store = lane is self._stores
        # A copy that is to fail may do so at once.
        refused = bool(job % 2) and self.fail in ("all", "stores" if store else "loads")
        self._cuda.refused = set(COPY_CALLS) if refused else set()
        submit = self._engine.submit_store if store else self._engine.submit_load
        submit(int(job), pieces(*of, per))
        self._cuda.refused = set()
        told = decode.pieces(of[0].tolist(), of[1], of[2], of[3].tolist(), per)
        moved = [Placed(p.group, p.block, p.slot, p.offset) for p in told]
        self._moved[int(job)] = moved
        if not refused:
            (self._caches.stored if store else self._caches.loaded)(moved)
        self._look()
        return True

    def _collect(self) -> None:
        for end in self._engine.ended():
            self._known[end.job] = end

    def _awaited(self) -> bool:
        """Whether some copy that is to end now has not."""
        lanes = (("stores", self._stores), ("loads", self._loads))
        for name, lane in lanes:
            if self.finish in ("all", name) or (self.finish == "rank0" and self._rank == 0):
                wanted = list(lane)
            else:
                wanted = list(lane)[:1] if self.finish == "oldest" else []
            if any(job not in self._known for job in wanted):
                return True
        return False

    def _end(self, lane: dict[int, None], jobs: list[int]) -> None:
        for job in jobs:
            del lane[job]
            self._ended.append(job)
            end, moved = self._known.pop(job, None), self._moved.pop(job)
            ok = end is None or end.error is None
            if not ok:
                self.failed.add(job)
                self._caches.spoiled(moved, lane is self._stores)
            self._emit(Done(self.step, self._rank, job, ok))

    def _look(self) -> None:
        """Tell what the device and the model have seen since last time."""
        races, wrong = self._device.races, self._caches.wrong
        for race in races[self._told :]:
            self._emit(
                Raced(
                    self.step,
                    self._rank,
                    race.earlier.what,
                    race.earlier_does,
                    race.later.what,
                    race.later_does,
                    race.where,
                )
            )
        for what in wrong[self._complained :]:
            self._emit(WrongBytes(self.step, self._rank, what))
        self._told, self._complained = len(races), len(wrong)


def _first_read(group: GroupSetup, start: int) -> int:
    """The first token that a forward from ``start`` on attends to."""
    window = group.window or 0
    match group.kind:
        case "window":
            return max(0, start - window + 1)
        case "chunked":
            return start // window * window
        case _:
            return 0


def _stretches(
    number: int, group: GroupSetup, table: list[int], first: int, last: int
) -> list[Stretch]:
    """Tokens [first, last) of a request, block by block; where there is no block, nothing."""
    size = group.tokens_per_block
    found = []
    for position in range(first // size, -(-last // size)):
        if position < len(table) and table[position]:
            start = position * size
            found.append(
                Stretch(
                    number,
                    table[position],
                    max(0, first - start),
                    min(size, last - start),
                )
            )
    return found
