"""What the model, the host and the engine of transfers do, one after the other."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kvproof.impl.transfer.layout import Layout, Tensor
from kvproof.impl.transfer.pieces import Pieces, pieces


@dataclass(frozen=True, slots=True)
class Write:
    """The model writes these blocks."""

    blocks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Read:
    """The model reads these blocks."""

    blocks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Store:
    """A job from the KV cache to the tier."""

    job: int
    moved: tuple[Pieces, ...]


@dataclass(frozen=True, slots=True)
class Load:
    """A job from the tier to the KV cache."""

    job: int
    moved: tuple[Pieces, ...]


@dataclass(frozen=True, slots=True)
class Flush:
    """The calling thread waits for jobs."""

    jobs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Told:
    """The calling thread polls until it has been told of jobs."""

    jobs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class HostRead:
    """Another part of the host reads these slots: a tier behind the tier, another worker."""

    slots: tuple[int, ...]


Move = Write | Read | Store | Load | Flush | Told | HostRead
History = Sequence[Move]


@dataclass(frozen=True, slots=True)
class Geometry:
    """Sizes and strides; ``layout`` places them in arenas."""

    tensors: tuple[tuple[Tensor, ...], ...]
    blocks: int
    slots: int
    blocks_per_chunk: int
    cache_bytes: int
    tier_bytes: int

    def layout(self, cache: int, tier: int) -> Layout:
        """The layout with the KV cache and the tier at these addresses."""
        groups = [
            [
                Tensor(
                    t.device + cache,
                    t.host + tier,
                    t.size,
                    t.block_stride,
                    t.slot_stride,
                    t.piece_stride,
                )
                for t in group
            ]
            for group in self.tensors
        ]
        return Layout(groups, self.blocks, self.slots, self.blocks_per_chunk)


SMALL = Geometry(((Tensor(0, 0, 4, 4, 4, 4),),), 4, 3, 1, 16, 12)
"""One group, one tensor, chunks of one block."""

MIXED = Geometry(
    (
        (Tensor(8, 8, 5, 10, 20, 10), Tensor(13, 13, 3, 10, 20, 10)),
        (Tensor(80, 120, 4, 6, 8, 4),),
    ),
    blocks=6,
    slots=5,
    blocks_per_chunk=2,
    cache_bytes=124,
    tier_bytes=168,
)
"""Two groups: two layers packed in a block, with padding, and one with gaps; guards around them."""


def one_group(blocks: Sequence[int], slots: Sequence[int]) -> tuple[Pieces, ...]:
    """A job of the small geometry."""
    return tuple(pieces(blocks, [len(blocks)], [0], slots, 1))


@dataclass
class _Flying:
    """A job under way."""

    blocks: set[int]
    slots: set[int]
    is_store: bool


def draw(seed: int, moves: int, geometry: Geometry = MIXED) -> list[Move]:
    """A random history in which the caller does what it owes, and the engine all the rest."""
    rng = random.Random(seed)
    flying: dict[int, _Flying] = {}
    found: list[Move] = []

    def flying_over(blocks: set[int], slots: set[int], kinds: tuple[bool, ...]) -> tuple[int, ...]:
        """The jobs under way that touch one of these, of these kinds; they are so no longer."""
        jobs = tuple(
            job
            for job, one in flying.items()
            if one.is_store in kinds and (one.blocks & blocks or one.slots & slots)
        )
        for job in jobs:
            del flying[job]
        return jobs

    for job in range(moves):
        kind = rng.choice(("store", "store", "load", "load", "write", "read", "host"))
        if kind in ("store", "load"):
            moved = _job(rng, geometry)
            blocks = {int(block) for one in moved for block in one.blocks}
            slots = {int(slot) for one in moved for slot in one.slots}
            flying[job] = _Flying(blocks, slots, kind == "store")
            found.append(Store(job, moved) if kind == "store" else Load(job, moved))
            continue
        slots = set(rng.sample(range(geometry.slots), rng.randint(1, 2)))
        blocks = set(rng.sample(range(geometry.blocks), rng.randint(1, 3)))
        if kind == "write":
            if jobs := flying_over(blocks, set(), (True, False)):
                found.append(Flush(jobs))
            found.append(Write(tuple(sorted(blocks))))
        elif kind == "read":
            if jobs := flying_over(blocks, set(), (False,)):
                found.append(Told(jobs))
            found.append(Read(tuple(sorted(blocks))))
        else:
            if jobs := flying_over(set(), slots, (True,)):
                found.append(Told(jobs))
            found.append(HostRead(tuple(sorted(slots))))
    return found


def _job(rng: random.Random, geometry: Geometry) -> tuple[Pieces, ...]:
    per = geometry.blocks_per_chunk
    blocks = rng.sample(range(geometry.blocks), rng.randint(1, 3))
    cut = rng.randint(0, len(blocks))
    sizes = [cut, len(blocks) - cut]
    firsts = [rng.randrange(2 * per) for _ in sizes]
    chunks = [
        -(-(first % per + size) // per) if size else 0
        for size, first in zip(sizes, firsts, strict=True)
    ]
    slots = rng.sample(range(geometry.slots), sum(chunks))
    return tuple(pieces(np.array(blocks), sizes, firsts, slots, per))
