"""Copies within host memory against one large copy of as many bytes, by one thread."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np

from kvproof.conformance.bench.scheduler.timing import in_turns
from kvproof.impl.transfer.memory import HostMemory, Part, zeros
from kvproof.impl.transfer.pieces import Ids, Pieces, pieces

GOAL = 0.9
"""The share of one large copy's speed that is aimed at."""

# Strewn over twice as much memory, so that neighbours are rare.
ORDERS = ("slots in order", "blocks in order", "both in order", "both strewn")


class Copied(msgspec.Struct, frozen=True):
    """GB/s of a store and a load, planning included, and of one large copy.

    ``share`` is the slower one's share of the large copy.
    """

    case: str
    page: int
    chunk: int
    store: float
    load: float
    large: float
    share: float
    goal: float


def measure(page: int, blocks_per_chunk: int, order: str, size: int, times: int) -> Copied:
    """Move ``size`` bytes as one job, between a KV cache and a tier of more than twice that size.

    How much more is no power of two: copies over such a distance meet in the same bank of memory.
    """
    slots = size // page // blocks_per_chunk
    blocks = slots * blocks_per_chunk
    region = zeros((2 * blocks + blocks // 7, page))
    all_slots = 2 * slots + slots // 5
    memory = HostMemory([region], [[Part(0, page)]], all_slots, blocks_per_chunk)
    moved = _job(blocks, slots, blocks_per_chunk, order)
    large, target = zeros((blocks * page,)), zeros((blocks * page,))
    for touched in (region, large):
        touched[:] = 1
    timed: dict[str, Callable[[], object]] = {
        "store": lambda: memory.store(moved),
        "load": lambda: memory.load(moved),
        "large": lambda: np.copyto(target, large),
    }
    for call in timed.values():
        call()
    taken = in_turns(timed for _ in range(times))
    speed = {name: large.size / milliseconds / 1e6 for name, milliseconds in taken.items()}
    share = min(speed["store"], speed["load"]) / speed["large"]
    case = f"chunks of {blocks_per_chunk}, {order}"
    chunk = page * blocks_per_chunk
    return Copied(case, page, chunk, speed["store"], speed["load"], speed["large"], share, GOAL)


def _job(blocks: int, slots: int, per: int, order: str) -> list[Pieces]:
    rng = np.random.default_rng(0)
    in_order: Ids = np.arange(blocks)
    of_slots: Ids = np.arange(slots)
    if order in ("slots in order", "both strewn"):
        in_order = rng.permutation(2 * blocks)[:blocks]
    if order in ("blocks in order", "both strewn"):
        of_slots = rng.permutation(2 * slots)[:slots]
    return pieces(in_order, [blocks], [0], of_slots, per)


def table(size: int, times: int) -> list[Copied]:
    """Pages and chunks of several sizes, in every order."""
    return [
        measure(page, per, order, size, times)
        for page, per in ((4 << 10, 1), (16 << 10, 1), (16 << 10, 4), (64 << 10, 1), (512 << 10, 1))
        for order in ORDERS
    ]
