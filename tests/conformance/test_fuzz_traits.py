"""Traits: read off histories, taken from plans, and drawn so that each fault is mostly avoided."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given

from kvproof.conformance.engines.base import (
    Abort,
    Add,
    Drain,
    GroupSetup,
    History,
    Move,
    ResetCache,
    Setup,
    Step,
)
from kvproof.conformance.fuzz.strategies import Plan, Prompts, plans_for
from kvproof.conformance.fuzz.traits import steered, traits_of, without

from .fuzz_toy import ONE_GROUP, ToyTarget

WINDOWED = Setup(
    groups=(GroupSetup("full", 4), GroupSetup("window", 4, 9)),
    blocks_per_chunk=4,
    asynchronous=True,
    num_slots=3,
)
ADD = Add("a", (1, 2), 1)


def history(*moves: Move, setup: Setup = ONE_GROUP) -> History:
    return History("toy", setup, moves)


@pytest.mark.parametrize(
    ("moves", "traits"),
    [
        ((ADD, Step("all"), Drain()), []),
        ((ADD, Step("none")), ["copies in flight"]),
        ((ADD, Step("all", "loads")), ["failing copies"]),
        ((Add("a", (1,), 2), Abort("a")), ["abort", "generated tokens"]),
        ((ADD, Drain(), ADD), ["ids used again", "rest"]),
        ((ResetCache(), Step("all"), ResetCache()), ["reset"]),
        ((ResetCache(), ResetCache()), ["reset twice"]),
        ((ResetCache(False, True),), ["preemption by reset"]),
        ((ResetCache(False, False),), ["forgetting on the GPU"]),
        ((Add("a", (1,), 1, max_load=0, session=True),), ["max_load", "session"]),
    ],
)
def test_what_is_not_plain_in_the_moves_is_a_trait(
    moves: tuple[Move, ...], traits: list[str]
) -> None:
    assert traits_of(history(*moves)) == traits


def test_options_and_group_kinds_are_traits_and_sizes_are_not() -> None:
    drafted = (GroupSetup("full", 4, draft=True), *WINDOWED.groups[1:])
    setup = msgspec.structs.replace(WINDOWED, groups=drafted)
    traits = ["blocks_per_chunk", "asynchronous", "draft", "window"]
    assert traits_of(history(setup=setup)) == traits


def test_blocks_of_unequal_sizes_are_a_trait() -> None:
    uneven = (GroupSetup("full", 6), GroupSetup("window", 4, 4))
    assert traits_of(history(setup=Setup(groups=uneven))) == ["unequal blocks", "window"]


PLAN = Plan(
    setup=WINDOWED,
    prompts=Prompts((4,), ()),
    finishes=("none", "all"),
    max_tokens=12,
    disturbances=("reset_twice", "abort"),
    reuses_ids=True,
    fails=("", "loads"),
    options=("max_load", "session"),
    caps=(0,),
)


def less(*traits: str) -> Plan:
    return without(PLAN, set(traits), ToyTarget().supports)


@pytest.mark.parametrize(
    ("trait", "left"),
    [
        ("unequal blocks", (GroupSetup("full", 4), GroupSetup("window", 4, 8))),
        ("window", (GroupSetup("full", 6),)),
    ],
)
def test_groups_lose_what_is_kept_away(trait: str, left: tuple[GroupSetup, ...]) -> None:
    uneven = (GroupSetup("full", 6), GroupSetup("window", 4, 8))
    plan = msgspec.structs.replace(PLAN, setup=Setup(groups=uneven))
    assert without(plan, {trait}, lambda setup: None).setup.groups == left


def test_full_attention_takes_the_place_of_a_window_that_was_alone() -> None:
    plan = msgspec.structs.replace(PLAN, setup=Setup(groups=(GroupSetup("window", 4, 8),)))
    kept_away = without(plan, {"window"}, lambda setup: None)
    assert kept_away.setup.groups == (GroupSetup("full", 4),)


def test_a_plan_without_a_trait_differs_in_nothing_else() -> None:
    change = msgspec.structs.replace
    assert less() == PLAN
    assert less("window") == change(PLAN, setup=change(WINDOWED, groups=WINDOWED.groups[:1]))
    assert less("blocks_per_chunk") == change(PLAN, setup=change(WINDOWED, blocks_per_chunk=1))
    assert less("reset") == change(PLAN, disturbances=("abort",))
    assert less("copies in flight") == change(PLAN, finishes=("all",))
    assert less("failing copies") == change(PLAN, fails=("",))
    assert less("ids used again") == change(PLAN, reuses_ids=False)
    assert less("generated tokens") == change(PLAN, max_tokens=1)
    assert less("max_load") == change(PLAN, options=("session",))


def test_a_plan_always_has_a_disturbance_and_never_one_that_is_to_be_avoided() -> None:
    (only,) = less("reset", "abort").disturbances
    assert only not in {"reset", "reset_twice", "reset_while_loading"}
    assert not only.startswith("abort")


FAULTS = [["window", "reset"], ["copies in flight"]]


@given(steered(ToyTarget(), FAULTS))
def test_every_plan_avoids_all_faults_but_one(plan: Plan) -> None:
    target = ToyTarget()
    let_in = [
        fault
        for fault in FAULTS
        if all(without(plan, {trait}, target.supports) != plan for trait in fault)
    ]
    assert len(let_in) <= 1
    assert target.supports(plan.setup) is None


def test_with_nothing_to_avoid_the_same_plans_are_drawn() -> None:
    target = ToyTarget()
    assert repr(steered(target, [[]])) == repr(plans_for(target))
