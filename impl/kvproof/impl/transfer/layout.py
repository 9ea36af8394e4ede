"""Where the bytes of a group's blocks lie, on the device and in the tier: fixed once, checked once.

A tensor's block ``b`` begins at ``device + b * block_stride``, its piece ``o`` of the chunk in slot
``s`` at ``host + s * slot_stride + o * piece_stride``. That covers a page with padding behind it
(a stride above the size), layers packed in one block (tensors with one stride, each at its own
place in it), and tiers that keep a chunk tensor by tensor or block by block.

Tensors of one group that lie side by side on both sides are one: what remains is sorted into
*families*, the tensors that differ in nothing but their addresses. A job is planned once for each
family, however many tensors it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kvproof.impl.transfer.pieces import Ids


class LayoutError(ValueError):
    """A layout in which a copy would touch bytes that are not its own."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """One layer's pages, in bytes.

    Attributes:
        device: address of block 0 in the KV cache.
        host: address of piece 0 of slot 0 in the tier.
        size: bytes of a page that are copied; what follows up to the stride is padding.
        block_stride: from one block to the next, on the device.
        slot_stride: from one slot to the next, in the tier.
        piece_stride: from one piece of a chunk to the next, in the tier.
    """

    device: int
    host: int
    size: int
    block_stride: int
    slot_stride: int
    piece_stride: int


@dataclass(frozen=True, slots=True)
class Family:
    """Tensors that differ in their addresses only; ``device`` and ``host`` have one for each."""

    device: Ids
    host: Ids
    size: int
    block_stride: int
    slot_stride: int
    piece_stride: int


class Layout:
    """The tensors of every group, and how many blocks and slots there are.

    Attributes:
        families: for each group, its tensors by family.
        bytes_per_block: for each group, what one of its blocks copies.
    """

    def __init__(
        self,
        groups: Sequence[Sequence[Tensor]],
        blocks: int,
        slots: int,
        blocks_per_chunk: int,
    ) -> None:
        """Check that no two pages share a byte, on either side.

        Pages of different groups may, in the same block or the same slot: no two groups ever hold
        the same one.

        Raises:
            LayoutError: they do, or a size, a stride or a count makes no sense.
        """
        if min(blocks, slots, blocks_per_chunk) < 1:
            raise LayoutError(
                f"{blocks} blocks, {slots} slots and {blocks_per_chunk} blocks of a chunk"
                " must all be at least 1"
            )
        self.blocks, self.slots, self.blocks_per_chunk = blocks, slots, blocks_per_chunk
        for group, tensors in enumerate(groups):
            for one in tensors:
                self._check(group, one)
        self._check_apart(groups)
        self.families = tuple(_families(_joined(tensors, blocks_per_chunk)) for tensors in groups)
        self.bytes_per_block = tuple(sum(t.size for t in tensors) for tensors in groups)

    def host_spans(self) -> list[tuple[int, int]]:
        """Address and size of the tier's memory, spans that touch joined; for pinning."""
        found = []
        for family in (family for group in self.families for family in group):
            last = (self.slots - 1) * family.slot_stride
            last += (self.blocks_per_chunk - 1) * family.piece_stride
            found += [(start, start + last + family.size) for start in family.host.tolist()]
        spans: list[tuple[int, int]] = []
        for start, end in sorted(found):
            if spans and start <= spans[-1][1]:
                spans[-1] = (spans[-1][0], max(spans[-1][1], end))
            else:
                spans.append((start, end))
        return [(start, end - start) for start, end in spans]

    def _check(self, group: int, one: Tensor) -> None:
        if one.size < 1:
            raise LayoutError(f"group {group}: a page of {one.size} bytes")
        if one.block_stride < one.size:
            raise LayoutError(
                f"group {group}: {one.size} bytes do not fit into a block of {one.block_stride}"
            )
        pieces = (self.blocks_per_chunk - 1) * one.piece_stride + one.size
        if self.blocks_per_chunk > 1 and one.piece_stride < one.size:
            raise LayoutError(
                f"group {group}: {one.size} bytes do not fit into a piece of {one.piece_stride}"
            )
        if one.slot_stride < pieces:
            raise LayoutError(
                f"group {group}: a chunk's {pieces} bytes do not fit into a slot of"
                f" {one.slot_stride}"
            )

    def _check_apart(self, groups: Sequence[Sequence[Tensor]]) -> None:
        device = [[_Comb(t.device, t.size, t.block_stride) for t in group] for group in groups]
        _check_apart("on the device", device, self.blocks, "blocks")
        pieces = range(self.blocks_per_chunk)
        host = [
            [
                _Comb(t.host + piece * t.piece_stride, t.size, t.slot_stride)
                for t in group
                for piece in pieces
            ]
            for group in groups
        ]
        _check_apart("in the tier", host, self.slots, "slots")


class _Comb(NamedTuple):
    """Teeth of ``size`` bytes, the first of them at ``start``, one each ``stride``."""

    start: int
    size: int
    stride: int


def _check_apart(where: str, groups: Sequence[Sequence[_Comb]], count: int, what: str) -> None:
    """No byte is in two combs of a group, nor in different teeth of two groups.

    Combs whose extents meet must have one stride, so that looking at a single period is enough. (A
    layout whose tensors interlock with different strides would pass by luck alone.)
    """
    for group, combs in enumerate(groups):
        for cluster in _clusters(combs, count):
            _check_cluster(f"group {group}, {where}", cluster)
    for cluster in _clusters([comb for combs in groups for comb in combs], count):
        begin, stride = cluster[0].start, cluster[0].stride
        if len(cluster) > 1 and (
            any(comb.stride != stride for comb in cluster)
            or max(comb.start + comb.size for comb in cluster) > begin + stride
        ):
            raise LayoutError(f"{where}: {what} of different numbers have bytes in common")


def _clusters(combs: Sequence[_Comb], count: int) -> Iterator[list[_Comb]]:
    """Combs of ``count`` teeth whose extents meet, together."""
    cluster: list[_Comb] = []
    end = 0
    for comb in sorted(combs):
        if cluster and comb.start >= end:
            yield cluster
            cluster = []
        cluster.append(comb)
        end = max(end, comb.start + (count - 1) * comb.stride + comb.size)
    if cluster:
        yield cluster


def _check_cluster(where: str, combs: list[_Comb]) -> None:
    if len(combs) == 1:
        return
    first, _, stride = combs[0]
    if any(comb.stride != stride for comb in combs):
        raise LayoutError(f"{where}: tensors with different strides lie between each other")
    teeth = sorted(((start - first) % stride, size) for start, size, _ in combs)
    ends = [place + size for place, size in teeth]
    starts = [place for place, _ in teeth[1:]] + [teeth[0][0] + stride]
    if any(end > start for end, start in zip(ends, starts, strict=True)):
        raise LayoutError(f"{where}: two tensors have bytes in common")


def _joined(tensors: Sequence[Tensor], blocks_per_chunk: int) -> list[Tensor]:
    """Tensors that follow each other on both sides, as one."""
    found: list[Tensor] = []
    for one in sorted(tensors, key=lambda t: (t.block_stride, t.slot_stride, t.device)):
        last = found[-1] if found else None
        if (
            last is not None
            and (last.block_stride, last.slot_stride) == (one.block_stride, one.slot_stride)
            and (blocks_per_chunk == 1 or last.piece_stride == one.piece_stride)
            and (last.device + last.size, last.host + last.size) == (one.device, one.host)
        ):
            size = last.size + one.size
            found[-1] = Tensor(
                last.device, last.host, size, last.block_stride, last.slot_stride, last.piece_stride
            )
        else:
            found.append(one)
    return found


def _families(tensors: Sequence[Tensor]) -> tuple[Family, ...]:
    members: dict[tuple[int, int, int, int], list[Tensor]] = {}
    for one in tensors:
        key = (one.size, one.block_stride, one.slot_stride, one.piece_stride)
        members.setdefault(key, []).append(one)
    return tuple(
        Family(
            np.array([t.device for t in found], np.int64),
            np.array([t.host for t in found], np.int64),
            *key,
        )
        for key, found in members.items()
    )
