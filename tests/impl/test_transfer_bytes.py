"""Random geometries there and back: the bytes of every page, and of every guard zone."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kvproof.impl.transfer.engine import TransferEngine
from kvproof.impl.transfer.host import HostRuntime
from tests.impl.transfer_world import World, jobs, worlds


@given(st.data())
@settings(max_examples=60)
def test_jobs_one_after_the_other_do_what_a_dumb_copier_does(data: st.DataObject) -> None:
    world: World = data.draw(worlds())
    device, host = world.device.copy(), world.host.copy()
    engine = TransferEngine(HostRuntime(), world.layout)
    sizes = {}
    try:
        for number in range(data.draw(st.integers(1, 5))):
            moved, store = data.draw(jobs(world)), data.draw(st.booleans())
            (engine.submit_store if store else engine.submit_load)(number, moved)
            sizes[number] = world.copy_dumbly(device, host, moved, store)
        engine.wait(list(sizes))
        ended = engine.ended()
    finally:
        engine.shutdown()
    assert {end.job: (end.size, end.error) for end in ended} == {
        number: (size, None) for number, size in sizes.items()
    }
    assert world.device.tobytes() == device.tobytes()
    assert world.host.tobytes() == host.tobytes()


@given(st.data())
@settings(max_examples=60)
def test_what_was_stored_comes_back_after_the_cache_is_wiped(data: st.DataObject) -> None:
    world: World = data.draw(worlds())
    moved = data.draw(jobs(world))
    before, tier_before = world.device.copy(), world.host.copy()
    engine = TransferEngine(HostRuntime(), world.layout)
    try:
        engine.submit_store(0, moved)
        engine.wait([0])
        world.device[world.device_used == 1] = 0
        engine.submit_load(1, moved)
        engine.wait([1])
    finally:
        engine.shutdown()
    for one in moved:
        for block in one.blocks:
            for tensor in range(len(world.groups[one.group])):
                loaded = world.page(world.device, one.group, tensor, block)
                assert loaded.tobytes() == world.page(before, one.group, tensor, block).tobytes()
    guard, tier_guard = world.device_used == 0, world.host_used == 0
    assert world.device[guard].tobytes() == before[guard].tobytes()
    assert world.host[tier_guard].tobytes() == tier_before[tier_guard].tobytes()
