"""A program as it has been read: functions with contracts, lemmas, definitions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from kvproof.spec.parse_fields import ParseError


class SourceError(ParseError):
    """The text is no program of this language; the message names file and line."""


@dataclass(frozen=True)
class Code:
    """What runs: parameters and result with their annotations, and a body without markers."""

    name: str
    params: tuple[tuple[str, str], ...]
    result: str
    body: tuple[ast.stmt, ...]
    file: str
    line: int

    @property
    def loops(self) -> list[ast.While]:
        """Its loops, in the order in which they begin."""
        return [n for s in self.body for n in in_order(s) if isinstance(n, ast.While)]


@dataclass(frozen=True)
class Loop:
    """What is promised of one loop."""

    invariants: tuple[ast.expr, ...] = ()
    variant: tuple[ast.expr, ...] = ()
    uses: tuple[ast.expr, ...] = ()


@dataclass(frozen=True)
class Contract:
    """What is promised of a function, and the lemmas that its proof uses."""

    requires: tuple[ast.expr, ...]
    ensures: tuple[ast.expr, ...]
    uses: tuple[ast.expr, ...]
    loops: tuple[Loop, ...]


@dataclass(frozen=True)
class Function:
    """A function or a lemma of the spec; ``ids`` are those that its docstring says it serves."""

    code: Code
    contract: Contract
    doc: str
    is_lemma: bool
    ids: tuple[str, ...]


@dataclass(frozen=True)
class Definition:
    """A name for an expression (``body``), or for nothing that is known (``None``)."""

    name: str
    params: tuple[tuple[str, str], ...]
    result: str
    body: ast.expr | None


@dataclass
class Text:
    """A module: its integer constants and its functions, in order."""

    constants: dict[str, int] = field(default_factory=dict)
    functions: dict[str, Code] = field(default_factory=dict)


@dataclass
class Program:
    """The spec's functions, lemmas and definitions, each after what it uses."""

    constants: dict[str, int] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    definitions: dict[str, Definition] = field(default_factory=dict)


def in_order(node: ast.AST) -> Iterator[ast.AST]:
    """``node`` and everything in it, in the order of the text."""
    yield node
    for child in ast.iter_child_nodes(node):
        yield from in_order(child)
