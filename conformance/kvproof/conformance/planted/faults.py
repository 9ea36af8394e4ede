"""The faults, by name: what goes wrong, what that breaks, and how it is brought about."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

from kvproof.conformance.planted import runtime
from kvproof.impl.transfer.runtime import Edge

_TRANSFER, _TIER = "kvproof.impl.transfer.engine", "kvproof.impl.tier.tier"
_WORKER, _FENCE = "kvproof.impl.connector.worker", "kvproof.impl.scheduler.fence"


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Attributes:
        what: it, in words.
        ids: the invariants of which a finding may name any.
        runtime: what it makes of the runtime of the engine of transfers.
        place: the class or module that it changes, as ``module:name``; "" for none.
        change: makes the new attributes of that place, from the place as it is.
    """

    what: str
    ids: tuple[str, ...]
    runtime: Callable[[Any], Any] | None = None
    place: str = ""
    change: Callable[[Any], dict[str, Any]] | None = None


def _shifted(inner: Callable[..., Any]) -> Callable[..., Any]:
    """Plans whose targets lie a byte too far."""

    def plan(layout: Any, moved: Sequence[Any]) -> Any:
        made = inner(layout, moved)
        grids = tuple(replace(grid, targets=grid.targets + 1) for grid in made.grids)
        return replace(made, grids=grids)

    return plan


def _shorter(inner: Callable[..., Any]) -> Callable[..., Any]:
    """Plans without the last group's bytes."""

    def plan(layout: Any, moved: Sequence[Any]) -> Any:
        made = inner(layout, moved)
        return replace(made, grids=made.grids[:-1])

    return plan


def _swapped(inner: Callable[..., Any]) -> Callable[..., Any]:
    """Plans in which a group's blocks change places."""

    def plan(layout: Any, moved: Sequence[Any]) -> Any:
        return inner(layout, [replace(one, blocks=one.blocks[::-1].copy()) for one in moved])

    return plan


def _report_twice(worker: Any) -> dict[str, Any]:
    inner = worker._ended

    def ended(self: Any, job: int, ok: bool, size: Any, seconds: Any) -> None:
        inner(self, job, ok, size, seconds)
        self._report.mark_completed(job)
        self._report.completed_jobs[job] = 2

    return {"_ended": ended}


def _report_failures_as_done(worker: Any) -> dict[str, Any]:
    inner = worker._ended
    return {"_ended": lambda self, job, ok, size, seconds: inner(self, job, True, size, seconds)}


def _store_at_once(worker: Any) -> dict[str, Any]:
    inner = worker.handle_preemptions

    def handle(self: Any, metadata: Any) -> None:
        inner(self, metadata)
        for job in list(metadata.store_jobs):
            self._keep(job, metadata.store_jobs.pop(job))
        self._submit_stores()

    return {"handle_preemptions": handle}


def _no_flush(worker: Any) -> dict[str, Any]:
    return {"_wait": lambda self, jobs: None}


def _no_pin(tier: Any) -> dict[str, Any]:
    inner = tier.prepare_load

    def prepare(self: Any, keys: Sequence[Any], context: Any = None) -> Any:
        slots = inner(self, keys, context)
        for slot in slots:
            self._pins[slot] -= 1
            self._idle += not self._pins[slot]
        return slots

    return {"prepare_load": prepare}


def _same_slot(tier: Any) -> dict[str, Any]:
    """Every slot is handed out to two keys."""
    inner = tier.prepare_store

    def prepare(self: Any, keys: Sequence[Any], context: Any = None) -> Any:
        room = inner(self, keys, context)
        if room is not None and len(room.place) > 1:
            room = room._replace(place=[room.place[0]] * len(room.place))
        return room

    return {"prepare_store": prepare}


def _free_while_stored(tier: Any) -> dict[str, Any]:
    """A slot is free again as soon as it is being stored."""
    inner = tier.prepare_store

    def prepare(self: Any, keys: Sequence[Any], context: Any = None) -> Any:
        room = inner(self, keys, context)
        if room is not None:
            self._free += [slot for slot in room.place if slot not in self._free]
        return room

    return {"prepare_store": prepare}


def _failed_is_stored(tier: Any) -> dict[str, Any]:
    inner = tier.complete_store
    return {
        "complete_store": lambda self, keys, context=None, success=True: inner(self, keys, context)
    }


def _of(module: str, **names: Callable[..., Any]) -> Callable[[Any], dict[str, Any]]:
    return lambda place: {name: make(getattr(place, name)) for name, make in names.items()}


FAULTS: dict[str, Fault] = {
    "store-before-compute": Fault(
        "a store does not wait for the model's stream",
        ("S2",),
        runtime.without(Edge.STORE_AFTER_COMPUTE),
    ),
    "load-before-compute": Fault(
        "a load does not wait for the model's stream",
        ("S11",),
        runtime.without(Edge.LOAD_AFTER_COMPUTE),
    ),
    "flush-comes-back": Fault(
        "a flush does not wait for the copy", ("S2", "S3", "S11"), runtime.WaitsForNothing
    ),
    "told-early": Fault(
        "copies are told to have ended before they have",
        ("S2", "S3", "S7", "S11", "S14"),
        runtime.ToldEarly,
    ),
    "reads-ahead": Fault(
        "stores read their blocks before it is their turn", ("S2",), runtime.ReadsAhead
    ),
    "offset-shifted": Fault(
        "copies to the tier land a byte too far",
        ("S10", "S14"),
        place=f"{_TRANSFER}:",
        change=_of(_TRANSFER, plan_store=_shifted),
    ),
    "load-shifted": Fault(
        "copies to the GPU land a byte too far",
        ("S10", "S14"),
        place=f"{_TRANSFER}:",
        change=_of(_TRANSFER, plan_load=_shifted),
    ),
    "last-group-left-out": Fault(
        "the last group of a load is not copied",
        ("S10", "S14"),
        place=f"{_TRANSFER}:",
        change=_of(_TRANSFER, plan_load=_shorter),
    ),
    "blocks-swapped": Fault(
        "the blocks of a store change places",
        ("S10", "S14"),
        place=f"{_TRANSFER}:",
        change=_of(_TRANSFER, plan_store=_swapped),
    ),
    "report-doubled": Fault(
        "a worker reports each job twice",
        ("P4", "P11", "S6"),
        place=f"{_WORKER}:OffloadWorker",
        change=_report_twice,
    ),
    "failure-untold": Fault(
        "a copy that failed is reported as done",
        ("P4", "P14", "S6", "S10", "S14"),
        place=f"{_WORKER}:OffloadWorker",
        change=_report_failures_as_done,
    ),
    "store-not-put-off": Fault(
        "a step's stores are submitted before its forward",
        ("S2", "S3"),
        place=f"{_WORKER}:OffloadWorker",
        change=_store_at_once,
    ),
    "flush-forgotten": Fault(
        "the worker does not wait for what a flush names",
        ("S3", "S7", "S11"),
        place=f"{_WORKER}:OffloadWorker",
        change=_no_flush,
    ),
    "fence-forgotten": Fault(
        "a block is handed out while a store reads it, without a flush",
        ("S3",),
        place=f"{_FENCE}:Fence",
        change=lambda place: {"jobs": lambda self, blocks: set()},
    ),
    "pin-forgotten": Fault(
        "what is being loaded may be evicted",
        ("S7", "P11"),
        place=f"{_TIER}:CpuTier",
        change=_no_pin,
    ),
    "slot-shared": Fault(
        "two keys of an offer get one slot", ("S8",), place=f"{_TIER}:CpuTier", change=_same_slot
    ),
    "slot-reused-early": Fault(
        "a slot is handed out again while it is being stored",
        ("S7", "S8", "P11"),
        place=f"{_TIER}:CpuTier",
        change=_free_while_stored,
    ),
    "failed-store-kept": Fault(
        "keys whose store failed are readable",
        # Whichever comes first: it is found by a lookup, or it has to leave.
        ("S6", "S8"),
        place=f"{_TIER}:CpuTier",
        change=_failed_is_stored,
    ),
}


@contextlib.contextmanager
def planted(name: str) -> Iterator[None]:
    """Put a fault into the classes that it changes, for a while; "" for none."""
    fault = FAULTS.get(name)
    if fault is None or fault.change is None:
        yield
        return
    module, _, attribute = fault.place.partition(":")
    place: Any = importlib.import_module(module)
    if attribute:
        place = getattr(place, attribute)
    with mock.patch.multiple(place, **fault.change(place)):
        yield


def planted_runtime(name: str, inner: Any) -> Any:
    """The runtime with a fault, if this is one of a runtime."""
    fault = FAULTS.get(name)
    return inner if fault is None or fault.runtime is None else fault.runtime(inner)
