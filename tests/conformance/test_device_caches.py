"""KV caches and a tier as bytes: what the model reads is what was written for it."""

from __future__ import annotations

import pytest

from kvproof.conformance.device.caches import Placed, SimulatedCaches, Stretch
from kvproof.conformance.device.device import SimulatedDevice
from kvproof.conformance.device.policy import Early, Late, Policy, Priorities
from kvproof.impl.transfer.engine import TransferEngine
from kvproof.impl.transfer.pieces import pieces

POLICIES: list[Policy] = [Early(), Late(), *(Priorities(seed) for seed in range(6))]


def caches(policy: Policy) -> tuple[SimulatedDevice, SimulatedCaches]:
    device = SimulatedDevice(policy)
    return device, SimulatedCaches(device, [4, 2], blocks=6, slots=3, blocks_per_chunk=2)


def there_and_back(policy: Policy, waits: bool = True) -> tuple[SimulatedDevice, SimulatedCaches]:
    """Two blocks of group 0 are written, stored, overwritten by zeros and loaded elsewhere."""
    device, ours = caches(policy)
    engine = TransferEngine(device, ours.layout)
    both = [Stretch(0, 1, 0, 4), Stretch(0, 2, 0, 4)]
    ours.compute("the forward of step 0", (), both)
    engine.submit_store(0, pieces([1, 2], [2, 0], [0, 0], [1], 2))
    ours.stored([Placed(0, 1, 1, 0), Placed(0, 2, 1, 1)])
    if waits:
        engine.wait([0])
    ours.clear("the clearing of step 1", [1, 2])
    engine.submit_load(1, pieces([4, 5], [2, 0], [0, 0], [1], 2))
    ours.loaded([Placed(0, 4, 1, 0), Placed(0, 5, 1, 1)])
    engine.wait([1])
    ours.compute("the forward of step 2", [Stretch(0, 4, 0, 4), Stretch(0, 5, 0, 3)], ())
    device.rest()
    engine.shutdown()
    ours.look()
    return device, ours


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_what_was_stored_comes_back(policy: Policy) -> None:
    device, ours = there_and_back(policy)
    assert (device.races, ours.wrong) == ([], [])


def test_a_block_that_is_changed_too_early_is_told() -> None:
    device, _ = there_and_back(Late(), waits=False)
    (race,) = device.races
    assert str(race) == (
        "store 1 reads and the clearing of step 1 writes 4 bytes of the KV cache of keys from 8;"
        " missing: the end of store 1 before the clearing of step 1 writes"
    )


def test_what_is_read_is_compared_when_it_is_read() -> None:
    device, ours = caches(Late())
    ours.compute("the forward of step 0", (), [Stretch(1, 3, 0, 2)])
    ours.compute("the forward of step 1", [Stretch(1, 3, 0, 2)], [Stretch(1, 3, 1, 2)])
    assert ours.wrong == []
    device.rest()
    assert ours.wrong == []
    # Somebody else's bytes.
    for zone in device.memory.zones:
        if zone.name.startswith("the KV cache"):
            zone.bytes[:] = 255
    ours.compute("the forward of step 2", [Stretch(1, 3, 0, 1)], ())
    device.rest()
    assert ours.wrong == ["the forward of step 2 reads other bytes than were written for it"]


def test_bytes_that_a_failed_copy_leaves_are_nobodys() -> None:
    device, ours = caches(Early())
    ours.stored([Placed(0, 1, 1, 0)])
    ours.look()
    assert [what.split(" holds")[0] for what in ours.wrong] == [
        "the tier of keys",
        "the tier of values",
    ]
    ours.wrong.clear()
    ours.stored([Placed(0, 2, 2, 1)])
    ours.spoiled([Placed(0, 2, 2, 1)], store=True)
    ours.look()
    assert ours.wrong == []
    device.rest()


def test_a_block_copy_takes_all_tensors() -> None:
    device, ours = caches(Late())
    ours.compute("the forward of step 0", (), [Stretch(0, 1, 0, 4)])
    ours.copy_block("the block copy of step 1", 1, 5)
    ours.compute("the forward of step 1", [Stretch(0, 5, 0, 4)], ())
    device.rest()
    ours.look()
    assert (device.races, ours.wrong) == ([], [])
