"""The decoding of a job into pieces: against written examples, and against each release's own copy
worker, run for real down to the pointers that it hands to the batched copy.

The second part runs this file inside each installed release, since a release's copy worker can only
be imported there; streams and events are stood in for, the arithmetic is the release's.
"""

from __future__ import annotations

import importlib
import json
import random
import subprocess
import sys
import types
from typing import Any

import pytest

from kvproof.conformance.engines.vllm.decode import SizesDiffer, pieces
from kvproof.conformance.errors import UsageError
from kvproof.conformance.releases import child_environment
from kvproof.conformance.trace.events import Piece

RELEASES = (
    # Those that are not installed are skipped.
    *("0.21.0", "0.22.1", "0.23.0", "0.24.0", "0.25.1", "0.26.0", "0.27.1"),
    *("0.28.0", "0.29.0", "0.30.0", "0.31.0", "0.32.0", "0.33.0"),
)
PAGE = 16


def test_one_block_a_chunk_pairs_blocks_with_slots() -> None:
    assert pieces([7, 8], [2], [5], [3, 1], 1) == [Piece(0, 7, 3, 0), Piece(0, 8, 1, 0)]


def test_a_group_that_starts_in_mid_chunk_starts_at_its_offset() -> None:
    assert pieces([7, 8, 9], [3], [5], [3, 1], 2) == [
        Piece(0, 7, 3, 1),
        Piece(0, 8, 1, 0),
        Piece(0, 9, 1, 1),
    ]


def test_each_group_takes_its_slots_in_turn_and_empty_groups_take_none() -> None:
    assert pieces([7, 8, 9], [1, 0, 2], [3, 9, 0], [4, 5], 2) == [
        Piece(0, 7, 4, 1),
        Piece(2, 8, 5, 0),
        Piece(2, 9, 5, 1),
    ]


def test_a_gap_in_mid_chunk_shifts_what_follows() -> None:
    """Blocks at positions 0 and 2 of a chunk, position 1 left out: the rule closes the gap."""
    assert pieces([7, 9], [2], [0], [4], 4) == [Piece(0, 7, 4, 0), Piece(0, 9, 4, 1)]


@pytest.mark.parametrize(
    ("blocks", "sizes", "slots"),
    [
        pytest.param([7, 8, 9], [3], [1], id="a slot too few"),
        pytest.param([7, 8], [2], [1, 2], id="a slot too many"),
        pytest.param([7, 8], [1], [1], id="a block in no group"),
        pytest.param([7, 8, 9], [2, 1], [1], id="no slot for the second group"),
    ],
)
def test_sizes_that_differ_are_refused(
    blocks: list[int], sizes: list[int], slots: list[int]
) -> None:
    with pytest.raises(SizesDiffer):
        pieces(blocks, sizes, [0] * len(sizes), slots, 2)


@pytest.mark.vllm
@pytest.mark.parametrize("release", RELEASES)
def test_the_copy_worker_of_the_release_copies_exactly_these_pieces(release: str) -> None:
    try:
        environment = child_environment(release)
    except UsageError as missing:
        pytest.skip(str(missing))
    ended = subprocess.run(
        [sys.executable, "-P", __file__], env=environment, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout.splitlines()[-1]) == {"agreed": 300, "refused": 100}


# --- inside a release ----------------------------------------------------------------------------


class _Device:
    """Streams and events of a device that has none; anything asked of it is itself."""

    def __getattr__(self, _name: str) -> Any:
        return self

    def __call__(self, *_args: Any, **_kwargs: Any) -> Any:
        return self

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_args: Any) -> None:
        return None


class _TorchWithoutDevice:
    """torch, with device streams and events stood in for."""

    cuda = _Device()
    Event = _Device()

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module("torch"), name)


class _CopyWorker:
    """A release's single-direction handler over CPU tensors; it records what it would copy."""

    def __init__(self, store: bool, blocks_per_chunk: int, groups: int) -> None:
        torch: Any = importlib.import_module("torch")
        module: Any = importlib.import_module("vllm.v1.kv_offload.cpu.gpu_worker")
        base: Any = importlib.import_module("vllm.v1.kv_offload.base")
        common: Any = importlib.import_module("vllm.v1.kv_offload.cpu.common")
        module.torch, module.current_platform = _TorchWithoutDevice(), _Device()
        module.ops = types.SimpleNamespace(swap_blocks_batch=self._record)
        self._specs = base.GPULoadStoreSpec, common.CPULoadStoreSpec
        self._store, self._blocks_per_chunk = store, blocks_per_chunk
        self.gpu = torch.zeros((64, PAGE), dtype=torch.int8)
        self.cpu = torch.zeros((64, PAGE * blocks_per_chunk), dtype=torch.int8)
        refs = [[base.CanonicalKVCacheRef(tensor_idx=0, page_size_bytes=PAGE)]] * groups
        handler = object.__new__(module.SingleDirectionOffloadingHandler)
        ours, theirs = ([self.gpu], [self.cpu]) if store else ([self.cpu], [self.gpu])
        factors = (1, blocks_per_chunk) if store else (blocks_per_chunk, 1)
        vars(handler).update(
            src_tensors=ours,
            dst_tensors=theirs,
            gpu_to_cpu=store,
            transfer_type=("GPU", "CPU"),
            # The names of these changed over the releases; each reads its own.
            layer_refs_per_group=refs,
            kv_cache_groups_data_refs=refs,
            group_block_sizes_in_bytes=[PAGE] * groups,
            src_block_size_factor=factors[0],
            dst_block_size_factor=factors[1],
            src_blocks_per_chunk=factors[0],
            dst_blocks_per_chunk=factors[1],
            _canonical_copy_plans=None,
            _swap_blocks_batch=self._record,
            _transfer_events={},
            _transfers=[],
            _stream_pool=[],
            _event_pool=[],
            _buffer_pool=[],
        )
        if hasattr(handler, "_fill_direct_ops"):
            handler._fill_group_ops = handler._fill_direct_ops
        self._handler = handler
        self.batch: list[tuple[int, int]] = []

    def _record(self, source: Any, target: Any, *_rest: Any, **_options: Any) -> None:
        self.batch = list(zip(source.tolist(), target.tolist(), strict=True))

    def copies(
        self, blocks: list[int], sizes: list[int], indices: list[int], slots: list[int]
    ) -> list[tuple[int, int, int]]:
        """(block, slot, offset) of every page that the release would copy, in its order.

        Raises:
            AssertionError: the release refuses the job.
        """
        blocks_spec, slots_spec = self._specs
        ours = blocks_spec(blocks, group_sizes=sizes, block_indices=indices), slots_spec(slots)
        source, target = ours if self._store else (ours[1], ours[0])
        self.batch = []
        transfer = self._handler.transfer_async
        if transfer.__code__.co_argcount == 3:
            transfer(0, (source, target))
        else:
            transfer(0, source, target)
        self._handler._transfers.clear()
        found = []
        for read, written in self.batch:
            at_gpu, at_cpu = (read, written) if self._store else (written, read)
            slot, rest = divmod(at_cpu - self.cpu.data_ptr(), PAGE * self._blocks_per_chunk)
            found.append(((at_gpu - self.gpu.data_ptr()) // PAGE, slot, rest // PAGE))
        return found


def _compare() -> dict[str, int]:
    """Random jobs, right and wrong ones, decoded here and by the release."""
    rng = random.Random(0)
    agreed = refused = 0
    while agreed < 300 or refused < 100:
        store, per_chunk, groups = rng.random() < 0.5, rng.choice([1, 2, 3, 4]), rng.randint(1, 3)
        sizes = [rng.randint(0, 6) for _ in range(groups)]
        indices = [rng.randint(0, 9) for _ in range(groups)]
        needed = sum(
            -(-(size + index % per_chunk) // per_chunk)
            for size, index in zip(sizes, indices, strict=True)
            if size
        )
        slots = rng.sample(range(64), max(0, needed + rng.choice([0, 0, 0, 1, -1])))
        blocks = rng.sample(range(1, 64), sum(sizes))
        worker = _CopyWorker(store, per_chunk, groups)
        try:
            theirs = worker.copies(blocks, sizes, indices, slots)
        except AssertionError:
            try:
                pieces(blocks, sizes, indices, slots, per_chunk)
            except SizesDiffer:
                refused += refused < 100
                continue
            raise
        ours = pieces(blocks, sizes, indices, slots, per_chunk)
        assert theirs == [(p.block, p.slot, p.offset) for p in ours]
        agreed += agreed < 300
    return {"agreed": agreed, "refused": refused}


if __name__ == "__main__":
    print(json.dumps(_compare()))
