"""Copy plans: exact arrays, what is merged, what is refused, and a dumb copier as the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvproof.impl.transfer.layout import Layout, LayoutError, Tensor
from kvproof.impl.transfer.pieces import Pieces, pieces
from kvproof.impl.transfer.plan import CopyPlan, Scratch, plan_load, plan_store
from tests.impl.transfer_world import World, jobs, worlds

Copies = list[tuple[int, int, int]]
Pairs = list[tuple[tuple[int, int], tuple[int, int]]]

PAGE = Tensor(device=1000, host=5000, size=8, block_stride=8, slot_stride=16, piece_stride=8)


def copies(plan: CopyPlan) -> Copies:
    """(source, target, size) of each copy."""
    batch = plan.arrays()
    assert {one.dtype for one in (batch.sources, batch.targets, batch.sizes)} == {np.dtype("i8")}
    columns = (batch.sources.tolist(), batch.targets.tolist(), batch.sizes.tolist())
    return list(zip(*columns, strict=True))


def one_group(blocks: list[int], first: int, slots: list[int], per: int = 2) -> list[Pieces]:
    return pieces(blocks, [len(blocks)], [first], slots, per)


def test_a_store_goes_from_blocks_to_pieces_and_a_load_back() -> None:
    layout = Layout([[PAGE]], blocks=10, slots=4, blocks_per_chunk=2)
    moved = one_group([7, 3, 5], 1, [2, 0])
    there = plan_store(layout, moved)
    assert copies(there) == [(1056, 5040, 8), (1024, 5000, 8), (1040, 5008, 8)]
    assert (there.size, there.count, there.largest) == (24, 3, 8)
    back = plan_load(layout, moved)
    assert copies(back) == [(target, source, size) for source, target, size in copies(there)]


def test_what_follows_on_both_sides_is_one_copy() -> None:
    layout = Layout([[PAGE]], blocks=10, slots=4, blocks_per_chunk=2)
    plan = plan_store(layout, one_group([4, 5, 6, 7, 1], 1, [2, 3, 0]))
    assert copies(plan) == [(1032, 5040, 24), (1056, 5000, 8), (1008, 5008, 8)]
    assert plan.largest == 24


def test_what_follows_on_one_side_only_is_not() -> None:
    layout = Layout([[PAGE]], blocks=10, slots=4, blocks_per_chunk=2)
    assert copies(plan_store(layout, one_group([4, 5], 1, [2, 0]))) == [
        (1032, 5040, 8),
        (1040, 5000, 8),
    ]
    assert plan_store(layout, one_group([5, 4], 0, [2])).count == 2


def test_padding_is_not_copied_and_keeps_pages_apart() -> None:
    padded = Tensor(1000, 5000, 5, 8, 16, 8)
    layout = Layout([[padded]], blocks=10, slots=4, blocks_per_chunk=2)
    assert copies(plan_store(layout, one_group([4, 5], 0, [1]))) == [
        (1032, 5016, 5),
        (1040, 5024, 5),
    ]


def test_layers_packed_in_a_block_on_both_sides_are_one_copy() -> None:
    packed = [Tensor(1000 + 8 * n, 5000 + 8 * n, 8, 24, 48, 24) for n in (1, 0, 2)]
    layout = Layout([packed], blocks=10, slots=4, blocks_per_chunk=2)
    plan = plan_store(layout, one_group([6, 2, 3], 0, [1, 2]))
    assert copies(plan) == [(1144, 5048, 24), (1048, 5072, 48)]
    assert plan_store(layout, one_group([2, 3], 0, [1])).count == 1


def test_layers_packed_on_one_side_are_copied_one_by_one() -> None:
    packed = [Tensor(1000 + 8 * n, 5000 + 100 * n, 8, 16, 16, 8) for n in (0, 1)]
    layout = Layout([packed], blocks=10, slots=4, blocks_per_chunk=2)
    assert copies(plan_store(layout, one_group([3], 0, [1]))) == [
        (1048, 5016, 8),
        (1056, 5116, 8),
    ]


def test_each_group_has_its_own_tensors_and_nothing_to_move_is_an_empty_plan() -> None:
    other = Tensor(2000, 9000, 4, 4, 8, 4)
    layout = Layout([[PAGE], [], [other, PAGE]], blocks=10, slots=4, blocks_per_chunk=2)
    plan = plan_store(layout, pieces([1, 2], [1, 0, 1], [0, 0, 0], [0, 1], 2))
    assert sorted(copies(plan)) == [(1008, 5000, 8), (1016, 5016, 8), (2008, 9008, 4)]
    assert plan.size == 20
    empty = plan_load(layout, [])
    assert (copies(empty), empty.size, empty.count, empty.largest) == ([], 0, 0, 0)


def test_the_memory_to_pin_is_the_slots_and_spans_that_touch_are_one() -> None:
    others = [Tensor(2000, 5064, 8, 8, 16, 8), Tensor(3000, 6000, 4, 8, 16, 8)]
    layout = Layout([[PAGE, *others]], blocks=10, slots=4, blocks_per_chunk=2)
    assert layout.host_spans() == [(5000, 128), (6000, 3 * 16 + 8 + 4)]


@pytest.mark.parametrize(
    ("moved", "message"),
    [
        (one_group([10], 0, [0]), "blocks 10 to 10 of 10"),
        (one_group([1, -1], 0, [0]), "blocks -1 to 1 of 10"),
        (one_group([1], 0, [4]), "slots 4 to 4 of 4"),
        (one_group([1, 2, 3], 0, [0], per=3), "pieces 0 to 2 of 2"),
        (pieces([1], [0, 1], [0, 0], [0], 2), "group 1 of 1"),
    ],
)
def test_what_does_not_exist_is_refused(moved: list[Pieces], message: str) -> None:
    layout = Layout([[PAGE]], blocks=10, slots=4, blocks_per_chunk=2)
    for plan in (plan_store, plan_load):
        with pytest.raises(IndexError) as refused:
            plan(layout, moved)
        assert str(refused.value) == message


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ([Tensor(0, 0, 0, 8, 16, 8)], "group 0: a page of 0 bytes"),
        ([Tensor(0, 0, 9, 8, 18, 9)], "group 0: 9 bytes do not fit into a block of 8"),
        ([Tensor(0, 0, 8, 8, 16, 7)], "group 0: 8 bytes do not fit into a piece of 7"),
        ([Tensor(0, 0, 8, 8, 15, 8)], "group 0: a chunk's 16 bytes do not fit into a slot of 15"),
        (
            [PAGE, Tensor(1072, 6000, 8, 8, 16, 8)],
            "group 0, on the device: two tensors have bytes in common",
        ),
        (
            [PAGE, Tensor(2000, 5063, 8, 8, 16, 8)],
            "group 0, in the tier: two tensors have bytes in common",
        ),
        (
            [Tensor(0, 0, 8, 24, 32, 8), Tensor(8, 16, 8, 32, 32, 8)],
            "group 0, on the device: tensors with different strides lie between each other",
        ),
        (
            [
                Tensor(0, 0, 8, 24, 32, 8),
                Tensor(12, 16, 8, 24, 32, 8),
                Tensor(18, 900, 8, 24, 9, 9),
            ],
            "group 0: a chunk's 17 bytes do not fit into a slot of 9",
        ),
    ],
)
def test_a_layout_with_bytes_in_common_is_refused(tensors: list[Tensor], message: str) -> None:
    with pytest.raises(LayoutError) as refused:
        Layout([tensors], blocks=10, slots=4, blocks_per_chunk=2)
    assert str(refused.value) == message


def test_a_layout_of_nothing_is_refused() -> None:
    with pytest.raises(LayoutError, match="10 blocks, 0 slots and 2 blocks of a chunk must all"):
        Layout([[PAGE]], blocks=10, slots=0, blocks_per_chunk=2)


def test_groups_that_share_memory_must_agree_what_a_block_and_a_slot_is() -> None:
    other = Tensor(1000, 5000, 4, 4, 8, 4)
    with pytest.raises(LayoutError) as refused:
        Layout([[PAGE], [other]], blocks=10, slots=4, blocks_per_chunk=2)
    assert str(refused.value) == "on the device: blocks of different numbers have bytes in common"
    with pytest.raises(LayoutError) as refused:
        Layout([[PAGE], [Tensor(2000, 5008, 8, 8, 16, 8)]], 10, slots=4, blocks_per_chunk=2)
    assert str(refused.value) == "in the tier: slots of different numbers have bytes in common"


def test_tensors_that_interlock_and_groups_that_share_memory_are_no_overlap() -> None:
    interlocked = [Tensor(0, 0, 8, 24, 32, 16), Tensor(12, 8, 8, 24, 32, 16)]
    layout = Layout([interlocked, interlocked], blocks=10, slots=4, blocks_per_chunk=2)
    assert layout.bytes_per_block == (16, 16)


@given(st.data())
@settings(max_examples=60)
def test_batches_are_the_arrays_cut_to_size(data: st.DataObject) -> None:
    world = data.draw(worlds(most_tensors=6))
    plan = plan_store(world.layout, data.draw(jobs(world)))
    limit = data.draw(st.integers(1, 20))
    cut: Copies = []
    for batch in plan.batches(Scratch(limit)):
        columns = (batch.sources.tolist(), batch.targets.tolist(), batch.sizes.tolist())
        assert 1 <= len(columns[0]) <= limit
        cut += zip(*columns, strict=True)
    assert sorted(cut) == sorted(copies(plan))


@given(st.data())
@settings(max_examples=60)
def test_a_plan_copies_each_byte_of_each_piece_once_to_its_place(data: st.DataObject) -> None:
    world: World = data.draw(worlds())
    moved = data.draw(jobs(world))
    wanted = []
    for one in moved:
        for block, slot, piece in zip(one.blocks, one.slots, one.offsets, strict=True):
            for tensor in world.groups[one.group]:
                source = tensor.device + block * tensor.block_stride
                target = tensor.host + slot * tensor.slot_stride + piece * tensor.piece_stride
                wanted += [(source + byte, target + byte) for byte in range(tensor.size)]
    plan = plan_store(world.layout, moved)
    found = [
        (source + byte, target + byte)
        for source, target, size in copies(plan)
        for byte in range(size)
    ]
    assert sorted(found) == sorted(wanted)
    assert plan.size == len(wanted)
    assert copies(plan_load(world.layout, moved)) == [
        (target, source, size) for source, target, size in copies(plan)
    ]
    if len(world.groups) == 1 and len(world.groups[0]) == 1:  # then all that follows is one copy
        ends = [(source + size, target + size) for source, target, size in copies(plan)]
        starts = [(source, target) for source, target, _ in copies(plan)]
        assert not any(end == start for end, start in pairwise_of(ends, starts))


def pairwise_of(ends: list[tuple[int, int]], starts: list[tuple[int, int]]) -> Pairs:
    return list(zip(ends[:-1], starts[1:], strict=True))
