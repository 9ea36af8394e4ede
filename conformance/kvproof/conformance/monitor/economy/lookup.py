"""What a lookup can be answered: the greatest boundary, now and once what is being stored is."""

from __future__ import annotations

from kvproof.conformance.monitor import forward
from kvproof.conformance.monitor.world import World
from kvproof.conformance.trace.events import GroupGeometry
from kvproof.model.contract import Place, Request, Residency

ABSENT, PENDING, READY = 0, 1, 2


def residency_of(
    world: World, r: Request, group: int, index: int
) -> tuple[Residency, Place] | None:
    """Where block ``index`` of a request's group lies in the tier; None when it does not."""
    size = world.header.groups[group].tokens_per_block
    count = world.header.blocks_per_chunk
    end = (index // count + 1) * count * size
    marks = world.marks[r]
    if end >= len(marks):
        return None
    key = world.key_of(marks[end], group)
    x = world.reference.where.get(key) if key is not None else None
    return None if x is None else (x, world.place(x, index % count))


def status(world: World, r: Request, group: int, index: int) -> int:
    """Whether block ``index`` of a request's group is absent, being stored, or readable."""
    found = residency_of(world, r, group, index)
    if found is None or found[1] not in world.reference.cover:
        return ABSENT
    x = found[0]
    return READY if x in world.reference.ready else PENDING


def served(world: World, r: Request, group: int, floor: int, boundary: int, least: int) -> bool:
    """Whether the group can start at ``boundary`` with ``floor`` tokens on the GPU."""
    return all(
        status(world, r, group, index) >= least
        for index in needed(world.header.groups[group], floor, boundary)
    ) and (
        world.header.groups[group].kind != "recurrent"
        or boundary % world.header.groups[group].tokens_per_block == 0
    )


def needed(geometry: GroupGeometry, floor: int, boundary: int) -> list[int]:
    """The blocks that must come from the tier."""
    if boundary <= floor:
        return []
    size = geometry.tokens_per_block
    return [i for i, end in forward.reads(geometry, boundary) if min(end, (i + 1) * size) > floor]


def greatest(world: World, r: Request, least: int) -> int:
    """The greatest boundary that every group can serve, the computed tokens included."""
    floor = world.asked_from.get(r, 0)
    known = len(world.marks[r]) - 1
    limit = min(known - 1, floor + world.limits[r].to_load(known))
    groups = range(len(world.header.groups))
    for boundary in range(limit, floor, -1):
        if all(served(world, r, g, floor, boundary, least) for g in groups):
            return boundary
    return floor


def prospects(world: World, r: Request) -> tuple[int, int]:
    """The greatest boundary now, and the greatest once everything under way is stored."""
    return greatest(world, r, READY), greatest(world, r, PENDING)


def moving(world: World, r: Request, boundary: int) -> bool:
    """Whether a key that serves the boundary is on its way to the GPU for another request."""
    floor = world.asked_from.get(r, 0)
    reference = world.reference
    for group, geometry in enumerate(world.header.groups):
        for index in needed(geometry, floor, boundary):
            found = residency_of(world, r, group, index)
            if found and any(
                reference.job_request[j] != r for _, j in reference.pinned.match(found[0], None)
            ):
                return True
    return False
