"""Typed expressions of the authoring language, its connectives and its quantifiers."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any as AnyType
from typing import Generic, TypeVar

from kvproof.spec import ir

S = TypeVar("S")


class SpecError(Exception):
    """The spec itself is malformed; the message names the machine, action or field."""


class Sort:
    """Base of all sorts; a sort has no values of its own."""


class Expr(Generic[S]):
    """A typed expression of sort ``S``."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, node: ir.Node) -> None:
        self.node = node

    def __bool__(self) -> bool:
        raise SpecError("an expression has no truth value here: use both, either, implies, negate")

    def __eq__(self, other: object) -> Expr[bool]:  # type: ignore[override]
        return Expr(ir.Cmp("==", self.node, node_of(other)))

    def __ne__(self, other: object) -> Expr[bool]:  # type: ignore[override]
        return Expr(ir.Not(ir.Cmp("==", self.node, node_of(other))))

    def __lt__(self: Expr[int], other: Expr[int] | int) -> Expr[bool]:
        return Expr(ir.Cmp("<", self.node, node_of(other)))

    def __le__(self: Expr[int], other: Expr[int] | int) -> Expr[bool]:
        return Expr(ir.Cmp("<=", self.node, node_of(other)))

    def __gt__(self: Expr[int], other: Expr[int] | int) -> Expr[bool]:
        return Expr(ir.Cmp("<", node_of(other), self.node))

    def __ge__(self: Expr[int], other: Expr[int] | int) -> Expr[bool]:
        return Expr(ir.Cmp("<=", node_of(other), self.node))

    def __add__(self: Expr[int], other: Expr[int] | int) -> Expr[int]:
        return Expr(ir.Plus(self.node, node_of(other)))


Bool = Expr[bool]
Int = Expr[int]


class Each:
    """A free column of a row pattern."""


class Wild:
    """A wildcard column of an update."""


EACH = Each()
ANY = Wild()


def node_of(value: object) -> ir.Node:
    """The intermediate form of an expression, a number or a truth value."""
    if isinstance(value, Expr):
        node: ir.Node = value.node
        return node
    if isinstance(value, bool | int):
        return ir.Lit(value)
    raise SpecError(f"{value!r} is not an expression")


def pattern_of(value: object) -> ir.Pattern:
    """The same for a column of an update, which may be a wildcard."""
    return ir.Any() if isinstance(value, Wild) else node_of(value)


# --- connectives ---------------------------------------------------------------------------------


def both(*parts: Bool) -> Bool:
    """All of ``parts``, left to right."""
    return Expr(ir.And(tuple(p.node for p in parts)))


def either(*parts: Bool) -> Bool:
    """Any of ``parts``, left to right."""
    return Expr(ir.Or(tuple(p.node for p in parts)))


def implies(left: Bool, right: Bool) -> Bool:
    """``right`` wherever ``left`` holds."""
    return Expr(ir.Implies(left.node, right.node))


def negate(body: Bool) -> Bool:
    """The contrary of ``body``."""
    return Expr(ir.Not(body.node))


NEVER: Bool = Expr(ir.FALSE)


def forall(*args: AnyType) -> Bool:
    """``forall(Lease, Worker, lambda l, w: …)``: over whole sorts, in invariants."""
    *sorts, body = args
    variables = tuple(
        ir.Var(name, sort_name(sort))
        for sort, name in zip(sorts, inspect.signature(body).parameters, strict=True)
    )
    return Expr(ir.ForAll(variables, body(*(Expr(v) for v in variables)).node))


def every(rows: Rows, body: Callable[..., Bool]) -> Bool:
    """``body`` for each matching row; its parameters are the pattern's EACH columns in order."""
    names = list(inspect.signature(body).parameters)
    if len(names) != len(rows.free):
        raise SpecError(f"{rows.field}: {len(rows.free)} free columns, {len(names)} parameters")
    variables = tuple(ir.Var(n, rows.sorts[c]) for n, c in zip(names, rows.free, strict=True))
    args = list(rows.args)
    for column, variable in zip(rows.free, variables, strict=True):
        args[column] = variable
    return Expr(
        ir.Every(rows.field, tuple(args), variables, body(*(Expr(v) for v in variables)).node)
    )


def none(rows: Rows) -> Bool:
    """No row matches."""
    variables = tuple(ir.Var(f"_{c}", rows.sorts[c]) for c in rows.free)
    args = list(rows.args)
    for column, variable in zip(rows.free, variables, strict=True):
        args[column] = variable
    return Expr(ir.Every(rows.field, tuple(args), variables, ir.FALSE))


class Rows:
    """A pattern over a relation: fixed columns and free ones."""

    def __init__(self, field: str, sorts: tuple[str, ...], args: tuple[object, ...]) -> None:
        self.field = field
        self.sorts = sorts
        self.free = tuple(i for i, a in enumerate(args) if isinstance(a, Each))
        self.args: tuple[ir.Node, ...] = tuple(
            ir.TRUE if isinstance(a, Each) else node_of(a) for a in args
        )


def sort_name(sort: AnyType) -> str:
    """What a sort is called in the intermediate form."""
    return {int: "Int", bool: "Bool"}.get(sort) or str(sort.__name__)
