"""Maps and numbers of a machine, and the functions that declare all kinds of fields."""

from __future__ import annotations

from typing import Generic, TypeVar

from kvproof.spec import ir
from kvproof.spec.expressions import Bool, Expr, Wild, node_of, pattern_of, sort_name
from kvproof.spec.fields import (
    Attribute,
    Declared,
    Relation1,
    Relation2,
    Relation3,
    Relation4,
)
from kvproof.spec.statements import emit

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
V = TypeVar("V")


class Map1(Declared, Generic[A, V]):
    """A partial function; reading it where it is undefined is a definedness failure."""

    kind = "map"

    def __getitem__(self, a: Expr[A]) -> Expr[V]:
        return Expr(self._read((a,)))

    def __setitem__(self, a: Expr[A], value: Expr[V] | int) -> None:
        emit(ir.Put(self.field, (node_of(a),), node_of(value)))

    def put(self, a: Expr[A], value: Expr[V] | int, when: Bool) -> None:
        """Set it at ``a`` where ``when`` holds; ``a`` need only make sense then."""
        emit(ir.Put(self.field, (node_of(a),), node_of(value), when.node))

    def has(self, a: Expr[A]) -> Bool:
        """Whether it is defined there."""
        return Expr(ir.Has(self.field, (node_of(a),)))

    def discard(self, a: Expr[A] | Wild) -> None:
        """Undefine it there."""
        emit(ir.Discard(self.field, (pattern_of(a),)))


class Map2(Declared, Generic[A, B, V]):
    """A partial function of two arguments."""

    kind = "map"

    def __getitem__(self, key: tuple[Expr[A], Expr[B]]) -> Expr[V]:
        return Expr(self._read(key))

    def __setitem__(self, key: tuple[Expr[A], Expr[B]], value: Expr[V] | int) -> None:
        emit(ir.Put(self.field, (node_of(key[0]), node_of(key[1])), node_of(value)))

    def has(self, a: Expr[A], b: Expr[B]) -> Bool:
        """Whether it is defined there."""
        return Expr(ir.Has(self.field, (node_of(a), node_of(b))))


class Scalar(Declared, Generic[V]):
    """A single number."""

    kind = "scalar"

    @property
    def value(self) -> Expr[V]:
        """Its value now."""
        return Expr(self._read(()))

    def set(self, value: Expr[V]) -> None:
        """Change it."""
        emit(ir.Put(self.field, (), node_of(value)))


def attribute(a: type[A], v: type[V], doc: str) -> Attribute[A, V]:
    """Declare an attribute."""
    return Attribute((sort_name(a),), sort_name(v), doc)


def relation1(a: type[A], doc: str, serves: str) -> Relation1[A]:
    """Declare a set."""
    return Relation1((sort_name(a),), "Bool", doc, serves)


def relation2(a: type[A], b: type[B], doc: str, serves: str) -> Relation2[A, B]:
    """Declare a set of pairs."""
    return Relation2((sort_name(a), sort_name(b)), "Bool", doc, serves)


def relation3(a: type[A], b: type[B], c: type[C], doc: str, serves: str) -> Relation3[A, B, C]:
    """Declare a set of triples."""
    return Relation3((sort_name(a), sort_name(b), sort_name(c)), "Bool", doc, serves)


def relation4(
    a: type[A], b: type[B], c: type[C], d: type[D], doc: str, serves: str
) -> Relation4[A, B, C, D]:
    """Declare a set of quadruples."""
    sorts = (sort_name(a), sort_name(b), sort_name(c), sort_name(d))
    return Relation4(sorts, "Bool", doc, serves)


def map1(
    a: type[A], v: type[V], doc: str, serves: str, total: bool = False, init: int = 0
) -> Map1[A, V]:
    """Declare a partial function, or a total one that starts at ``init``."""
    return Map1((sort_name(a),), sort_name(v), doc, serves, total, init)


def map2(a: type[A], b: type[B], v: type[V], doc: str, serves: str) -> Map2[A, B, V]:
    """Declare a partial function of two arguments."""
    return Map2((sort_name(a), sort_name(b)), sort_name(v), doc, serves)


def scalar(doc: str, serves: str, init: int = 0) -> Scalar[int]:
    """Declare a number."""
    return Scalar((), "Int", doc, serves, True, init)
