"""The calls of CUDA that the CUDA runtime makes, answered by the simulated device.

They have the names, arguments and answers of ``cuda.bindings.runtime``. The driver's batched copy
is a C function here too, so that what goes into it is read as the driver reads it: from arrays and
structures in memory.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from kvproof.conformance.device.device import SimulatedDevice, SimulatedEvent
from kvproof.conformance.device.queues import SimulatedStream
from kvproof.impl.transfer import cuda_batch
from kvproof.impl.transfer.plan import CopyPlan, Grid
from kvproof.impl.transfer.runtime import Edge, Reads, TransferError

SUCCESS, INVALID_VALUE, NOT_READY, ALREADY_REGISTERED, LAUNCH_FAILURE = 0, 1, 600, 712, 719
"""``cudaError_t``."""

COMPUTE = 1
"""The handle of the model's stream."""

ORDERS = {number: reads for reads, number in cuda_batch.SOURCE_ORDER.items()}


class EmulatedCuda:
    """One GPU.

    Without ``batched`` the driver is an old one, which has no batched copy.

    Attributes:
        calls: the names of all calls that were made.
        refused: those that are to fail.
        broken: names of streams on which something went wrong: no event of theirs can be told.
    """

    def __init__(self, device: SimulatedDevice, batched: bool = True) -> None:
        self.calls: list[str] = []
        self.refused: set[str] = set()
        self.broken: set[str] = set()
        self._recorded_on: dict[int, str] = {}
        self._device = device
        self._streams: dict[int, SimulatedStream] = {COMPUTE: device.compute()}
        self._events: dict[int, SimulatedEvent] = {}
        self._pinned: dict[int, int] = {}
        self._names = iter(("kv-store", "kv-load"))
        self._batch = cuda_batch.PROTOTYPE(self._copy_batch) if batched else None

    def _new(self) -> int:
        return 0x1000 + len(self._streams) + len(self._events)

    def _made(self, name: str) -> int:
        self.calls.append(name)
        return INVALID_VALUE if name in self.refused else SUCCESS

    def cudaGetDeviceCount(self) -> tuple[int, int]:
        """One."""
        return self._made("cudaGetDeviceCount"), 1

    def cudaSetDevice(self, device: int) -> tuple[int]:
        """It is the only one."""
        return (self._made("cudaSetDevice"),)

    def cudaGetDriverEntryPointByVersion(
        self, symbol: bytes, version: int, flags: int
    ) -> tuple[int, int | None, int]:
        """The address of the batched copy."""
        error = self._made("cudaGetDriverEntryPointByVersion")
        if self._batch is None or (symbol, version) != (cuda_batch.SYMBOL, cuda_batch.VERSION):
            return error, None, 2
        return error, ctypes.cast(self._batch, ctypes.c_void_p).value, 0

    def cudaStreamCreateWithFlags(self, flags: int) -> tuple[int, int]:
        """A stream, if it does not block the default one."""
        if error := self._made("cudaStreamCreateWithFlags") or flags != 1:
            return int(error), 0
        handle = self._new()
        self._streams[handle] = self._device.stream(next(self._names))
        return SUCCESS, handle

    def cudaStreamDestroy(self, stream: int) -> tuple[int]:
        """Forget it."""
        self._device.destroy_stream(self._streams[stream])
        return (self._made("cudaStreamDestroy"),)

    def cudaStreamSynchronize(self, stream: int) -> tuple[int]:
        """Run until it is empty."""
        self._device.drain(self._streams[stream])
        return (self._made("cudaStreamSynchronize"),)

    def cudaStreamWaitEvent(self, stream: int, event: int, flags: int) -> tuple[int]:
        """Order."""
        why = Edge.STORE_AFTER_COMPUTE  # CUDA is not told why
        self._device.order(self._streams[stream], self._events[event], why)
        return (self._made("cudaStreamWaitEvent"),)

    def cudaEventCreateWithFlags(self, flags: int) -> tuple[int, int]:
        """An event; any flag would keep it from telling times."""
        if error := self._made("cudaEventCreateWithFlags") or flags:
            return int(error), 0
        handle = self._new()
        self._events[handle] = self._device.event()
        return SUCCESS, handle

    def cudaEventDestroy(self, event: int) -> tuple[int]:
        """Forget it."""
        self._device.destroy_event(self._events[event])
        return (self._made("cudaEventDestroy"),)

    def cudaEventRecord(self, event: int, stream: int) -> tuple[int]:
        """Record."""
        self._device.record(self._events[event], self._streams[stream])
        self._recorded_on[event] = self._streams[stream].name
        return (self._made("cudaEventRecord"),)

    def cudaEventQuery(self, event: int) -> tuple[int]:
        """Passed, or not ready."""
        if error := self._made("cudaEventQuery"):
            return (error,)
        if self._recorded_on.get(event) in self.broken:
            return (LAUNCH_FAILURE,)
        return (SUCCESS if self._device.done(self._events[event]) else NOT_READY,)

    def cudaEventSynchronize(self, event: int) -> tuple[int]:
        """Run until it is passed."""
        self._device.wait(self._events[event])
        return (self._made("cudaEventSynchronize"),)

    def cudaEventElapsedTime(self, start: int, end: int) -> tuple[int, float]:
        """In milliseconds."""
        seconds = self._device.seconds(self._events[start], self._events[end])
        return self._made("cudaEventElapsedTime"), 1e3 * seconds

    def cudaHostRegister(self, address: int, size: int, flags: int) -> tuple[int]:
        """Pin, unless some of it is pinned."""
        error = self._made("cudaHostRegister")
        if any(start < address + size and address < end for start, end in self._pinned.items()):
            error = ALREADY_REGISTERED
        if error:
            return (error,)
        self._device.pin(address, size)
        self._pinned[address] = address + size
        return (SUCCESS,)

    def cudaHostUnregister(self, address: int) -> tuple[int]:
        """Unpin what begins exactly here."""
        error = self._made("cudaHostUnregister")
        if address not in self._pinned:
            return (INVALID_VALUE,)
        del self._pinned[address]
        self._device.unpin(address)
        return (error,)

    def cudaMemcpyAsync(
        self, target: int, source: int, size: int, kind: Any, stream: int
    ) -> tuple[int]:
        """One copy, in stream order."""
        if error := self._made("cudaMemcpyAsync") or int(kind) != 4:
            return (int(error),)
        self._copy(stream, [target], [source], [size], Reads.IN_STREAM_ORDER)
        return (SUCCESS,)

    def _copy_batch(
        self,
        targets: int,
        sources: int,
        sizes: int,
        count: int,
        attributes: int,
        firsts: int,
        how_many: int,
        failed: Any,
        stream: int,
    ) -> int:
        """The driver's function. Like every C function it cannot raise."""
        if error := self._made("cuMemcpyBatchAsync"):
            failed[0] = 0
            return error
        one = np.frombuffer(ctypes.string_at(attributes, 24), cuda_batch.ATTRIBUTES)[0]
        reads = ORDERS.get(int(one["source_order"]))
        if how_many != 1 or ctypes.c_size_t.from_address(firsts).value or reads is None:
            return INVALID_VALUE
        to, of, size = (
            np.frombuffer(ctypes.string_at(array, 8 * count), np.int64).tolist()
            for array in (targets, sources, sizes)
        )
        try:
            self._copy(stream, to, of, size, reads)
        except (TransferError, ValueError, KeyError):
            return INVALID_VALUE
        return SUCCESS

    def _copy(
        self,
        stream: int,
        targets: Sequence[int],
        sources: Sequence[int],
        sizes: Sequence[int],
        reads: Reads,
    ) -> None:
        zero = np.zeros(1, np.int64)
        to, of, size = (np.array(column, np.int64) for column in (targets, sources, sizes))
        grid = Grid(zero, zero, of, to, size, int(size.max()))
        plan = CopyPlan((grid,), int(size.sum()))
        self._device.copies(self._streams[stream], plan, reads)
