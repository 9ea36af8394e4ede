"""The authoring language: typed proxies whose use is traced into the intermediate form.

A machine is a class whose attributes are declared fields and whose decorated methods are actions
and invariants. Each body runs once, with proxies; nothing is evaluated. ``mypy --strict`` rejects
an index of the wrong sort, and a truth test (``if``, ``and``, ``or``, ``not``) on a proxy raises.

    class Toy(MachineSpec):
        holds = relation2(Request, Lease, serves="S1")

        @action(by="engine")
        def free(self, r: Expr[Request], l: Expr[Lease]) -> None:
            assume(self.holds[r, l])
            self.holds.discard(r, l)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any as AnyType
from typing import TypeVar, get_args, get_type_hints

from kvproof.spec import ir
from kvproof.spec.expressions import (
    ANY,
    EACH,
    NEVER,
    Bool,
    Expr,
    Int,
    Sort,
    SpecError,
    both,
    either,
    every,
    forall,
    implies,
    negate,
    none,
    sort_name,
)
from kvproof.spec.fields import Declared
from kvproof.spec.maps import (
    attribute,
    map1,
    map2,
    relation1,
    relation2,
    relation3,
    relation4,
    scalar,
)
from kvproof.spec.statements import assume, collecting, conclude, oblige

__all__ = [
    "ANY",
    "EACH",
    "NEVER",
    "OWNERS",
    "Bool",
    "Expr",
    "Int",
    "MachineSpec",
    "Sort",
    "SpecError",
    "action",
    "assume",
    "attribute",
    "both",
    "conclude",
    "either",
    "every",
    "forall",
    "implies",
    "invariant",
    "map1",
    "map2",
    "measure",
    "negate",
    "none",
    "oblige",
    "relation1",
    "relation2",
    "relation3",
    "relation4",
    "scalar",
]

M = TypeVar("M", bound=Callable[..., AnyType])

OWNERS = ("engine", "tier", "worker", "scheduler")


def action(by: str) -> Callable[[M], M]:
    """Mark a method as an action of ``by`` (one of ``OWNERS``)."""
    if by not in OWNERS:
        raise SpecError(f"no party is called {by!r}; the parties are {', '.join(OWNERS)}")

    def mark(method: M) -> M:
        method.__dict__["kvproof_owner"] = by
        return method

    return mark


def invariant(id: str) -> Callable[[M], M]:
    """Mark a method as an invariant that serves ``id``; its docstring is its sentence."""

    def mark(method: M) -> M:
        method.__dict__["kvproof_invariant"] = id
        return method

    return mark


def measure(id: str) -> Callable[[M], M]:
    """Mark a method as a measure that serves ``id``: it returns what is left, and when it begins.

    See ``ir.Measure``.
    """

    def mark(method: M) -> M:
        method.__dict__["kvproof_measure"] = id
        return method

    return mark


class MachineSpec:
    """Base of machines. ``trace()`` gives the intermediate form."""

    @classmethod
    def trace(cls) -> ir.Machine:
        """Run every body once and collect what it said.

        Raises:
            SpecError: a parameter shadows a field, a name is used twice, a body is malformed.
        """
        self = cls()
        fields: dict[str, ir.Field] = {}
        actions: dict[str, ir.Action] = {}
        invariants: list[ir.Invariant] = []
        measures: list[ir.Measure] = []
        members = {n: m for c in reversed(cls.__mro__) for n, m in vars(c).items()}
        for member in members.values():
            if isinstance(member, Declared):
                fields[member.field] = member.declaration()
        for name, member in members.items():
            if owner := getattr(member, "kvproof_owner", None):
                actions[name] = _trace_action(self, name, owner, member, fields)
            elif id := getattr(member, "kvproof_invariant", None):
                node = member(self).node
                invariants.append(ir.Invariant(id, name, node, inspect.getdoc(member) or ""))
            elif id := getattr(member, "kvproof_measure", None):
                params = _params(name, member, fields)
                rest, begins = member(self, *(Expr(p) for p in params))
                doc = inspect.getdoc(member) or ""
                measures.append(ir.Measure(id, name, params, rest.node, begins.node, doc))
        sorts = {s for f in fields.values() for s in (*f.args, f.value)}
        sorts |= {v.sort for a in actions.values() for v in a.params}
        return ir.Machine(
            cls.__name__,
            tuple(sorted(sorts - {"Int", "Bool"})),
            fields,
            actions,
            tuple(invariants),
            tuple(measures),
        )


def _params(name: str, method: AnyType, fields: dict[str, ir.Field]) -> tuple[ir.Var, ...]:
    """The parameters of a method after ``self``, as variables of their sorts."""
    hints = get_type_hints(method)
    params = []
    for parameter in list(inspect.signature(method).parameters)[1:]:
        if parameter in fields:
            raise SpecError(f"{name}: parameter {parameter} shadows the field of that name")
        (sort,) = get_args(hints[parameter])
        params.append(ir.Var(parameter, sort_name(sort)))
    return tuple(params)


def _trace_action(
    machine: MachineSpec, name: str, owner: str, method: AnyType, fields: dict[str, ir.Field]
) -> ir.Action:
    params = _params(name, method, fields)
    with collecting() as said:
        method(machine, *(Expr(p) for p in params))
        body = tuple(said)
    return ir.Action(name, owner, params, body, inspect.getdoc(method) or "")
