"""Copies within host memory: exact bytes, padding, shared memory, failures, order."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

from kvproof.impl.transfer.host import HostCopier, HostRuntime
from kvproof.impl.transfer.memory import Bytes, HostMemory, Part
from kvproof.impl.transfer.pieces import Pieces, pieces
from kvproof.impl.transfer.plan import CopyPlan

BLOCKS, PAGE, SLOTS, PER = 6, 8, 4, 2


def cache(pages: int = PAGE) -> Bytes:
    """A KV cache whose every byte is different: block * 16 + position, within pages of 16."""
    whole = np.arange(BLOCKS * 16, dtype=np.int8).reshape(BLOCKS, 16)
    return whole[:, :pages]


def one_group(blocks: list[int], first: int, slots: list[int]) -> list[Pieces]:
    return pieces(blocks, [len(blocks)], [first], slots, PER)


def test_what_was_stored_is_loaded_into_other_blocks_byte_for_byte() -> None:
    region = cache()
    before = region.copy()
    memory = HostMemory([region], [[Part(0, PAGE)]], SLOTS, PER)
    assert memory.store(one_group([1, 2, 3], 1, [3, 0])) == 3 * PAGE
    assert memory.chunks[0][3].tolist() == [[0] * PAGE, before[1].tolist()]
    assert memory.chunks[0][0].tolist() == [before[2].tolist(), before[3].tolist()]
    assert memory.load(one_group([5, 4], 2, [0])) == 2 * PAGE
    assert region[[5, 4]].tolist() == before[[2, 3]].tolist()
    assert region[:4].tolist() == before[:4].tolist()


def test_a_region_with_gaps_between_its_pages_keeps_what_lies_in_the_gaps() -> None:
    whole = np.arange(BLOCKS * 16, dtype=np.int8).reshape(BLOCKS, 16)
    region, between = whole[:, :PAGE], whole[:, PAGE:].copy()
    memory = HostMemory([region], [[Part(0, PAGE)]], SLOTS, PER)
    memory.store(one_group([0, 1], 0, [2]))
    memory.load(one_group([4, 5], 0, [2]))
    assert whole[4, :PAGE].tolist() == list(range(PAGE))
    assert whole[:, PAGE:].tolist() == between.tolist()


def test_padding_stays_where_it_is() -> None:
    region = cache()
    before = region.copy()
    memory = HostMemory([region], [[Part(0, 5)]], SLOTS, PER)
    assert memory.store(one_group([1], 0, [0])) == 5
    assert memory.load(one_group([2], 0, [0])) == 5
    assert region[2].tolist() == before[1, :5].tolist() + before[2, 5:].tolist()


def test_each_group_moves_its_own_regions() -> None:
    regions = [cache(), cache() + np.int8(1)]
    first, second = (region.copy() for region in regions)
    memory = HostMemory(regions, [[Part(0, PAGE), Part(1, PAGE)], [Part(1, 4)]], SLOTS, PER)
    moved = pieces([1, 2], [1, 1], [0, 0], [0, 1], PER)
    assert memory.store(moved) == 2 * PAGE + 4
    assert memory.chunks[0][0, 0].tolist() == first[1].tolist()
    assert memory.chunks[1][0, 0].tolist() == second[1].tolist()
    assert memory.chunks[0][1].any() == np.False_
    assert memory.chunks[1][1, 0].tolist() == [*second[2, :4].tolist(), 0, 0, 0, 0]


def test_layers_of_a_group_that_share_a_region_are_copied_once() -> None:
    region = cache()
    memory = HostMemory([region], [[Part(0, 5), Part(0, PAGE), Part(0, 6)]], SLOTS, PER)
    assert memory.parts == ((Part(0, PAGE),),)
    assert memory.store(one_group([1], 0, [0])) == PAGE


@pytest.mark.parametrize(
    ("block", "slot", "message"),
    [
        (BLOCKS, 0, "blocks 1 to 6 of 6"),
        (-1, 0, "blocks -1 to 1 of 6"),
        (2, SLOTS, "slots 4 to 4 of 4"),
        (2, -1, "slots -1 to -1 of 4"),
    ],
)
def test_ids_out_of_range_move_no_byte(block: int, slot: int, message: str) -> None:
    region = cache()
    before = region.copy()
    memory = HostMemory([region], [[Part(0, PAGE)]], SLOTS, PER)
    memory.chunks[0][:] = 77
    moved = one_group([1, block], 0, [slot])
    for copy in (memory.load, memory.store):
        with pytest.raises(IndexError) as refused:
            copy(moved)
        assert str(refused.value) == message
    assert region.tolist() == before.tolist()
    assert np.unique(memory.chunks[0]).tolist() == [77]


def test_a_page_that_is_too_small_is_refused() -> None:
    with pytest.raises(ValueError, match="9 bytes do not fit into a page of 8"):
        HostMemory([cache()], [[Part(0, PAGE + 1)]], SLOTS, PER)
    with pytest.raises(ValueError, match=r"a region has shape \(3,\), not \(blocks, bytes\)"):
        HostMemory([np.zeros(3, np.int8)], [], SLOTS, PER)


# --- in the background ---


class Gated(HostRuntime):
    """Stores only while the gate is open."""

    def __init__(self) -> None:
        self.memory = HostMemory([cache()], [[Part(0, PAGE)]], SLOTS, PER)
        self.gate = threading.Event()
        self.begun = threading.Event()

    def carry_out(self, plan: CopyPlan) -> None:
        if threading.current_thread().name == "kv-store":
            self.begun.set()
            assert self.gate.wait(30)
        super().carry_out(plan)


@pytest.fixture
def gated() -> Gated:
    return Gated()


@pytest.fixture
def memory(gated: Gated) -> HostMemory:
    return gated.memory


@pytest.fixture
def copier(gated: Gated) -> Iterator[HostCopier]:
    copier = HostCopier(gated.memory, gated)
    yield copier
    gated.gate.set()
    copier.shutdown()


def test_a_job_that_runs_is_not_told_and_one_that_ended_is_told_once(
    copier: HostCopier, gated: Gated
) -> None:
    copier.submit_store(4, one_group([1], 0, [0]))
    assert copier.ended() == []
    gated.gate.set()
    copier.wait([4, 99])
    (end,) = copier.ended()
    assert (end.job, end.size, end.error) == (4, PAGE, None)
    assert end.seconds is not None
    assert end.seconds > 0
    assert copier.ended() == []
    copier.wait([4])


def test_a_load_does_not_wait_for_a_store_before_it(copier: HostCopier, memory: HostMemory) -> None:
    memory.chunks[0][2] = 9
    copier.submit_store(1, one_group([1], 0, [0]))
    copier.submit_load(2, one_group([3], 0, [2]))
    copier.wait([2])
    assert [end.job for end in copier.ended()] == [2]
    assert memory.regions[0][3].tolist() == [9] * PAGE


def test_stores_are_carried_out_in_the_order_of_their_submission(
    copier: HostCopier, gated: Gated
) -> None:
    memory = gated.memory
    for job, block in enumerate([1, 2, 3]):
        copier.submit_store(job, one_group([block], 0, [0]))
    gated.gate.set()
    copier.wait([0, 1, 2])
    assert [end.job for end in copier.ended()] == [0, 1, 2]
    assert memory.chunks[0][0, 0].tolist() == memory.regions[0][3].tolist()


def test_a_failure_is_a_result_and_the_next_job_is_carried_out(
    copier: HostCopier,
) -> None:
    copier.submit_load(1, one_group([1], 0, [SLOTS]))
    copier.submit_load(2, one_group([2], 0, [0]))
    copier.wait([1, 2])
    assert [(end.job, end.size, end.error) for end in copier.ended()] == [
        (1, 0, "IndexError: slots 4 to 4 of 4"),
        (2, PAGE, None),
    ]


def test_a_copy_that_breaks_off_is_a_result_of_its_own_job(
    memory: HostMemory,
) -> None:
    class Breaking(HostRuntime):
        def carry_out(self, plan: CopyPlan) -> None:
            if plan.size == 2 * PAGE:
                raise MemoryError("no room")
            super().carry_out(plan)

    copier = HostCopier(memory, Breaking())
    for job, blocks in enumerate([[1], [1, 2], [2]]):
        copier.submit_load(job, one_group(blocks, 0, [0]))
    copier.wait([0, 1, 2])
    assert [(end.job, end.size, end.error) for end in copier.ended()] == [
        (0, PAGE, None),
        (1, 0, "MemoryError: no room"),
        (2, PAGE, None),
    ]
    copier.shutdown()


def test_a_load_waits_for_the_store_that_fills_its_slot(copier: HostCopier, gated: Gated) -> None:
    copier.submit_store(1, one_group([1], 0, [0]))
    copier.submit_load(2, one_group([3], 0, [0]))
    copier.submit_store(3, one_group([3], 0, [1]))
    assert gated.begun.wait(30)
    assert copier.ended() == []
    gated.gate.set()
    copier.wait([3])
    assert [end.job for end in copier.ended()] == [1, 3, 2]
    assert gated.memory.chunks[0][1, 0].tolist() == gated.memory.regions[0][1].tolist()


def test_a_shutdown_lets_the_running_copy_end_and_another_one_changes_nothing() -> None:
    gated = Gated()
    copier = HostCopier(gated.memory, gated)
    copier.submit_store(1, one_group([1], 0, [0]))
    assert gated.begun.wait(30)
    threading.Timer(0.05, gated.gate.set).start()
    copier.shutdown()
    assert gated.memory.chunks[0][0, 0].tolist() == gated.memory.regions[0][1].tolist()
    assert copier.ended() == []
    copier.shutdown()
    with pytest.raises(RuntimeError, match="has been shut down"):
        copier.submit_load(2, one_group([1], 0, [0]))
    assert not any(thread.name.startswith("kv-") for thread in threading.enumerate())


def test_a_job_number_is_used_once_until_its_end_is_told(copier: HostCopier, gated: Gated) -> None:
    gated.gate.set()
    copier.submit_store(1, one_group([1], 0, [0]))
    with pytest.raises(RuntimeError, match="transfer job 1 is submitted twice"):
        copier.submit_load(1, one_group([1], 0, [0]))
    copier.wait([1])
    assert [end.job for end in copier.ended()] == [1]
    copier.submit_load(1, one_group([1], 0, [0]))


# --- copies of every shape ---


@pytest.mark.parametrize("page", [24, 4096, 100_000])
@pytest.mark.parametrize("padding", [0, 40])
@pytest.mark.parametrize("blocks_order", ["in order", "backwards", "strewn"])
@pytest.mark.parametrize("slots_order", ["in order", "backwards", "strewn"])
def test_pages_of_any_size_in_any_order_arrive(
    page: int, padding: int, blocks_order: str, slots_order: str
) -> None:
    """In order on both, one or neither side: each is copied in another way."""
    rng = np.random.default_rng(page)
    count = 20
    whole = rng.integers(-128, 128, (count, page + padding), np.int8)
    region = whole[:, :page]
    before = whole.copy()
    memory = HostMemory([region], [[Part(0, page)]], count, 2)
    orders = {
        "in order": np.arange(count),
        "backwards": np.arange(count)[::-1],
        "strewn": rng.permutation(count),
    }
    blocks, slots = orders[blocks_order], orders[slots_order]
    moved = pieces(blocks[:17], [17], [1], slots[:9], 2)
    assert memory.store(moved) == 17 * page
    for number, block in enumerate(blocks[:17], start=1):
        stored = memory.chunks[0][slots[number // 2], number % 2]
        assert stored.tobytes() == before[block, :page].tobytes()
    assert not memory.chunks[0][slots[0], 0].any()
    region[:] = 0
    memory.load(moved)
    for block in range(count):
        loaded = region[block].tobytes()
        assert loaded == (before[block, :page].tobytes() if block in blocks[:17] else bytes(page))
    assert whole[:, page:].tobytes() == before[:, page:].tobytes()
