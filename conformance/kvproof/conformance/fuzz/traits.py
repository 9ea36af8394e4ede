"""Traits: what the history of a finding has that a plan can do without.

A loud fault ends most examples before a quiet one can show. Its shrunk history is as plain as it
gets, so what is not plain in it is what it needs. A plan without one of these traits keeps the
fault away, and leaves room for others. Which one goes is drawn anew for each example, so that a
quiet fault that shares a trait with a loud one has its turn too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set

import msgspec
from hypothesis import strategies as st

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
    Target,
)
from kvproof.conformance.fuzz.strategies import CPU, DISTURBANCES, Plan, plans_for, supported

Trait = str
"""An option of the setup or of a request that is not at its default, a group kind, a draft group,
blocks of unequal sizes, or a name below."""

_SIZES = {"groups", "num_gpu_blocks", "num_slots", "max_batch_tokens", "max_running"}
"""Fields of a setup that no plan can do without."""

_DEFAULTS: dict[str, object] = {
    field.name: field.default for field in msgspec.structs.fields(Setup) if field.name not in _SIZES
}

_ASKED: dict[str, object] = {
    field.name: field.default
    for field in msgspec.structs.fields(Add)
    if field.default is not msgspec.NODEFAULT
}

_SWITCHED_OFF: dict[Trait, frozenset[str]] = {
    "reset": frozenset({"reset", "reset_twice", "reset_while_loading"}),
    "reset twice": frozenset({"reset_twice"}),
    "preemption by reset": frozenset({"preempt_all"}),
    "forgetting on the GPU": frozenset(
        {"forget_on_the_gpu", "rest_and_forget", "reset_while_loading"}
    ),
    "abort": frozenset({"abort", "abort_latest", "abort_at_once"}),
    "rest": frozenset({"come_to_rest", "rest_and_forget", "reset_while_loading"}),
    "copies in flight": frozenset({"hold_copies", "run_out", "reset_while_loading"}),
    "session": frozenset({"go_on"}),
}
"""The disturbances that a plan without the trait has not got."""

_CHANGED: dict[Trait, Callable[[Plan], Plan]] = {
    "copies in flight": lambda plan: msgspec.structs.replace(plan, finishes=("all",)),
    "ids used again": lambda plan: msgspec.structs.replace(plan, reuses_ids=False),
    "generated tokens": lambda plan: msgspec.structs.replace(plan, max_tokens=1),
    "failing copies": lambda plan: msgspec.structs.replace(plan, fails=("",)),
}


def traits_of(history: History) -> list[Trait]:
    """What ``history`` has that a plan can do without, in a fixed order."""
    setup = history.setup
    options = [name for name, plain in _DEFAULTS.items() if getattr(setup, name) != plain]
    kinds = {group.kind for group in setup.groups} - {"full"}
    kinds |= {"draft" for group in setup.groups if group.draft}
    if len({group.tokens_per_block for group in setup.groups}) > 1:
        kinds.add("unequal blocks")
    return [*options, *sorted(kinds), *sorted(_of_moves(history.moves))]


def _of_moves(moves: Sequence[Move]) -> set[Trait]:
    found: set[Trait] = set()
    added = [move.req for move in moves if isinstance(move, Add)]
    if len(added) > len(set(added)):
        found.add("ids used again")
    forgotten = False
    for move in moves:
        match move:
            case ResetCache(connector=True):
                found.add("reset twice" if forgotten else "reset")
                forgotten = True
            case ResetCache(running=running):
                found.add("preemption by reset" if running else "forgetting on the GPU")
            case Step(finish=finish, fail=fail):
                forgotten = False
                if finish != "all":
                    found.add("copies in flight")
                if fail:
                    found.add("failing copies")
            case Abort():
                found.add("abort")
            case Add(max_tokens=more):
                found |= {n for n, plain in _ASKED.items() if getattr(move, n) != plain}
                if more > 1:
                    found.add("generated tokens")
            case _:
                pass
    if any(isinstance(move, Drain) for move in moves[:-1]):
        found.add("rest")
    # Whoever resets twice resets; to be without the second is enough.
    return found - {"reset"} if "reset twice" in found else found


def without(plan: Plan, traits: Set[Trait], supports: Callable[[Setup], str | None]) -> Plan:
    """The plan, less ``traits``; everything else stays where the target supports it so."""
    options = {name: plain for name, plain in _DEFAULTS.items() if name in traits}
    groups = tuple(
        msgspec.structs.replace(group, draft=group.draft and "draft" not in traits)
        for group in plan.setup.groups
        if group.kind not in traits
    )
    least = min(group.tokens_per_block for group in plan.setup.groups)
    if "unequal blocks" in traits:
        groups = tuple(msgspec.structs.replace(group, tokens_per_block=least) for group in groups)
    groups = groups or (GroupSetup("full", least),)
    setup = msgspec.structs.replace(plan.setup, **options, groups=groups)
    if setup != plan.setup:
        plan = msgspec.structs.replace(plan, setup=supported(setup, supports))
    off = frozenset[str]().union(*(_SWITCHED_OFF.get(trait, ()) for trait in traits))
    if not off.isdisjoint(plan.disturbances):
        left = [name for name in plan.disturbances if name not in off]
        other = [name for name in DISTURBANCES if name not in off]
        on = tuple(left or other[-1:] or plan.disturbances)
        plan = msgspec.structs.replace(plan, disturbances=on)
    asked = tuple(name for name in plan.options if name not in traits)
    plan = msgspec.structs.replace(plan, options=asked)
    for trait in sorted(traits & _CHANGED.keys()):
        plan = _CHANGED[trait](plan)
    return plan


def steered(
    target: Target, avoid: Sequence[Sequence[Trait]], behind: Mapping[str, str] = CPU
) -> st.SearchStrategy[Plan]:
    """Plans that ``target`` supports, most of which keep away what needs the traits of ``avoid``.

    Each element of ``avoid`` has the traits of one fault. A plan lacks one of them, for all faults
    but one at most.
    """
    faults = [list(traits) for traits in avoid if traits]
    plans = plans_for(target, behind)
    return _steered(target, plans, faults) if faults else plans


@st.composite
def _steered(
    draw: st.DrawFn, target: Target, plans: st.SearchStrategy[Plan], faults: list[list[Trait]]
) -> Plan:
    plan = draw(plans)

    def lacks(trait: Trait) -> bool:
        return without(plan, {trait}, target.supports) == plan

    # Twice as likely as any fault: none of them is let in.
    let_in = draw(st.sampled_from((None, None, *range(len(faults)))))
    gone: set[Trait] = set()
    for number, traits in enumerate(faults):
        if number == let_in or any(trait in gone or lacks(trait) for trait in traits):
            continue
        gone.add(draw(st.sampled_from(traits)))
    return without(plan, gone, target.supports)
