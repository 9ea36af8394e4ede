"""What a campaign must have given a chance: every guard's id, and every move of the fuzzer.

A campaign that found nothing says little of an id whose guards it never asked. A release may be
unable to get into some situation at all; a demand file lists these, each with its reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from kvproof.conformance.errors import UsageError
from kvproof.conformance.fuzz.allowed import entries
from kvproof.conformance.fuzz.campaign import RULES, Coverage
from kvproof.spec import ir
from kvproof.spec.contract import contract
from kvproof.spec.ids import CONTRACT

Excused = Mapping[str, str]
"""Reasons by the name of an id or a rule."""

EVERYTHING = "all"


def read_demand(name: str) -> Excused:
    """What is excused: nothing for "all", else what the file called ``name`` lists.

    A line of the file is an id or a rule, and behind ``#`` the reason.

    Raises:
        UsageError: the file cannot be read, names something unknown, or lacks a reason.
    """
    if name == EVERYTHING:
        return {}
    excused: dict[str, str] = {}
    known = askable_ids() | set(RULES)
    for number, entry, reason in entries(Path(name)):
        if entry not in known:
            raise UsageError(f"{name}:{number}: {entry!r} is neither an id with a guard nor a rule")
        if not reason:
            raise UsageError(f"{name}:{number}: {entry} has no reason: expected `NAME  # reason`")
        excused[entry] = reason
    return excused


@cache
def askable_ids() -> frozenset[str]:
    """Ids whose guards can be asked while nothing is wrong.

    Where an action is forbidden outright (a call that raises), being asked is being broken.
    """
    found = set()
    for action in contract().actions.values():
        guards = [s for s in action.body if isinstance(s, ir.Guard)]
        if all(guard.cond != ir.FALSE for guard in guards):
            found |= {guard.id for guard in guards if guard.id}
    return frozenset(found)


def never(coverage: Coverage) -> list[str]:
    """The ids and rules that had no chance: ids in the contract's order, then rules."""
    asked = coverage.reference
    ids = [id for id in CONTRACT if id in askable_ids() and not asked.get(f"guard {id}")]
    return ids + [rule for rule, count in coverage.rules.items() if not count]


def unmet(coverage: Coverage, excused: Excused) -> list[str]:
    """What had no chance and is not excused."""
    return [name for name in never(coverage) if name not in excused]


def idle_excuses(coverage: Coverage, excused: Excused) -> list[str]:
    """What is excused and had a chance all the same: its line in the demand file can go."""
    missing = never(coverage)
    return [name for name in excused if name not in missing]
