"""Our tier's worker for KV caches on a GPU, inside the release, over CUDA as it is emulated.

This file runs itself once inside the release and prints what it saw; the tests read that. The
tensors lie in host memory and only say that they are on a GPU.
"""

from __future__ import annotations

import functools
import importlib
import json
import subprocess
import sys
from typing import Any

import pytest

from kvproof.conformance.engines.base import GroupSetup, Setup
from kvproof.conformance.errors import UsageError
from kvproof.conformance.releases import child_environment

pytestmark = pytest.mark.vllm

RELEASE = "0.32.0"
BLOCKS, PAGE, PADDED, PER = 12, 4096, 4160, 2


@functools.cache
def seen() -> dict[str, Any]:
    try:
        environment = child_environment(RELEASE)
    except UsageError as missing:
        pytest.skip(str(missing))
    ended = subprocess.run(
        [sys.executable, "-P", __file__], env=environment, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    told: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return told


def test_bytes_come_back_and_nothing_beside_them_changes() -> None:
    assert seen()["there and back"] == {
        "stored": [[0, True, 3 * PAGE]],
        "loaded": [[1, True, 2 * PAGE]],
        # Blocks 5 and 6 came from 1 and 2, of the other ones nothing has changed.
        "same": {"5": 1, "6": 2},
        "others changed": [],
        "padding changed": False,
        "races": [],
    }


def test_copies_go_in_batches_from_pinned_memory() -> None:
    calls = seen()["calls"]
    assert calls["cudaHostRegister"] == 1
    assert calls["cuMemcpyBatchAsync"] == 2
    assert "cudaMemcpyAsync" not in calls


def test_a_copy_that_cannot_be_made_is_a_failed_result() -> None:
    assert seen()["failing"] == [[2, False, 0]]


def test_everything_is_given_back() -> None:
    assert seen()["live"] == {"streams": 0, "events": 0, "pins": 0, "descriptors": 0}


@pytest.mark.parametrize(
    ("case", "said"),
    [
        (
            "no bindings",
            "transfers on a GPU need NVIDIA's Python bindings:"
            " pip install 'kvproof[transfer]' (not here)",
        ),
        ("two GPUs", "KV caches of one worker lie on devices [0, 1]"),
        (
            "odd tensors",
            "KV caches cannot be offloaded: a KV cache of torch.float16 and shape (12, 4160) is not"
            " blocks of bytes",
        ),
        (
            "no streams",
            "KV caches cannot be offloaded: cudaStreamCreateWithFlags failed: 1",
        ),
    ],
)
def test_what_cannot_be_served_is_said_in_one_line(case: str, said: str) -> None:
    assert seen()[case] == said


# --- inside the release ---


class OnGpu:
    """A tensor in host memory that says it is on a GPU."""

    def __init__(self, tensor: Any, index: int = 0) -> None:
        self._tensor = tensor
        self.device = type("Device", (), {"type": "cuda", "index": index})()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tensor, name)


def look() -> dict[str, Any]:
    from collections import Counter
    from unittest import mock

    import numpy as np
    import torch

    from kvproof.conformance.device.cuda import COMPUTE, EmulatedCuda
    from kvproof.conformance.device.device import SimulatedDevice
    from kvproof.conformance.device.policy import Late
    from kvproof.conformance.engines.vllm.configs import build
    from kvproof.conformance.engines.vllm.features import detect
    from kvproof.conformance.engines.vllm.release import load, module
    from kvproof.impl.transfer.cuda import CudaRuntime

    release = load()
    base: Any = release.offload
    own_tier: Any = importlib.import_module("kvproof.impl.connector.own_tier")
    copying: Any = importlib.import_module("kvproof.impl.connector.copying")
    offload_config = module(
        "vllm.distributed.kv_transfer.kv_connector.v1.offloading.config"
    ).build_offloading_config
    words: Any = importlib.import_module("vllm.v1.kv_offload.cpu.common").CPULoadStoreSpec

    def spec() -> Any:
        config = build(release, detect(release), Setup(groups=(GroupSetup("full", 16),)))
        config.vllm_config.kv_transfer_config.kv_connector_extra_config = {
            "spec_name": "KvproofOffloadingSpec",
            "spec_module_path": "kvproof.impl.connector.own_tier",
            "cpu_bytes_to_use": 1 << 16,
            "blocks_per_chunk": PER,
        }
        return own_tier.KvproofOffloadingSpec(
            offload_config(config.vllm_config, config.kv_cache_config)
        )

    def caches(*tensors: Any) -> Any:
        return base.CanonicalKVCaches(
            [base.CanonicalKVCacheTensor(tensor, PAGE) for tensor in tensors],
            [[base.CanonicalKVCacheRef(number, PAGE) for number in range(len(tensors))]],
        )

    def line(kv_caches: Any, runtime: Any) -> str | None:
        with mock.patch.object(own_tier, "cuda_runtime", runtime):
            try:
                spec().get_worker(kv_caches)
            except Exception as refusal:
                return str(refusal)
        return None

    def gpu(blocks: list[int]) -> Any:
        return base.GPULoadStoreSpec(blocks, group_sizes=(len(blocks),), block_indices=(0,))

    device = SimulatedDevice(Late())
    cuda = EmulatedCuda(device)

    def emulated(index: int) -> CudaRuntime:
        assert index == 0
        return CudaRuntime(index, lambda: COMPUTE, None, cuda)

    raw = torch.randint(-128, 128, (BLOCKS, PADDED), dtype=torch.int8)
    tensor = raw
    before = raw.numpy().copy()
    device.memory.add("the KV cache", raw.numpy().view(np.uint8).reshape(-1))
    ours = spec()
    with mock.patch.object(own_tier, "cuda_runtime", emulated):
        add = device.memory.add
        region = own_tier.Region

        def known(*arguments: Any) -> Any:
            made = region(*arguments)
            add("the tier", made.part.view(np.uint8))
            return made

        with mock.patch.object(own_tier, "Region", known):
            worker = ours.get_worker(caches(OnGpu(tensor)))
    assert ours.get_worker(caches(OnGpu(tensor))) is worker
    found: dict[str, Any] = {}
    worker.submit_store(0, gpu([1, 2, 3]), words([0, 1]))
    worker.wait({0})
    stored = results(worker)
    worker.submit_load(1, words([0]), gpu([5, 6]))
    worker.wait({1})
    after = raw.numpy()
    same = {
        str(block): next(
            (n for n in range(BLOCKS) if (after[block, :PAGE] == before[n, :PAGE]).all()), -1
        )
        for block in (5, 6)
    }
    others = [n for n in range(BLOCKS) if n not in (5, 6) and (after[n] != before[n]).any()]
    found["there and back"] = {
        "stored": stored,
        "loaded": results(worker),
        "same": same,
        "others changed": others,
        "padding changed": bool((after[:, PAGE:] != before[:, PAGE:]).any()),
        "races": [str(race) for race in device.races],
    }
    found["calls"] = Counter(cuda.calls)
    cuda.refused = {"cuMemcpyBatchAsync"}
    worker.submit_store(2, gpu([4]), words([2]))
    found["failing"] = results(worker)
    cuda.refused = set()
    worker.shutdown()
    found["live"] = device.live

    present = importlib.import_module

    def absent(name: str, package: str | None = None) -> Any:
        if name.startswith("cuda."):
            raise ImportError("not here")
        return present(name, package)

    with mock.patch.object(importlib, "import_module", absent):
        found["no bindings"] = line(caches(OnGpu(tensor)), copying.cuda_runtime)
    found["two GPUs"] = line(caches(OnGpu(tensor), OnGpu(tensor, 1)), emulated)
    found["odd tensors"] = line(caches(OnGpu(tensor.to(torch.float16))), emulated)
    cuda.refused = {"cudaStreamCreateWithFlags"}
    found["no streams"] = line(caches(OnGpu(tensor)), emulated)
    return found


def results(worker: Any) -> list[list[Any]]:
    return [[r.job_id, r.success, r.transfer_size] for r in worker.get_finished()]


if __name__ == "__main__":
    print(json.dumps(look()))
