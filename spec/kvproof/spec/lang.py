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
from typing import Generic, TypeVar, get_args, get_type_hints

from kvproof.spec import ir

S = TypeVar("S")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
V = TypeVar("V")
M = TypeVar("M", bound=Callable[..., AnyType])

OWNERS = ("engine", "tier", "worker", "scheduler")


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
        return Expr(ir.Cmp("==", self.node, _node(other)))

    def __ne__(self, other: object) -> Expr[bool]:  # type: ignore[override]
        return Expr(ir.Not(ir.Cmp("==", self.node, _node(other))))

    def __lt__(self: Expr[int], other: Expr[int] | int) -> Expr[bool]:
        return Expr(ir.Cmp("<", self.node, _node(other)))

    def __le__(self: Expr[int], other: Expr[int] | int) -> Expr[bool]:
        return Expr(ir.Cmp("<=", self.node, _node(other)))

    def __gt__(self: Expr[int], other: Expr[int] | int) -> Expr[bool]:
        return Expr(ir.Cmp("<", _node(other), self.node))

    def __ge__(self: Expr[int], other: Expr[int] | int) -> Expr[bool]:
        return Expr(ir.Cmp("<=", _node(other), self.node))

    def __add__(self: Expr[int], other: Expr[int] | int) -> Expr[int]:
        return Expr(ir.Plus(self.node, _node(other)))


Bool = Expr[bool]
Int = Expr[int]


class Each:
    """A free column of a row pattern."""


class Wild:
    """A wildcard column of an update."""


EACH = Each()
ANY = Wild()


def _node(value: object) -> ir.Node:
    if isinstance(value, Expr):
        node: ir.Node = value.node
        return node
    if isinstance(value, bool | int):
        return ir.Lit(value)
    raise SpecError(f"{value!r} is not an expression")


def _pattern(value: object) -> ir.Pattern:
    return ir.Any() if isinstance(value, Wild) else _node(value)


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
        ir.Var(name, _sort_name(sort))
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
            ir.TRUE if isinstance(a, Each) else _node(a) for a in args
        )


# --- tracing -------------------------------------------------------------------------------------

_trace: list[ir.Statement] | None = None


def _emit(statement: ir.Statement) -> None:
    if _trace is None:
        raise SpecError("guards and updates belong into an action's body")
    _trace.append(statement)


def assume(cond: Bool) -> None:
    """What the owner of this action promises; breaking it convicts the owner."""
    _emit(ir.Guard("assume", "", cond.node))


def oblige(id: str, cond: Bool) -> None:
    """What the scheduler promises by invariant ``id``; breaking it convicts the scheduler."""
    _emit(ir.Guard("oblige", id, cond.node))


def conclude(id: str, cond: Bool) -> None:
    """What follows from all promises kept so far: proved here, and checked on every history."""
    _emit(ir.Guard("conclude", id, cond.node))


# --- fields --------------------------------------------------------------------------------------


class _Declared:
    """A field of a machine; its name is its attribute's name."""

    kind = ""

    def __init__(
        self,
        args: tuple[str, ...],
        value: str,
        doc: str,
        serves: str = "",
        total: bool = False,
        init: int = 0,
    ) -> None:
        self.field = ""
        self._args = args
        self._value = value
        self._doc = doc
        self._serves = serves
        self._total = total
        self._init = init

    def __set_name__(self, owner: type, name: str) -> None:
        self.field = name

    def declaration(self) -> ir.Field:
        return ir.Field(
            self.field,
            self.kind,
            self._args,
            self._value,
            self._serves,
            self._doc,
            self._total,
            self._init,
        )

    def _read(self, args: tuple[object, ...]) -> ir.Read:
        return ir.Read(self.field, tuple(_node(a) for a in args))


class Attribute(_Declared, Generic[A, V]):
    """An immutable property of every element of a sort."""

    kind = "attribute"

    def __getitem__(self, a: Expr[A]) -> Expr[V]:
        return Expr(self._read((a,)))


class _Relation(_Declared):
    kind = "relation"

    def _insert(self, args: tuple[object, ...], when: Bool | None) -> None:
        cond = ir.TRUE if when is None else when.node
        _emit(ir.Insert(self.field, tuple(_pattern(a) for a in args), cond))

    def _discard(self, args: tuple[object, ...], when: Bool | None) -> None:
        cond = ir.TRUE if when is None else when.node
        _emit(ir.Discard(self.field, tuple(_pattern(a) for a in args), cond))

    def _rows(self, args: tuple[object, ...]) -> Rows:
        return Rows(self.field, self._args, args)


class Relation1(_Relation, Generic[A]):
    """A set of ``A``."""

    def __getitem__(self, a: Expr[A]) -> Bool:
        return Expr(self._read((a,)))

    def add(self, a: Expr[A] | Wild) -> None:
        """Put a row in."""
        self._insert((a,), None)

    def discard(self, a: Expr[A] | Wild, when: Bool | None = None) -> None:
        """Take matching rows out."""
        self._discard((a,), when)

    def match(self, a: Expr[A] | Each) -> Rows:
        """The rows that match."""
        return self._rows((a,))


class Relation2(_Relation, Generic[A, B]):
    """A set of pairs."""

    def __getitem__(self, key: tuple[Expr[A], Expr[B]]) -> Bool:
        return Expr(self._read(key))

    def add(self, a: Expr[A] | Wild, b: Expr[B] | Wild, when: Bool | None = None) -> None:
        """Put rows in; a wildcard stands for every worker."""
        self._insert((a, b), when)

    def discard(self, a: Expr[A] | Wild, b: Expr[B] | Wild, when: Bool | None = None) -> None:
        """Take matching rows out."""
        self._discard((a, b), when)

    def match(self, a: Expr[A] | Each, b: Expr[B] | Each) -> Rows:
        """The rows that match."""
        return self._rows((a, b))


class Relation3(_Relation, Generic[A, B, C]):
    """A set of triples."""

    def __getitem__(self, key: tuple[Expr[A], Expr[B], Expr[C]]) -> Bool:
        return Expr(self._read(key))

    def add(
        self, a: Expr[A] | Wild, b: Expr[B] | Wild, c: Expr[C] | Wild, when: Bool | None = None
    ) -> None:
        """Put rows in; a wildcard stands for every worker."""
        self._insert((a, b, c), when)

    def discard(
        self, a: Expr[A] | Wild, b: Expr[B] | Wild, c: Expr[C] | Wild, when: Bool | None = None
    ) -> None:
        """Take matching rows out."""
        self._discard((a, b, c), when)

    def match(self, a: Expr[A] | Each, b: Expr[B] | Each, c: Expr[C] | Each) -> Rows:
        """The rows that match."""
        return self._rows((a, b, c))


class Relation4(_Relation, Generic[A, B, C, D]):
    """A set of quadruples."""

    def __getitem__(self, key: tuple[Expr[A], Expr[B], Expr[C], Expr[D]]) -> Bool:
        return Expr(self._read(key))

    def add(
        self, a: Expr[A] | Wild, b: Expr[B] | Wild, c: Expr[C] | Wild, d: Expr[D] | Wild
    ) -> None:
        """Put rows in; a wildcard stands for every worker."""
        self._insert((a, b, c, d), None)

    def discard(
        self,
        a: Expr[A] | Wild,
        b: Expr[B] | Wild,
        c: Expr[C] | Wild,
        d: Expr[D] | Wild,
        when: Bool | None = None,
    ) -> None:
        """Take matching rows out."""
        self._discard((a, b, c, d), when)

    def match(
        self, a: Expr[A] | Each, b: Expr[B] | Each, c: Expr[C] | Each, d: Expr[D] | Each
    ) -> Rows:
        """The rows that match."""
        return self._rows((a, b, c, d))


class Map1(_Declared, Generic[A, V]):
    """A partial function; reading it where it is undefined is a definedness failure."""

    kind = "map"

    def __getitem__(self, a: Expr[A]) -> Expr[V]:
        return Expr(self._read((a,)))

    def __setitem__(self, a: Expr[A], value: Expr[V] | int) -> None:
        _emit(ir.Put(self.field, (_node(a),), _node(value)))

    def put(self, a: Expr[A], value: Expr[V] | int, when: Bool) -> None:
        """Set it at ``a`` where ``when`` holds; ``a`` need only make sense then."""
        _emit(ir.Put(self.field, (_node(a),), _node(value), when.node))

    def has(self, a: Expr[A]) -> Bool:
        """Whether it is defined there."""
        return Expr(ir.Has(self.field, (_node(a),)))

    def discard(self, a: Expr[A] | Wild) -> None:
        """Undefine it there."""
        _emit(ir.Discard(self.field, (_pattern(a),)))


class Map2(_Declared, Generic[A, B, V]):
    """A partial function of two arguments."""

    kind = "map"

    def __getitem__(self, key: tuple[Expr[A], Expr[B]]) -> Expr[V]:
        return Expr(self._read(key))

    def __setitem__(self, key: tuple[Expr[A], Expr[B]], value: Expr[V] | int) -> None:
        _emit(ir.Put(self.field, (_node(key[0]), _node(key[1])), _node(value)))

    def has(self, a: Expr[A], b: Expr[B]) -> Bool:
        """Whether it is defined there."""
        return Expr(ir.Has(self.field, (_node(a), _node(b))))


class Scalar(_Declared, Generic[V]):
    """A single number."""

    kind = "scalar"

    @property
    def value(self) -> Expr[V]:
        """Its value now."""
        return Expr(self._read(()))

    def set(self, value: Expr[V]) -> None:
        """Change it."""
        _emit(ir.Put(self.field, (), _node(value)))


def _sort_name(sort: AnyType) -> str:
    return {int: "Int", bool: "Bool"}.get(sort) or str(sort.__name__)


def attribute(a: type[A], v: type[V], doc: str) -> Attribute[A, V]:
    """Declare an attribute."""
    return Attribute((_sort_name(a),), _sort_name(v), doc)


def relation1(a: type[A], doc: str, serves: str) -> Relation1[A]:
    """Declare a set."""
    return Relation1((_sort_name(a),), "Bool", doc, serves)


def relation2(a: type[A], b: type[B], doc: str, serves: str) -> Relation2[A, B]:
    """Declare a set of pairs."""
    return Relation2((_sort_name(a), _sort_name(b)), "Bool", doc, serves)


def relation3(a: type[A], b: type[B], c: type[C], doc: str, serves: str) -> Relation3[A, B, C]:
    """Declare a set of triples."""
    return Relation3((_sort_name(a), _sort_name(b), _sort_name(c)), "Bool", doc, serves)


def relation4(
    a: type[A], b: type[B], c: type[C], d: type[D], doc: str, serves: str
) -> Relation4[A, B, C, D]:
    """Declare a set of quadruples."""
    sorts = (_sort_name(a), _sort_name(b), _sort_name(c), _sort_name(d))
    return Relation4(sorts, "Bool", doc, serves)


def map1(
    a: type[A], v: type[V], doc: str, serves: str, total: bool = False, init: int = 0
) -> Map1[A, V]:
    """Declare a partial function, or a total one that starts at ``init``."""
    return Map1((_sort_name(a),), _sort_name(v), doc, serves, total, init)


def map2(a: type[A], b: type[B], v: type[V], doc: str, serves: str) -> Map2[A, B, V]:
    """Declare a partial function of two arguments."""
    return Map2((_sort_name(a), _sort_name(b)), _sort_name(v), doc, serves)


def scalar(doc: str, serves: str, init: int = 0) -> Scalar[int]:
    """Declare a number."""
    return Scalar((), "Int", doc, serves, True, init)


# --- actions and invariants ----------------------------------------------------------------------


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
        members = {n: m for c in reversed(cls.__mro__) for n, m in vars(c).items()}
        for member in members.values():
            if isinstance(member, _Declared):
                fields[member.field] = member.declaration()
        for name, member in members.items():
            if owner := getattr(member, "kvproof_owner", None):
                actions[name] = _trace_action(self, name, owner, member, fields)
            elif id := getattr(member, "kvproof_invariant", None):
                node = member(self).node
                invariants.append(ir.Invariant(id, name, node, inspect.getdoc(member) or ""))
        sorts = {s for f in fields.values() for s in (*f.args, f.value)}
        sorts |= {v.sort for a in actions.values() for v in a.params}
        return ir.Machine(
            cls.__name__,
            tuple(sorted(sorts - {"Int", "Bool"})),
            fields,
            actions,
            tuple(invariants),
        )


def _trace_action(
    machine: MachineSpec, name: str, owner: str, method: AnyType, fields: dict[str, ir.Field]
) -> ir.Action:
    global _trace
    hints = get_type_hints(method)
    params = []
    for parameter in list(inspect.signature(method).parameters)[1:]:
        if parameter in fields:
            raise SpecError(f"{name}: parameter {parameter} shadows the field of that name")
        (sort,) = get_args(hints[parameter])
        params.append(ir.Var(parameter, _sort_name(sort)))
    _trace = []
    try:
        method(machine, *(Expr(p) for p in params))
        body = tuple(_trace)
    finally:
        _trace = None
    return ir.Action(name, owner, tuple(params), body, inspect.getdoc(method) or "")
