"""Each edge that orders copies, a history that needs it, and the race that is there without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvproof.conformance.device.histories import (
    MIXED,
    SMALL,
    Flush,
    Geometry,
    History,
    HostRead,
    Load,
    Move,
    Read,
    Store,
    Told,
    Write,
    draw,
    one_group,
)
from kvproof.conformance.device.play import Outcome, play
from kvproof.conformance.device.policy import Policy, Priorities, every_order
from kvproof.conformance.device.races import Race
from kvproof.conformance.device.without import Care, DeviceWithout
from kvproof.impl.transfer.runtime import Edge

MOST_ORDERS = 20_000


def _store(job: int, block: int, slot: int) -> Move:
    return Store(job, one_group([block], [slot]))


def _load(job: int, block: int, slot: int) -> Move:
    return Load(job, one_group([block], [slot]))


WITNESSES: dict[Edge | Care, Sequence[Move]] = {
    Edge.STORE_AFTER_COMPUTE: [Write((0,)), _store(1, 0, 0)],
    Edge.LOAD_AFTER_COMPUTE: [Write((0,)), _load(1, 0, 0)],
    Edge.STORE_AFTER_STORE: [_store(1, 0, 0), _store(2, 1, 0)],
    Edge.LOAD_AFTER_LOAD: [_load(1, 0, 0), _load(2, 0, 1)],
    Edge.STORE_AFTER_LOAD_OF_SLOT: [_load(1, 0, 0), _store(2, 1, 0)],
    Edge.STORE_AFTER_LOAD_OF_BLOCK: [_load(1, 0, 0), _store(2, 0, 1)],
    Edge.LOAD_AFTER_STORE_OF_SLOT: [_store(1, 0, 0), _load(2, 1, 0)],
    Edge.LOAD_AFTER_STORE_OF_BLOCK: [_store(1, 0, 0), _load(2, 0, 1)],
    Care.READ_IN_ORDER: [_store(1, 0, 0), _load(2, 1, 0)],
    Care.FLUSH_OF_STORE: [_store(1, 0, 0), Flush((1,)), Write((0,))],
    Care.FLUSH_OF_LOAD: [_load(1, 0, 0), Flush((1,)), Write((0,))],
    Care.TOLD_OF_LOAD: [_load(1, 0, 0), Told((1,)), Read((0,))],
    Care.TOLD_OF_STORE: [_store(1, 0, 0), Told((1,)), HostRead((0,))],
    Care.DESCRIPTORS: [_store(1, 0, 0), _store(2, 1, 1)],
}
"""For each edge the shortest history that needs it, in the small geometry."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What every order of a witness shows.

    Attributes:
        races: the races without the edge, each once.
        orders: how many orders there are without the edge, and how many of them lose bytes.
        orders_with: how many orders there are with it.
    """

    edge: Edge | Care
    races: list[str]
    orders: int
    lost: int
    orders_with: int


def show(edge: Edge | Care) -> Shown:
    """Play the edge's witness in every order, without the edge and with it.

    Raises:
        AssertionError: there is a race with the edge, or a wrong byte, or too many orders.
    """
    complete = _all_orders(WITNESSES[edge], None)
    for outcome in complete:
        if outcome.races or outcome.wrong:
            raise AssertionError(f"{edge} is there, and yet: {outcome.races} {outcome.wrong}")
    found = _all_orders(WITNESSES[edge], edge)
    races = {str(race): None for outcome in found for race in outcome.races}
    lost = sum(bool(outcome.wrong) for outcome in found)
    return Shown(edge, list(races), len(found), lost, len(complete))


def _all_orders(history: History, missing: Edge | Care | None) -> list[Outcome]:
    def run(policy: Policy) -> Outcome:
        return play(history, SMALL, DeviceWithout(policy, missing))

    found = list(every_order(run, MOST_ORDERS))
    if len(found) == MOST_ORDERS:
        raise AssertionError(f"more than {MOST_ORDERS} orders of {history}")
    return found


def random_history(
    seed: int, missing: Edge | Care | None = None, moves: int = 14, geometry: Geometry = MIXED
) -> list[Race]:
    """The races of a random history in a random order; none when nothing is missing.

    Raises:
        AssertionError: nothing is missing and bytes are wrong, or something was not given back.
    """
    device = DeviceWithout(Priorities(seed), missing)
    outcome = play(draw(seed, moves, geometry), geometry, device)
    if missing is None and (outcome.wrong or any(outcome.live.values())):
        raise AssertionError(f"seed {seed}: {outcome.wrong}, {outcome.live}")
    return outcome.races
