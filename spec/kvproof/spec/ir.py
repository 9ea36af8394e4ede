"""The intermediate form of a machine: expressions, statements, actions.

Both roads lead here: ``lang`` traces the authored spec into it, ``parse`` reads the generated
Python back into it. Nodes are plain frozen data with structural equality; the overloaded operators
of the authoring language live on separate proxies (``lang.Expr``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

# --- expressions ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Var:
    """A variable of a sort ("Int" included)."""

    name: str
    sort: str


@dataclass(frozen=True, slots=True)
class Lit:
    """An integer or a truth value."""

    value: int | bool


@dataclass(frozen=True, slots=True)
class Read:
    """A field's value at ``args``: a relation's membership, else the value there."""

    field: str
    args: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Has:
    """Whether a map is defined at ``args``."""

    field: str
    args: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Cmp:
    """``op`` is one of ``==``, ``<``, ``<=``."""

    op: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Plus:
    """Integer sum."""

    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Not:
    """Negation."""

    body: Node


@dataclass(frozen=True, slots=True)
class And:
    """Conjunction, evaluated left to right: earlier parts guard the definedness of later ones."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Disjunction, evaluated left to right: a later part is only reached when earlier ones fail."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Implies:
    """Implication; ``left`` guards the definedness of ``right``."""

    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class ForAll:
    """Over whole sorts. Only the Worker sort is finite enough to be executed."""

    vars: tuple[Var, ...]
    body: Node


@dataclass(frozen=True, slots=True)
class Exists:
    """Over whole sorts; used in invariants alone."""

    vars: tuple[Var, ...]
    body: Node


@dataclass(frozen=True, slots=True)
class Every:
    """``body`` holds for each row of a relation that matches ``args``.

    The columns that are ``vars`` range freely; the others are fixed. Execution walks an index.
    """

    field: str
    args: tuple[Node, ...]
    vars: tuple[Var, ...]
    body: Node


Node = Var | Lit | Read | Has | Cmp | Plus | Not | And | Or | Implies | ForAll | Exists | Every

TRUE = Lit(True)
FALSE = Lit(False)

# --- statements ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Any:
    """A wildcard column of an update: every value of that column's sort."""


Pattern = Node | Any


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition that an action needs.

    ``kind`` is "assume" (what the action's owner promises), "oblige" (what the scheduler promises)
    or "conclude" (follows from the rest; proved, and checked all the same).
    """

    kind: str
    id: str
    cond: Node


@dataclass(frozen=True, slots=True)
class Insert:
    """Add rows to a relation, where ``when`` holds."""

    field: str
    args: tuple[Pattern, ...]
    when: Node = TRUE


@dataclass(frozen=True, slots=True)
class Discard:
    """Remove the matching rows of a relation, or undefine a map there, where ``when`` holds."""

    field: str
    args: tuple[Pattern, ...]
    when: Node = TRUE


@dataclass(frozen=True, slots=True)
class Put:
    """Set a map (or, without ``args``, a scalar), where ``when`` holds."""

    field: str
    args: tuple[Node, ...]
    value: Node
    when: Node = TRUE


Update = Insert | Discard | Put
Statement = Guard | Update


# --- declarations --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Field:
    """A declared field. ``kind``: "attribute" | "relation" | "map" | "scalar".

    Attributes are immutable total functions; relations and maps start empty; a scalar, or a map
    that is ``total``, starts at ``init``. ``serves`` is the invariant that the field exists for.
    """

    name: str
    kind: str
    args: tuple[str, ...]
    value: str
    serves: str = ""
    doc: str = ""
    total: bool = False
    init: int = 0


@dataclass(frozen=True, slots=True)
class Action:
    """One atomic move of one party."""

    name: str
    by: str
    params: tuple[Var, ...]
    body: tuple[Statement, ...]
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Invariant:
    """A closed condition that every reachable state satisfies."""

    id: str
    name: str
    body: Node
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Measure:
    """A set that may only shrink: whoever is in ``rest`` after a move was in it before.

    ``begins`` is the exception: where it holds before the move, the set is being made anew.
    """

    id: str
    name: str
    params: tuple[Var, ...]
    rest: Node
    begins: Node
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Machine:
    """Everything about one machine."""

    name: str
    sorts: tuple[str, ...]
    fields: dict[str, Field]
    actions: dict[str, Action]
    invariants: tuple[Invariant, ...]
    measures: tuple[Measure, ...] = ()


# --- walking -------------------------------------------------------------------------------------


def children(node: Node) -> tuple[Node, ...]:
    """The direct subexpressions of ``node``."""
    match node:
        case Var() | Lit():
            return ()
        case Read(_, args) | Has(_, args):
            return args
        case Cmp(_, left, right) | Plus(left, right) | Implies(left, right):
            return (left, right)
        case Not(body) | ForAll(_, body) | Exists(_, body):
            return (body,)
        case And(parts) | Or(parts):
            return parts
        case Every(_, args, _, body):
            return (*args, body)


def walk(node: Node) -> Iterator[Node]:
    """``node`` and all its subexpressions."""
    yield node
    for child in children(node):
        yield from walk(child)


def fields_read(node: Node) -> frozenset[str]:
    """The names of all fields that ``node`` depends on."""
    return frozenset(n.field for n in walk(node) if isinstance(n, Read | Has | Every))


def fields_written(action: Action) -> frozenset[str]:
    """The names of all fields that ``action`` may change."""
    return frozenset(s.field for s in action.body if isinstance(s, Insert | Discard | Put))
