"""What is drawn: only setups that the target supports, prompts that overlap, pools that suffice."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings

from kvproof.conformance.engines.base import GroupSetup, Setup
from kvproof.conformance.fuzz.strategies import (
    FAILS,
    OPTIONS,
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


def test_only_the_option_that_is_refused_falls() -> None:
    asked = msgspec.structs.replace(
        ONE_GROUP, prompt_only=True, asynchronous=True, eviction="arc", blocks_per_chunk=2
    )
    granted = supported(asked, lambda setup: "not ahead" if setup.asynchronous else None)
    assert granted == msgspec.structs.replace(asked, asynchronous=False)


def test_options_fall_one_by_one_until_no_objection_is_left() -> None:
    groups = (
        GroupSetup("full", 4, draft=True),
        GroupSetup("chunked", 4, 8),
        GroupSetup("recurrent", 4),
    )
    asked = msgspec.structs.replace(ONE_GROUP, groups=groups, prompt_only=True, asynchronous=True)

    def objection(setup: Setup) -> str | None:
        kinds = {group.kind for group in setup.groups}
        reasons = [
            ("recurrent" in kinds, "recurrent"),
            ("chunked" in kinds, "chunked"),
            (any(group.draft for group in setup.groups), "draft"),
            (setup.prompt_only, "prompt only"),
        ]
        return next((reason for applies, reason in reasons if applies), None)

    granted = supported(asked, objection)
    assert granted.groups == (GroupSetup("full", 4), GroupSetup("window", 4, 8))
    assert (granted.prompt_only, granted.asynchronous) == (False, True)


def test_every_kind_of_setup_and_every_wish_is_drawn() -> None:
    drawn: list[Plan] = []

    @given(plans(lambda setup: None))
    @settings(max_examples=1000, derandomize=True)
    def draw(plan: Plan) -> None:
        drawn.append(plan)

    draw()
    setups = [plan.setup for plan in drawn]
    kinds = {group.kind for setup in setups for group in setup.groups}
    assert kinds == {"full", "window", "chunked", "recurrent"}
    assert any(group.draft for setup in setups for group in setup.groups)
    sizes = {
        tuple(group.tokens_per_block for group in setup.groups)
        for setup in setups
        if tuple(group.kind for group in setup.groups) == ("full", "window")
    }
    assert {(4, 4), (6, 4), (8, 4)} <= sizes
    assert any(full < window for full, window in sizes)
    assert any(setup.groups[0].kind == "window" for setup in setups)
    assert {setup.eviction for setup in setups} == {"lru", "arc"}
    assert {setup.store_threshold for setup in setups} == {0, 2}
    assert {setup.load_failure for setup in setups} == {"recompute", "fail"}
    assert {None, 0} < {setup.retention_interval for setup in setups}
    assert {option for plan in drawn for option in plan.options} == set(OPTIONS)
    assert {fail for plan in drawn for fail in plan.fails} == set(FAILS)
    assert all(0 in plan.caps for plan in drawn)


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


def test_a_window_that_is_refused_gives_way_to_full_attention() -> None:
    alone = msgspec.structs.replace(ONE_GROUP, groups=(GroupSetup("window", 8, 9),))
    granted = supported(alone, lambda setup: "hybrid" if setup.groups[0].kind == "window" else None)
    assert granted.groups == (GroupSetup("full", 8),)


def test_a_target_that_supports_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="closed"):
        supported(ONE_GROUP, lambda setup: "closed")
