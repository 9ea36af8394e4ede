"""What the CUDA runtime assumes of NVIDIA's bindings, and what it says without a GPU."""

from __future__ import annotations

import ctypes
import inspect
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from kvproof.impl.transfer import cuda, cuda_batch
from kvproof.impl.transfer.runtime import Reads, TransferError

driver = pytest.importorskip("cuda.bindings.driver")
runtime = pytest.importorskip("cuda.bindings.runtime")

# Every call that is made, with the arguments that it is given in that order.
CALLS = {
    "cudaEventCreateWithFlags": ["flags"],
    "cudaEventDestroy": ["event"],
    "cudaEventElapsedTime": ["start", "end"],
    "cudaEventQuery": ["event"],
    "cudaEventRecord": ["event", "stream"],
    "cudaEventSynchronize": ["event"],
    "cudaGetDeviceCount": [],
    "cudaGetDriverEntryPointByVersion": ["symbol", "cudaVersion", "flags"],
    "cudaHostRegister": ["ptr", "size", "flags"],
    "cudaHostUnregister": ["ptr"],
    "cudaMemcpyAsync": ["dst", "src", "count", "kind", "stream"],
    "cudaSetDevice": ["device"],
    "cudaStreamCreateWithFlags": ["flags"],
    "cudaStreamDestroy": ["stream"],
    "cudaStreamSynchronize": ["stream"],
    "cudaStreamWaitEvent": ["stream", "event", "flags"],
}


def test_these_are_the_calls_that_are_made() -> None:
    assert set(re.findall(r"\bcuda[A-Z][A-Za-z]+\b", inspect.getsource(cuda.CudaRuntime))) == {
        *CALLS,
        "cudaMemcpyKind",
    }


@pytest.mark.parametrize("name", list(CALLS))
def test_a_call_has_these_arguments(name: str) -> None:
    signature = getattr(runtime, name).__doc__.splitlines()[0]
    written = re.fullmatch(rf"{name}\((.*)\)", signature)
    assert written is not None, signature
    names = [one.split(":")[0].split("*")[-1].split()[-1] for one in written[1].split(",") if one]
    assert names == CALLS[name]


ARGUMENTS: dict[str, Any] = {
    "flags": 0,
    "event": lambda: runtime.cudaEvent_t(0x1000),
    "start": lambda: runtime.cudaEvent_t(0x1000),
    "end": lambda: runtime.cudaEvent_t(0x1000),
    "stream": 0x2000,
    "symbol": cuda_batch.SYMBOL,
    "cudaVersion": cuda_batch.VERSION,
    "ptr": 0x3000,
    "dst": 0x3000,
    "src": 0x4000,
    "size": 4096,
    "count": 4096,
    "kind": lambda: runtime.cudaMemcpyKind(cuda.ANY_DIRECTION),
    "device": 0,
}


@pytest.mark.parametrize("name", list(CALLS))
def test_a_call_takes_what_it_is_given_and_answers_with_an_error_first(name: str) -> None:
    """Handles are plain numbers, events are the bindings' own; without a driver all are refused."""
    if int(runtime.cudaGetDeviceCount()[0]) == 0:
        pytest.skip("there is a GPU, which would take these addresses seriously")
    given = [ARGUMENTS[argument] for argument in CALLS[name]]
    error, *_ = getattr(runtime, name)(*(one() if callable(one) else one for one in given))
    assert isinstance(error, runtime.cudaError_t)
    assert error is runtime.cudaError_t.cudaErrorInsufficientDriver
    assert int(runtime.cudaStream_t(0x2000)) == 0x2000


def test_the_numbers_are_those_of_the_bindings() -> None:
    assert int(runtime.cudaError_t.cudaErrorNotReady) == cuda.NOT_READY
    assert int(runtime.cudaMemcpyKind.cudaMemcpyDefault) == cuda.ANY_DIRECTION
    assert int(runtime.cudaStreamNonBlocking) == cuda.NON_BLOCKING
    for default in ("cudaEventDefault", "cudaEventWaitDefault", "cudaHostRegisterDefault"):
        assert int(getattr(runtime, default)) == cuda.EVERY_DEFAULT
    found_by = driver.CUdriverProcAddress_flags
    assert int(found_by.CU_GET_PROC_ADDRESS_DEFAULT) == cuda.EVERY_DEFAULT
    orders = driver.CUmemcpySrcAccessOrder
    used = cuda_batch.SOURCE_ORDER
    assert used[Reads.IN_STREAM_ORDER] == int(orders.CU_MEMCPY_SRC_ACCESS_ORDER_STREAM)
    assert used[Reads.AT_ANY_TIME] == int(orders.CU_MEMCPY_SRC_ACCESS_ORDER_ANY)
    overlap = driver.CUmemcpyFlags.CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE
    assert int(overlap) == cuda_batch.PREFER_OVERLAP_WITH_COMPUTE


def test_the_attributes_of_a_batch_are_laid_out_as_the_bindings_lay_them_out() -> None:
    theirs = driver.CUmemcpyAttributes()
    theirs.srcAccessOrder = driver.CUmemcpySrcAccessOrder.CU_MEMCPY_SRC_ACCESS_ORDER_ANY
    locations = driver.CUmemLocationType
    theirs.srcLocHint.type = locations.CU_MEM_LOCATION_TYPE_HOST
    theirs.srcLocHint.id = 7
    theirs.dstLocHint.type = locations.CU_MEM_LOCATION_TYPE_DEVICE
    theirs.dstLocHint.id = 5
    theirs.flags = 1
    ours = np.zeros(1, cuda_batch.ATTRIBUTES)
    ours["source_order"] = 3
    ours["source_location"] = int(locations.CU_MEM_LOCATION_TYPE_HOST), 7
    ours["target_location"] = int(locations.CU_MEM_LOCATION_TYPE_DEVICE), 5
    ours["flags"] = 1
    assert ours.itemsize == 24
    assert ctypes.string_at(theirs.getPtr(), 24) == ours.tobytes()


def test_the_bindings_are_those_that_are_installed() -> None:
    assert cuda.bindings() is runtime


def test_without_a_gpu_it_says_so_in_one_line() -> None:
    if int(runtime.cudaGetDeviceCount()[0]) == 0:
        pytest.skip("there is a GPU")
    with pytest.raises(TransferError) as refused:
        cuda.CudaRuntime(0, lambda: 0)
    assert re.fullmatch(r"cudaGetDeviceCount failed: cudaError\w+", str(refused.value))


def test_without_the_bindings_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings.runtime", None)
    with pytest.raises(TransferError) as refused:
        cuda.CudaRuntime(0, lambda: 0)
    message = str(refused.value)
    assert message.startswith("transfers on a GPU need NVIDIA's Python bindings: pip install ")
    assert "kvproof[transfer]" in message
    assert "\n" not in message


def test_importing_the_transfers_imports_nothing_of_a_gpu() -> None:
    code = (
        "import sys, kvproof.impl.transfer.cuda, kvproof.impl.transfer.host;"
        "print(sorted({name.split('.')[0] for name in sys.modules} & {'cuda', 'torch', 'triton'}))"
    )
    done: Any = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")
