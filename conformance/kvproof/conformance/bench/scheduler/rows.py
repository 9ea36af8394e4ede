"""The workloads that are compared, each on both sides in turns."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from kvproof.conformance.bench.scheduler.fleet import Fleet
from kvproof.conformance.bench.scheduler.scene import BLOCK, WINDOW, Scene, Side
from kvproof.conformance.bench.scheduler.timing import in_turns, medians, repeated, samples

SMALL_LOOKUP = 50
"""How often a lookup is asked again within one measurement: the clock is too coarse for one."""

STEPS = 15
"""Steps until a chunk is complete, less one."""


class Row(msgspec.Struct, frozen=True):
    """One workload, in ``unit`` (ms, MB). ``floor``: what no scheduler can do without.

    ``kvproof`` is over the release's tier, ``own`` over kvproof's own. ``ratio`` is the release's
    figure over ``kvproof``'s. ``goal`` is the ratio that is aimed at.
    """

    workload: str
    unit: str
    release: float
    kvproof: float
    own: float
    ratio: float
    floor: float | None = None
    goal: float | None = None


def row(
    workload: str, unit: str, taken: dict[str, float], scene: Scene, goal: float | None = None
) -> Row:
    """What was taken by whom, as a row."""
    release, ours, own = (taken[side.name] for side in scene.sides)
    return Row(workload, unit, release, ours, own, release / ours, taken.get("floor"), goal)


def groups_of(windows: int) -> str:
    """The groups in words."""
    return f"full + {windows} windows of {WINDOW}" if windows else "full only"


# --- decode steps ---------------------------------------------------------------------------------


def running(requests: int, tokens: int, windows: int, steps: int) -> Scene:
    """A scene that is large enough for such a fleet and so many steps."""
    blocks = -(-(tokens + BLOCK + steps) // BLOCK)
    held = blocks + windows * (min(blocks, WINDOW // BLOCK) + 4)
    # Room for the pieces that a prompt is computed in before its windows give blocks back.
    gpu = requests * held + windows * 2 * WINDOW // BLOCK * requests
    grown = requests * (steps // BLOCK + 2)
    return Scene(windows, gpu, (windows + 1) * (blocks + grown))


def idle_steps(requests: int, tokens: int, windows: int) -> tuple[Scene, dict[str, float]]:
    """Decode steps in which nobody completes a chunk."""
    scene = running(requests, tokens, windows, STEPS)
    fleet = Fleet(scene, [tokens // BLOCK * BLOCK] * requests)
    return scene, in_turns(fleet.steps(STEPS))


def busy_steps(requests: int, tokens: int, windows: int) -> tuple[Scene, dict[str, float]]:
    """Decode steps in each of which one request in ``BLOCK`` completes a chunk."""
    scene, taken = busy_samples(requests, tokens, windows, 2 * BLOCK)
    return scene, medians(taken)


def busy_samples(
    requests: int, tokens: int, windows: int, steps: int
) -> tuple[Scene, dict[str, list[float]]]:
    """All that so many of these steps took."""
    scene = running(requests, tokens, windows, steps)
    fleet = Fleet(scene, [tokens // BLOCK * BLOCK + number % BLOCK for number in range(requests)])
    return scene, samples(fleet.steps(steps))


# --- lookups --------------------------------------------------------------------------------------


class Prompt:
    """A prompt whose chunks are all resident, among ``others`` chunks of each group."""

    def __init__(self, tokens: int, windows: int, others: int = 0) -> None:
        count = tokens // BLOCK
        self.scene = Scene(windows, 256, (count + others + 64) * (windows + 1))
        hashes = self.scene.hashes(count)
        self.scene.fill(self.scene.hashes(others))
        self.scene.fill(hashes)
        self.request = self.scene.request(tokens, hashes)
        self._keys = list(self.scene.keys(hashes))[: count + windows * WINDOW // BLOCK]

    def first(self, times: int) -> dict[str, float]:
        """The first lookup of a new request; ``floor`` is the tier's answers to its keys alone."""
        return in_turns(self._first(times))

    def _first(self, times: int) -> Iterator[dict[str, Callable[[], object]]]:
        for _ in range(times):
            self.scene.arrive(self.request)
            yield self._asks(1) | {"floor": self._floor}

    def first_key_by_key(self, times: int) -> dict[str, float]:
        """The same over tiers that are not known: their ``lookup`` is called for every key."""
        managers = [side.manager for side in self.scene.sides]
        for manager in managers:
            # Whoever puts something in a method's place wants to see its calls.
            manager.lookup = manager.lookup
        try:
            return self.first(times)
        finally:
            for manager in managers:
                del manager.lookup

    def again(self, times: int) -> dict[str, float]:
        """The same lookup, asked again."""
        self._ask()
        return _each(in_turns(self._asks(SMALL_LOOKUP) for _ in range(times)))

    def after_a_store(self, times: int) -> dict[str, float]:
        """The same, when a chunk of another request has become resident meanwhile."""
        other = Fleet(self.scene, [BLOCK])
        self._ask()
        return in_turns(self._after(other, times))

    def _after(self, other: Fleet, times: int) -> Iterator[dict[str, Callable[[], object]]]:
        for _ in range(times):
            for timed in other.steps(BLOCK):
                for side in self.scene.sides:
                    timed[side.name]()
            yield self._asks(1)

    def _ask(self) -> None:
        self.scene.arrive(self.request)
        for side in self.scene.sides:
            side.ask(self.request)

    def _asks(self, times: int) -> dict[str, Callable[[], object]]:
        def ask(side: Side) -> Callable[[], object]:
            return repeated(lambda: side.ask(self.request), times)

        return {side.name: ask(side) for side in self.scene.sides}

    def _floor(self) -> None:
        lookup, context = self.scene.spare.lookup, self.scene.context("floor")
        for key in self._keys:
            lookup(key, context)


def _each(taken: dict[str, float]) -> dict[str, float]:
    return {name: milliseconds / SMALL_LOOKUP for name, milliseconds in taken.items()}


# --- memory ---------------------------------------------------------------------------------------


def memory(tokens: int, windows: int, requests: int = 4) -> tuple[Scene, dict[str, float]]:
    """Megabytes that a request adds to each side by its arrival and its lookup, tier included."""
    prompt = Prompt(tokens, windows)
    scene = prompt.scene
    taken = {}
    for side in scene.sides:
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        kept = [_remember(scene, side, prompt.request, number) for number in range(requests)]
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        taken[side.name] = (after - before) / requests / 1e6
        del kept
    return scene, taken


def _remember(scene: Scene, side: Side, like: Any, number: int) -> Any:
    """A request with the prompt of another, which is given no memory of its own."""
    request = object.__new__(type(like))
    vars(request).update(vars(like), request_id=f"memory{number}")
    side.scheduler.on_new_request(request)
    side.ask(request)
    return request
