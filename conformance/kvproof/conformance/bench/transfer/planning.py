"""Addresses of all copies of a job: vLLM's own computation and kvproof's, on one geometry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import torch
from vllm.v1.kv_offload.base import CanonicalKVCacheRef
from vllm.v1.kv_offload.cpu import gpu_worker

from kvproof.conformance.bench.scheduler.timing import in_turns
from kvproof.impl.transfer.layout import Layout, Tensor
from kvproof.impl.transfer.pieces import Ids, pieces
from kvproof.impl.transfer.plan import Scratch, plan_store

PAGE = 256
"""Bytes of a page. Nothing is copied, so that small ones do; the memory is never touched."""

GOAL = 5.0
"""How many times less than the release is aimed at."""


class Planned(msgspec.Struct, frozen=True):
    """Milliseconds to plan one store.

    Attributes:
        copies: copies that the release plans, one for each block and tensor.
        ours: copies that are left when those that follow each other are one.
        release: the release's milliseconds.
        kvproof: ours, with every address written out.
        unwritten: ours without that, as the host runtime and the kernel take a plan.
        ratio: the release's figure over ours.
    """

    case: str
    copies: int
    ours: int
    release: float
    kvproof: float
    unwritten: float
    ratio: float
    goal: float | None = None


@dataclass(frozen=True)
class Case:
    """A job: ``chunks`` chunks of ``blocks_per_chunk`` blocks in each of ``tensors`` tensors."""

    chunks: int
    tensors: int
    blocks_per_chunk: int
    strewn: bool
    groups: int = 1

    def __str__(self) -> str:
        order = "strewn" if self.strewn else "in order"
        groups = f" in {self.groups} groups" if self.groups > 1 else ""
        return (
            f"{self.chunks:,} chunks of {self.blocks_per_chunk} x {self.tensors} tensors{groups},"
            f" {order}"
        )


class Planning:
    """Both sides of a case, with the same tensors, blocks and slots."""

    def __init__(self, case: Case) -> None:
        self.case = case
        count = case.chunks * case.blocks_per_chunk
        self._device = [_pages(count, PAGE) for _ in range(case.tensors)]
        self._host = [_pages(case.chunks, PAGE * case.blocks_per_chunk) for _ in self._device]
        rng = np.random.default_rng(0)
        order = rng.permutation if case.strewn else np.arange
        self.blocks: Ids = order(count).astype(np.int64)
        self.slots: Ids = order(case.chunks).astype(np.int64)
        chunks = np.array_split(np.arange(case.chunks), case.groups)
        self.group_chunks = [len(part) for part in chunks]
        self._layout = Layout(
            [[self._tensor(t) for t in range(case.tensors)]] * case.groups,
            count,
            case.chunks,
            case.blocks_per_chunk,
        )
        self._scratch = Scratch()
        self._release = self._handler()
        self._arrays = np.empty((3, count * case.tensors), np.int64)

    def _tensor(self, number: int) -> Tensor:
        device, host = self._device[number], self._host[number]
        slot = PAGE * self.case.blocks_per_chunk
        return Tensor(device.data_ptr(), host.data_ptr(), PAGE, PAGE, slot, PAGE)

    def _handler(self) -> Any:
        """The release's own handler of stores; it would refuse tensors that lie on no GPU."""
        refs = [CanonicalKVCacheRef(number, PAGE) for number in range(self.case.tensors)]
        handler = object.__new__(gpu_worker.SingleDirectionOffloadingHandler)
        handler.layer_refs_per_group = [refs] * self.case.groups
        handler.src_tensors, handler.dst_tensors = self._device, self._host
        handler.src_blocks_per_chunk = 1
        handler.dst_blocks_per_chunk = self.case.blocks_per_chunk
        return handler

    def release(self) -> None:
        """Group by group, as its ``transfer_async`` does, into arrays that are used again."""
        per, block, slot, copy = self.case.blocks_per_chunk, 0, 0, 0
        for group, chunks in enumerate(self.group_chunks):
            copy, _ = self._release._fill_direct_ops(
                group,
                self.blocks[block : block + chunks * per],
                self.slots[slot : slot + chunks],
                chunks * per,
                0,
                0,
                *self._arrays,
                copy,
            )
            block, slot = block + chunks * per, slot + chunks

    def plan(self) -> Any:
        """Ours, as runs and tensors."""
        sizes = [chunks * self.case.blocks_per_chunk for chunks in self.group_chunks]
        firsts = [0] * self.case.groups
        moved = pieces(self.blocks, sizes, firsts, self.slots, self.case.blocks_per_chunk)
        return plan_store(self._layout, moved)

    def kvproof(self) -> None:
        """Ours, with all addresses, batch by batch."""
        for _ in self.plan().batches(self._scratch):
            pass

    def agree(self) -> bool:
        """Do both sides copy the same bytes to the same places?"""
        self.release()
        batch = self.plan().arrays()
        counts = batch.sizes // PAGE
        within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        ours = [np.repeat(side, counts) + within * PAGE for side in (batch.sources, batch.targets)]
        theirs = self._arrays[:2]
        orders = [np.argsort(ours[0]), np.argsort(theirs[0])]
        return all(
            np.array_equal(one[orders[0]], other[orders[1]])
            for one, other in zip(ours, theirs, strict=True)
        )

    def measure(self, times: int, goal: float | None = None) -> Planned:
        """Both in turns."""
        timed: dict[str, Callable[[], object]] = {
            "release": self.release,
            "kvproof": self.kvproof,
            "unwritten": self.plan,
        }
        for call in timed.values():
            call()
        taken = in_turns(timed for _ in range(times))
        release, ours, unwritten = (taken[name] for name in timed)
        return Planned(
            str(self.case),
            self._arrays.shape[1],
            self.plan().count,
            release,
            ours,
            unwritten,
            release / ours,
            goal,
        )


def _pages(rows: int, size: int) -> Any:
    return torch.empty((rows, size), dtype=torch.int8)


def goals(chunks: int, tensors: int, times: int) -> list[Planned]:
    """The geometry that a goal is set for, in the order that costs most and in a fresh pool's."""
    found = []
    for per in (1, 4):
        for strewn in (True, False):
            case = Case(chunks, tensors, per, strewn)
            found.append(Planning(case).measure(times, GOAL))
    return found


def growth(chunks: int, tensors: int, times: int) -> list[Planned]:
    """More and more chunks, tensors, groups."""
    cases = [Case(count, tensors, 1, True) for count in (chunks // 64, chunks // 8, chunks * 4)]
    cases += [Case(chunks, count, 1, True) for count in (1, 8, tensors * 4)]
    cases += [Case(chunks, tensors, 1, True, groups) for groups in (2, 8)]
    return [Planning(case).measure(times) for case in cases]
