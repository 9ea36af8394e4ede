"""Random geometries of KV caches and tiers, in arenas with guard zones, and a dumb copier.

An arena is one stretch of bytes. What no page occupies is guard: it is filled with a pattern and
must never change. The dumb copier walks piece by piece and tensor by tensor.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from kvproof.impl.transfer.layout import Layout, Tensor
from kvproof.impl.transfer.pieces import Pieces, pieces

Arena = npt.NDArray[np.uint8]

GUARD = 64


@dataclass
class World:
    """A KV cache, a tier, and where the tensors of each group lie in both."""

    device: Arena
    host: Arena
    groups: list[list[Tensor]]
    blocks: int
    slots: int
    blocks_per_chunk: int
    device_used: Arena = field(init=False)
    host_used: Arena = field(init=False)

    def __post_init__(self) -> None:
        self.layout = Layout(self.groups, self.blocks, self.slots, self.blocks_per_chunk)
        self.device_used = np.zeros(len(self.device), np.uint8)
        self.host_used = np.zeros(len(self.host), np.uint8)
        for group, tensors in enumerate(self.groups):
            for tensor in range(len(tensors)):
                for block in range(self.blocks):
                    self.page(self.device_used, group, tensor, block)[:] = 1
                for slot in range(self.slots):
                    for piece in range(self.blocks_per_chunk):
                        self.place(self.host_used, group, tensor, slot, piece)[:] = 1

    def page(self, arena: Arena, group: int, tensor: int, block: int) -> Arena:
        one = self.groups[group][tensor]
        start = one.device - self.device.ctypes.data + block * one.block_stride
        return arena[start : start + one.size]

    def place(self, arena: Arena, group: int, tensor: int, slot: int, piece: int) -> Arena:
        one = self.groups[group][tensor]
        start = one.host - self.host.ctypes.data
        start += slot * one.slot_stride + piece * one.piece_stride
        return arena[start : start + one.size]

    def copy_dumbly(self, device: Arena, host: Arena, moved: list[Pieces], store: bool) -> int:
        """What a job does to copies of the arenas; the bytes that it moves."""
        size = 0
        for one in moved:
            for block, slot, piece in zip(one.blocks, one.slots, one.offsets, strict=True):
                for tensor in range(len(self.groups[one.group])):
                    page = self.page(device, one.group, tensor, block)
                    place = self.place(host, one.group, tensor, slot, piece)
                    if store:
                        place[:] = page
                    else:
                        page[:] = place
                    size += len(page)
        return size


@st.composite
def worlds(draw: st.DrawFn, most_tensors: int = 64) -> World:
    """1 to 8 groups of 1 to 64 tensors, chunks of 1 to 8 blocks, pages apart or packed."""
    blocks, slots = draw(st.integers(1, 12)), draw(st.integers(1, 6))
    per = draw(st.integers(1, 8))
    counts = draw(st.lists(st.integers(1, most_tensors), min_size=1, max_size=8))
    pages = draw(st.lists(st.integers(1, 24), min_size=1, max_size=3))
    padding = draw(st.sampled_from([0, 0, 3, 8]))
    packed_device, packed_host = draw(st.booleans()), draw(st.booleans())
    shared = draw(st.booleans())  # groups lie in the same memory, as layers of a hybrid model do
    all_sizes = [
        [pages[(number + tensor) % len(pages)] for tensor in range(count)]
        for number, count in enumerate(counts)
    ]
    groups: list[list[Tensor]] = []
    device_end = host_end = GUARD
    for sizes in all_sizes:
        # Groups in the same memory agree how long a page is, and what a block is.
        page = max(pages) + padding if shared else 0
        row = max(map(sum, all_sizes)) if shared else sum(sizes)
        device_start, host_start = (GUARD, GUARD) if shared else (device_end, host_end)
        pages_of = [max(page, size + padding) for size in sizes]
        if packed_device:
            device, end = _packed(sizes, device_start, row + padding, blocks)
        else:
            device, end = _apart(pages_of, device_start, blocks)
        device_end = max(device_end, end + GUARD)
        if packed_host:  # a chunk is block after block, a block tensor after tensor
            host, end = _packed(sizes, host_start, row + padding, slots * per)
        else:  # tensor after tensor, each with all of its slots
            host, end = _apart(pages_of, host_start, slots * per)
        host_end = max(host_end, end + GUARD)
        groups.append(
            [
                Tensor(place, where, size, stride, per * piece_stride, piece_stride)
                for size, (place, stride), (where, piece_stride) in zip(
                    sizes, device, host, strict=True
                )
            ]
        )
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    cache = rng.integers(0, 256, device_end, np.uint8)
    tier = rng.integers(0, 256, host_end, np.uint8)
    return World(
        cache,
        tier,
        [[_moved(one, cache.ctypes.data, tier.ctypes.data) for one in group] for group in groups],
        blocks,
        slots,
        per,
    )


def _moved(one: Tensor, device: int, host: int) -> Tensor:
    return Tensor(
        one.device + device,
        one.host + host,
        one.size,
        one.block_stride,
        one.slot_stride,
        one.piece_stride,
    )


Places = list[tuple[int, int]]


def _packed(sizes: list[int], start: int, stride: int, count: int) -> tuple[Places, int]:
    """(address, stride) of each tensor, one after the other in each block; the end of all."""
    ends = np.cumsum([0, *sizes])[:-1].tolist()
    return [(start + end, stride) for end in ends], start + count * stride


def _apart(pages: list[int], start: int, count: int) -> tuple[Places, int]:
    """(address, stride) of each tensor, each with all of its blocks; the end of all."""
    found = []
    for page in pages:
        found.append((start, page))
        start += count * page
    return found, start


@st.composite
def jobs(draw: st.DrawFn, world: World) -> list[Pieces]:
    """Runs of blocks that begin and end anywhere in a chunk; no block and no slot twice."""
    per = world.blocks_per_chunk
    blocks = draw(st.permutations(range(world.blocks)))
    slots = draw(st.permutations(range(world.slots)))
    if draw(st.booleans()):
        blocks, slots = sorted(blocks), sorted(slots)
    sizes: list[int] = []
    firsts: list[int] = []
    used = 0
    left_slots = world.slots
    for _ in world.groups:
        first = draw(st.integers(0, 2 * per))
        most = min(world.blocks - sum(sizes), left_slots * per - first % per)
        size = draw(st.integers(0, max(0, most)))
        if size:
            chunks = -(-(first % per + size) // per)
            used += chunks
            left_slots -= chunks
        sizes.append(size)
        firsts.append(first)
    return pieces(blocks[: sum(sizes)], sizes, firsts, slots[:used], per)
