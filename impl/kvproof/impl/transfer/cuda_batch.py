"""Many copies in one call of the CUDA driver, from arrays as they are.

NVIDIA's Python bindings have this call too, but take every address as a Python object: for 8,192
copies that costs more than the copies do. They do tell where the driver's own function lies, and
that one takes addresses of arrays.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from kvproof.impl.transfer.plan import Batch, CopyPlan, Scratch
from kvproof.impl.transfer.runtime import Reads, TransferError

SYMBOL = b"cuMemcpyBatchAsync"

VERSION = 12080
"""The interface asked for: the first one, of CUDA 12.8, which later drivers go on offering."""

PROTOTYPE = ctypes.CFUNCTYPE(
    ctypes.c_int,  # CUresult
    ctypes.c_void_p,  # targets
    ctypes.c_void_p,  # sources
    ctypes.c_void_p,  # sizes
    ctypes.c_size_t,  # count
    ctypes.c_void_p,  # attributes
    ctypes.c_void_p,  # for each of these, the first copy that it is for
    ctypes.c_size_t,  # how many
    ctypes.POINTER(ctypes.c_size_t),  # set to the copy that failed
    ctypes.c_void_p,  # stream
)

ATTRIBUTES = np.dtype(
    [
        ("source_order", "i4"),
        ("source_location", "i4", 2),
        ("target_location", "i4", 2),
        ("flags", "u4"),
    ]
)
"""``CUmemcpyAttributes``; locations matter to managed memory only."""

SOURCE_ORDER = {Reads.IN_STREAM_ORDER: 1, Reads.AT_ANY_TIME: 3}
"""``CUmemcpySrcAccessOrder``."""

PREFER_OVERLAP_WITH_COMPUTE = 1
"""A hint (``CUmemcpyFlags``): the model is running meanwhile."""


class BatchedCopy:
    """The driver's batched copy; ``function`` is its address."""

    def __init__(self, function: int) -> None:
        self._call: Any = PROTOTYPE(function)
        self._scratch = Scratch()
        self._first = np.zeros(1, np.uint64)
        self._attributes = np.zeros(1, ATTRIBUTES)
        self._attributes["flags"] = PREFER_OVERLAP_WITH_COMPUTE

    def __call__(self, stream: int, plan: CopyPlan, reads: Reads) -> None:
        """Give all copies of a plan to a stream; the driver has read the arrays on return.

        Raises:
            TransferError: the driver refuses; batches before that are under way.
        """
        self._attributes["source_order"] = SOURCE_ORDER[reads]
        for batch in plan.batches(self._scratch):
            self._give(stream, batch)

    def _give(self, stream: int, batch: Batch) -> None:
        failed = ctypes.c_size_t(0)
        code = self._call(
            batch.targets.ctypes.data,
            batch.sources.ctypes.data,
            batch.sizes.ctypes.data,
            len(batch.sizes),
            self._attributes.ctypes.data,
            self._first.ctypes.data,
            1,
            ctypes.byref(failed),
            stream,
        )
        if code:
            raise TransferError(
                f"a batch of {len(batch.sizes)} copies was refused: CUDA driver error {code}"
            )
