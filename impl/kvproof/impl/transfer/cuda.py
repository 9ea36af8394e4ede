"""The runtime of a GPU, through NVIDIA's own Python bindings.

Nothing here is imported before a runtime is made, and what is missing is said in one line. Copies
go, whichever comes first,

- to a kernel that a few of the GPU's processors run, for loads of small pages (``cuda_kernel``),
- in batches to the copy engines (``cuda_batch``; the driver must be of CUDA 12.8 or newer, and the
  host's memory pinned), or
- one by one.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from kvproof.impl.transfer.cuda_batch import SYMBOL, VERSION, BatchedCopy
from kvproof.impl.transfer.plan import CopyPlan, Scratch
from kvproof.impl.transfer.runtime import Edge, Reads, TransferError

EVERY_DEFAULT = 0
"""Flags of events, of waiting, of pinning and of looking a function up."""

NON_BLOCKING = 1
"""``cudaStreamNonBlocking``: not ordered with the default stream behind one's back."""

ANY_DIRECTION = 4
"""``cudaMemcpyDefault``: addresses say on which side they are."""

NOT_READY = 600
"""``cudaErrorNotReady``."""


class Kernel(Protocol):
    """Copies by kernel; see ``cuda_kernel``."""

    def takes(self, plan: CopyPlan) -> bool:
        """Is the kernel the faster way?"""
        ...

    def __call__(self, stream: int, plan: CopyPlan) -> Any:
        """Launch it; returns what must live until it has ended."""
        ...


@dataclass(frozen=True, slots=True)
class CudaStream:
    """A stream by its handle."""

    handle: int
    name: str


class CudaRuntime:
    """Streams, events and copies of one GPU.

    Attributes:
        pinned: whether all host memory could be pinned, so far; batches need that.
    """

    def __init__(
        self,
        device: int,
        compute: Callable[[], int],
        kernel: Kernel | None = None,
        api: Any = None,
    ) -> None:
        """Use a GPU from this thread.

        Args:
            device: the number of the GPU.
            compute: handle of the stream to which the model's work goes now; with PyTorch
                ``lambda: torch.cuda.current_stream(device).cuda_stream``.
            kernel: for loads of small pages; None leaves them to the copy engines.
            api: in place of ``cuda.bindings.runtime``.

        Raises:
            TransferError: the bindings are not installed, or there is no such GPU.
        """
        self._api = bindings() if api is None else api
        count = int(self._do("cudaGetDeviceCount"))
        if not 0 <= device < count:
            raise TransferError(f"there is no CUDA device {device}: {count} are found")
        self._do("cudaSetDevice", device)
        self._compute = compute
        self._kernel = kernel
        self._batched = self._look_up()
        self._scratch = Scratch()
        self.pinned = True

    def _do(self, name: str, *arguments: Any) -> Any:
        """Call the CUDA runtime; its result without the error.

        Raises:
            TransferError: the error, by name.
        """
        error, *results = getattr(self._api, name)(*arguments)
        if int(error):
            raise TransferError(f"{name} failed: {getattr(error, 'name', error)}")
        return results[0] if results else None

    def _look_up(self) -> BatchedCopy | None:
        """The driver's batched copy, if it has one."""
        try:
            function = self._do("cudaGetDriverEntryPointByVersion", SYMBOL, VERSION, EVERY_DEFAULT)
        except TransferError:
            return None
        return BatchedCopy(int(function)) if function else None

    @property
    def batches(self) -> bool:
        """Do copies go to the copy engines in batches?"""
        return self._batched is not None and self.pinned

    # --- streams and events ---

    def stream(self, name: str) -> CudaStream:
        """A stream that runs beside all others."""
        return CudaStream(int(self._do("cudaStreamCreateWithFlags", NON_BLOCKING)), name)

    def compute(self) -> CudaStream:
        """The model's stream."""
        return CudaStream(self._compute(), "compute")

    def event(self) -> Any:
        """An event that tells times."""
        return self._do("cudaEventCreateWithFlags", EVERY_DEFAULT)

    def record(self, event: Any, stream: CudaStream) -> None:
        """Let the event stand for this place in the stream."""
        self._do("cudaEventRecord", event, stream.handle)

    def order(self, stream: CudaStream, event: Any, why: Edge) -> None:
        """Let the stream wait for the event as it is now."""
        self._do("cudaStreamWaitEvent", stream.handle, event, EVERY_DEFAULT)

    def done(self, event: Any) -> bool:
        """Has the event been passed?"""
        (error,) = self._api.cudaEventQuery(event)
        if int(error) == NOT_READY:
            return False
        if int(error):
            raise TransferError(f"cudaEventQuery failed: {getattr(error, 'name', error)}")
        return True

    def wait(self, event: Any) -> None:
        """Return when it has."""
        self._do("cudaEventSynchronize", event)

    def drain(self, stream: CudaStream) -> None:
        """Return when the stream has done all that it was given."""
        self._do("cudaStreamSynchronize", stream.handle)

    def seconds(self, start: Any, end: Any) -> float:
        """Seconds between two events."""
        return float(self._do("cudaEventElapsedTime", start, end)) / 1e3

    def destroy_event(self, event: Any) -> None:
        """Give an event back."""
        self._do("cudaEventDestroy", event)

    def destroy_stream(self, stream: CudaStream) -> None:
        """Give a stream back."""
        self._do("cudaStreamDestroy", stream.handle)

    # --- memory ---

    def pin(self, address: int, size: int) -> None:
        """Pin host memory; when that fails, copies go one by one from now on."""
        try:
            self._do("cudaHostRegister", address, size, EVERY_DEFAULT)
        except TransferError:
            self.pinned = False
            raise

    def unpin(self, address: int) -> None:
        """Undo it."""
        self._do("cudaHostUnregister", address)

    def copy(self, stream: CudaStream, plan: CopyPlan, reads: Reads) -> Any:
        """Give all copies to the stream, by the fastest way that is open."""
        if not plan.count:
            return None
        small = self._kernel is not None and stream.name == "kv-load" and self.pinned
        if small and self._kernel is not None and self._kernel.takes(plan):
            return self._kernel(stream.handle, plan)
        if self._batched is not None and self.pinned:
            self._batched(stream.handle, plan, reads)
            return None
        for batch in plan.batches(self._scratch):
            columns = (batch.targets.tolist(), batch.sources.tolist(), batch.sizes.tolist())
            for target, source, size in zip(*columns, strict=True):
                self._do("cudaMemcpyAsync", target, source, size, self._direction, stream.handle)
        return None

    @property
    def _direction(self) -> Any:
        kinds = getattr(self._api, "cudaMemcpyKind", None)
        return ANY_DIRECTION if kinds is None else kinds(ANY_DIRECTION)

    def reuse(self, held: Any) -> None:
        """What a kernel held goes with its last reference."""


def bindings() -> Any:
    """NVIDIA's bindings of the CUDA runtime.

    Raises:
        TransferError: they are not installed.
    """
    try:
        return importlib.import_module("cuda.bindings.runtime")
    except ImportError as error:
        raise TransferError(
            "transfers on a GPU need NVIDIA's Python bindings:"
            f" pip install 'kvproof[transfer]' ({error})"
        ) from None
