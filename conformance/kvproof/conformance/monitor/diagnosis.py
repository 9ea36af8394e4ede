"""When a call raises: which broken lemma the model's state explains it by.

The finding itself stays P11. The explanation is read off the reference's state and the call that
raised, never off the text of the exception.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from kvproof.conformance.monitor.economy.geometry import Geometry
from kvproof.conformance.monitor.economy.lookup import Lookup
from kvproof.conformance.monitor.world import World
from kvproof.conformance.trace.events import Raised
from kvproof.model.contract import Job, Request, Residency

Accepted = Mapping[Request, list[list[Residency]]]
"""Chunks that the tier has accepted and that no job carries yet, by request and call."""


def explain(
    world: World, event: Raised, accepted: Accepted, boundary: Mapping[Request, int]
) -> str | None:
    """The id that explains ``event``, or None when the state looks innocent.

    ``boundary``: where the tokens end that each request was last given blocks to load for.
    """
    reference = world.reference
    if "reset" in event.call:
        return "P10"
    if ids_are_confused(world, _sufferers(world, event)):
        return "P13"
    if any(reference.job_epoch[j] != reference.epoch for j, _ in reference.unreported):
        return "M2"
    if _loads_while_busy(world, event):
        return "M1"
    if _leans_on_unseen(world, event, boundary):
        return "S5"
    if any(world.preempted_in.get(r) == reference.now for r in _being_given_loads(world)):
        return "M5"
    if ended_unscheduled(world):
        return "P7"
    if any(_has_gaps(world, r, x) for r, calls in accepted.items() for c in calls for x in c):
        return "P7"
    if any(reference.job_request[j] in reference.alive for j in world.dead_jobs):
        return "M2"
    if "output" in event.call and reference.now in world.failed_in.values():
        return "P14"
    return None


def ended_unscheduled(world: World) -> list[str]:
    """The requests that ended in this window before any forward had computed a token of them."""
    ended = sorted(world.reference.ended)
    return [
        world.show("Request", r) for r in ended if _just_ended(world, r) and r not in world.computed
    ]


def ids_are_confused(world: World, own: Set[Request]) -> bool:
    """Whether the id of a request in ``own`` was used again before its former life was worked off.

    ``own`` are the requests that something went wrong for: the new life as well as the former one
    may suffer. When nobody can tell which they are, whoever is alive or has just ended counts, and
    with no request left any of the run: what it left over shows only now.
    """
    if own:
        called = {str(world.names.original("Request", r)) for r in own}
        again = {str(world.names.original("Request", r)) for r in world.reused}
        return not called.isdisjoint(again | {_former(req) for req in again})
    if not world.reference.alive:
        return bool(world.reused)
    return any(r in world.reference.alive or _just_ended(world, r) for r in world.reused)


def _former(req: str) -> str:
    """The life before ``req``, which is not the first."""
    identity, _, life = req.rpartition("#")
    return f"{identity}#{int(life) - 1}"


def _sufferers(world: World, event: Raised) -> set[Request]:
    """The request that the call names, else those whose jobs it is about to complete."""
    if event.req is not None:
        return {world.request(event.req)}
    if "output" not in event.call:
        return set()
    return {world.reference.job_request[j] for j in _being_completed(world)}


def _being_completed(world: World) -> set[Job]:
    """Jobs that all workers have reported, and whose end the tier has not been told."""
    reference = world.reference
    unfinished = {reference.maker[x] for x in reference.storing if x in reference.maker}
    unfinished |= {j for _, j in reference.pinned}
    return (unfinished & reference.job_step.keys()) - {j for j, _ in reference.unreported}


def _just_ended(world: World, r: Request) -> bool:
    return world.ended_in.get(r) == world.reference.now


def _being_given_loads(world: World) -> set[Request]:
    """Requests for which a load was prepared that the workers have not got yet."""
    reference = world.reference
    return {reference.job_request[j] for j in reference.load if j not in reference.job_step}


def _has_gaps(world: World, r: Request, x: Residency) -> bool:
    """Whether the request's table lacks a block of an accepted chunk."""
    return any(
        not world.lists(r, world.reference.place_position[world.place(x, offset)])
        for offset in range(world.header.blocks_per_chunk)
    )


def _leans_on_unseen(world: World, event: Raised, boundary: Mapping[Request, int]) -> bool:
    """Whether a request is being given blocks for chunks that its latest lookup did not find."""
    if event.req is None or "alloc" not in event.call:
        return False
    r = world.request(event.req)
    end, start = boundary.get(r, 0), world.asked_from.get(r, 0)
    if end <= start:
        return False
    geometry = Geometry.of(world.header)
    lookup = Lookup(world, r, geometry)
    return any(
        (x := lookup.residency(number, chunk)) is None or (r, x) not in world.reference.answered
        for number, group in enumerate(geometry.groups)
        for chunk in group.needed(end, start)
    )


def _loads_while_busy(world: World, event: Raised) -> bool:
    """Whether a request is being given blocks to load while a store of its own is under way."""
    reference = world.reference
    asking = _being_given_loads(world)
    if event.req is not None and ("alloc" in event.call or "matched" in event.call):
        asking.add(world.request(event.req))
    return any(
        j in reference.store and reference.job_request[j] in asking for j, _ in reference.unreported
    )
