"""Attributes and relations of a machine: what may be read, matched and changed."""

from __future__ import annotations

from typing import Generic, TypeVar

from kvproof.spec import ir
from kvproof.spec.expressions import Bool, Each, Expr, Rows, Wild, node_of, pattern_of
from kvproof.spec.statements import emit

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
V = TypeVar("V")


class Declared:
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
        """The field's declaration in the intermediate form."""
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
        return ir.Read(self.field, tuple(node_of(a) for a in args))


class Attribute(Declared, Generic[A, V]):
    """An immutable property of every element of a sort."""

    kind = "attribute"

    def __getitem__(self, a: Expr[A]) -> Expr[V]:
        return Expr(self._read((a,)))


class _Relation(Declared):
    kind = "relation"

    def _insert(self, args: tuple[object, ...], when: Bool | None) -> None:
        cond = ir.TRUE if when is None else when.node
        emit(ir.Insert(self.field, tuple(pattern_of(a) for a in args), cond))

    def _discard(self, args: tuple[object, ...], when: Bool | None) -> None:
        cond = ir.TRUE if when is None else when.node
        emit(ir.Discard(self.field, tuple(pattern_of(a) for a in args), cond))

    def _rows(self, args: tuple[object, ...]) -> Rows:
        return Rows(self.field, self._args, args)


class Relation1(_Relation, Generic[A]):
    """A set of ``A``."""

    def __getitem__(self, a: Expr[A]) -> Bool:
        return Expr(self._read((a,)))

    def add(self, a: Expr[A] | Wild, when: Bool | None = None) -> None:
        """Put a row in."""
        self._insert((a,), when)

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
