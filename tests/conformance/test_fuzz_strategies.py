"""What is drawn: only setups that the target supports, prompts that overlap, pools that suffice."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings

from kvproof.conformance.engines.base import GroupSetup, Setup
from kvproof.conformance.fuzz.strategies import (
    Plan,
    Prompts,
    blocks_for,
    lengths,
    plans,
    plans_for,
    supported,
)

from .fuzz_toy import ONE_GROUP, ToyTarget


def picky(setup: Setup) -> str | None:
    """Refuses as an early release does."""
    sizes = {group.tokens_per_block for group in setup.groups}
    if any(group.kind == "recurrent" for group in setup.groups):
        return "no recurrent groups"
    if setup.prompt_only or setup.retention_interval is not None:
        return "no such options"
    return "unequal blocks" if len(sizes) > 1 and setup.blocks_per_chunk > 1 else None


@given(plans(picky))
@settings(max_examples=200)
def test_only_supported_setups_are_drawn(plan: Plan) -> None:
    assert picky(plan.setup) is None


@given(plans_for(ToyTarget()))
@settings(max_examples=200)
def test_the_pool_holds_the_longest_request(plan: Plan) -> None:
    longest = max(plan.prompts.lengths) + plan.max_tokens
    assert plan.setup.num_gpu_blocks >= blocks_for(plan.setup, longest)
    assert plan.setup.num_gpu_blocks <= blocks_for(plan.setup, longest) + 16
    assert plan.finishes and plan.disturbances


def test_prompts_of_one_family_share_their_head_up_to_the_branch() -> None:
    prompts = Prompts(lengths=(8, 17), branches=(8,))
    trunk, branch = prompts.prompt(17, 0), prompts.prompt(17, 1)
    assert trunk[:8] == branch[:8]
    assert trunk[8] != branch[8]
    assert prompts.prompt(8, 1) == trunk[:8]


def test_lengths_lie_around_block_chunk_and_window_boundaries() -> None:
    groups = (GroupSetup("full", 4), GroupSetup("window", 4, 9))
    found = lengths(msgspec.structs.replace(ONE_GROUP, groups=groups, blocks_per_chunk=2))
    assert {3, 4, 5, 8, 9, 10, 15, 16, 17} <= set(found)
    assert found == tuple(sorted(set(found)))


def test_a_target_that_supports_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="closed"):
        supported(ONE_GROUP, lambda setup: "closed")
