"""When a call raises: which broken lemma the model's state explains it by.

The finding itself stays P11. The explanation is read off the reference's state and the call that
raised, never off the text of the exception.
"""

from __future__ import annotations

from kvproof.conformance.monitor.world import World
from kvproof.conformance.trace.events import Raised
from kvproof.model.contract import Job, Request


def explain(world: World, event: Raised) -> str | None:
    """The id that explains ``event``, or None when the state looks innocent."""
    reference = world.reference
    dead = [j for j, _ in _unreported(world) if reference.job_epoch[j] != reference.epoch]
    if "reset" in event.call:
        return "P10"
    if dead:
        return "M2"
    if event.req is not None:
        r = world.request(event.req)
        if "alloc" in event.call or "matched" in event.call:
            return "M1" if _busy(world, r) else "S5"
        if "finished" in event.call and not any(world.tables.get(r, {}).values()):
            return "P7"
    if any(_busy(world, r) and loads for r, loads in _loads(world).items()):
        return "M1"
    if "output" in event.call:
        return "M3"
    if "meta" in event.call or "schedule" in event.call:
        unheld = [r for r in reference.alive if not any(world.tables.get(Request(r), {}).values())]
        return "P7" if unheld else None
    return None


def _unreported(world: World) -> list[tuple[Job, int]]:
    return [(Job(j), w) for j, w in world.reference.unreported]


def _busy(world: World, r: Request) -> bool:
    """Whether a store of the request has not been reported by every worker."""
    reference = world.reference
    return any(
        reference.job_request[j] == r and j in reference.store for j, _ in _unreported(world)
    )


def _loads(world: World) -> dict[Request, list[Job]]:
    """Loads that were prepared but not yet handed to the workers, by request."""
    reference = world.reference
    found: dict[Request, list[Job]] = {}
    for j in reference.load:
        if j not in reference.job_step:
            found.setdefault(reference.job_request[j], []).append(j)
    return found
