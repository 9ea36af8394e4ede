"""Expressions as Z3 terms.

Quotients, remainders and products of two unknowns are function symbols. What is known of them is
stated where they are applied to terms without bound variables: ``a == b * q + r`` for a quotient
with its remainder, the product's own value for a product. Under a quantifier they stay symbols, by
which Z3 finds the instances that it needs. Definitions are handled in the same way. So no formula
multiplies under a quantifier, and what Z3 has to do with products is small.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import z3

from kvproof.spec.functions.program import Definition, Program, SourceError

Env = dict[str, Any]
"""Name -> term; a tuple of terms for a function with several results."""

COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


@dataclass
class Path:
    """One way through a function: values of its variables, and what is known on it."""

    env: Env
    known: list[Any] = field(default_factory=list)

    def fork(self, *facts: Any) -> Path:
        """The same way, with more known."""
        return Path(dict(self.env), [*self.known, *facts])


class Terms:
    """Makes terms of the expressions of contracts."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.context = z3.Context()
        self.int = z3.IntSort(self.context)
        self.bool = z3.BoolSort(self.context)
        self.div = z3.Function("div", self.int, self.int, self.int)
        self.mod = z3.Function("mod", self.int, self.int, self.int)
        self.mul = z3.Function("mul", self.int, self.int, self.int)
        self.numbers: dict[str, int] = {}
        self.bound: list[Any] = []

    # --- symbols ---

    def sort(self, annotation: str) -> Any:
        """The sort of a type.

        Raises:
            SourceError: not a type of this language.
        """
        match annotation:
            case "int":
                return self.int
            case "bool":
                return self.bool
            case "Status" | "Callable[[int], int]":
                return z3.ArraySort(self.int, self.int)
            case "Callable[[int, int], int]":
                return z3.ArraySort(self.int, self.int, self.int)
            case _:
                raise SourceError(f"the type {annotation} is not part of this language")

    def fresh(self, name: str, annotation: str) -> Any:
        """A new unknown of that type."""
        if annotation.startswith("tuple["):
            parts = annotation[len("tuple[") : -1].split(", ")
            return tuple(self.fresh(f"{name}[{i}]", part) for i, part in enumerate(parts))
        return self.symbol(name, self.sort(annotation))

    def symbol(self, name: str, sort: Any) -> Any:
        """A new unknown; the first of its name has the plain name."""
        number = self.numbers.get(name, 0)
        self.numbers[name] = number + 1
        return z3.Const(f"{name}'{number}" if number else name, sort)

    # --- expressions ---

    def eval(self, node: ast.expr, path: Path) -> Any:
        """The term that ``node`` is on ``path``, whose ``known`` it may enlarge."""
        match node:
            case ast.Constant(bool() as value):
                return z3.BoolVal(value, self.context)
            case ast.Constant(int() as value):
                return z3.IntVal(value, self.context)
            case ast.Name(name):
                return self.name(name, node, path)
            case ast.Tuple(parts):
                return tuple(self.eval(part, path) for part in parts)
            case ast.Subscript(value, ast.Constant(int() as index)):
                return self.eval(value, path)[index]
            case ast.UnaryOp(ast.USub(), operand):
                return -self.eval(operand, path)
            case ast.UnaryOp(ast.Not(), operand):
                return z3.Not(self.eval(operand, path))
            case ast.BinOp(left, op, right):
                return self.arithmetic(op, self.eval(left, path), self.eval(right, path), path)
            case ast.BoolOp(op, parts):
                return self.connective(isinstance(op, ast.And), parts, path)
            case ast.Compare(left, ops, rights):
                return self.comparison([left, *rights], ops, path)
            case ast.IfExp(test, then, orelse):
                return self.choice(test, then, orelse, path)
            case ast.Call(ast.Name(name), args, []):
                return self.call(name, args, node, path)
            case _:
                raise self.error(node, "not an expression of this language")

    def error(self, node: ast.AST, why: str) -> SourceError:
        """An error at ``node``; the caller knows the file."""
        return SourceError(f"{getattr(node, 'lineno', 0)}: {why}")

    def name(self, name: str, node: ast.expr, path: Path) -> Any:
        """A variable or a constant."""
        if name in path.env:
            return path.env[name]
        if name in self.program.constants:
            return z3.IntVal(self.program.constants[name], self.context)
        raise self.error(node, f"{name} has no value here")

    def connective(self, is_and: bool, parts: list[ast.expr], path: Path) -> Any:
        """``and`` or ``or``, from left to right."""
        terms = [self.eval(part, path) for part in parts]
        return z3.And(*terms) if is_and else z3.Or(*terms)

    def choice(self, test: ast.expr, then: ast.expr, orelse: ast.expr, path: Path) -> Any:
        """One of two values."""
        return z3.If(self.eval(test, path), self.eval(then, path), self.eval(orelse, path))

    def comparison(self, operands: list[ast.expr], ops: list[ast.cmpop], path: Path) -> Any:
        """A chain of comparisons."""
        terms = [self.eval(operand, path) for operand in operands]
        pairs = [
            COMPARE[type(op)](left, right)
            for op, left, right in zip(ops, terms, terms[1:], strict=False)
        ]
        return pairs[0] if len(pairs) == 1 else z3.And(*pairs)

    def arithmetic(self, op: ast.operator, left: Any, right: Any, path: Path) -> Any:
        """A sum, difference, product, quotient or remainder."""
        match op:
            case ast.Add():
                return left + right
            case ast.Sub():
                return left - right
            case ast.Mult():
                return self.product(left, right, path)
            case ast.FloorDiv() | ast.Mod():
                self.divides(right, path)
                quotient, rest = self.div(left, right), self.mod(left, right)
                if self.is_ground(quotient):
                    whole = self.product(quotient, right, path)
                    fact = z3.And(left == whole + rest, rest >= 0, rest < right)
                    path.known.append(z3.Implies(right >= 1, fact))
                return quotient if isinstance(op, ast.FloorDiv) else rest
            case _:
                raise SourceError(f"{type(op).__name__} is not an operation of this language")

    def divides(self, divisor: Any, path: Path) -> None:
        """Called for each divisor."""

    def product(self, left: Any, right: Any, path: Path) -> Any:
        """Linear where it can be."""
        if z3.is_int_value(left) or z3.is_int_value(right):
            return left * right
        if str(left) > str(right):
            left, right = right, left
        term = self.mul(left, right)
        if self.is_ground(term):
            path.known.append(term == left * right)
        return term

    def is_ground(self, term: Any) -> bool:
        """No bound variable occurs in it."""
        bound = {variable.get_id() for variable in self.bound}
        return not bound or all(part.get_id() not in bound for part in _subterms(term))

    # --- calls ---

    def call(self, name: str, args: list[ast.expr], node: ast.expr, path: Path) -> Any:
        """A call in a contract: of a parameter, a definition, or a word of the language."""
        match name, args:
            case (("forall" | "exists"), [ast.Lambda() as body]):
                return self.quantified(name == "forall", body, path, self.eval)
            case "implies", [premise, conclusion]:
                return z3.Implies(self.eval(premise, path), self.eval(conclusion, path))
        if name in self.program.definitions:
            values = [self.eval(arg, path) for arg in args]
            return self.defined(self.program.definitions[name], values, path)
        return self.plain_call(name, args, node, path)

    def plain_call(self, name: str, args: list[ast.expr], node: ast.expr, path: Path) -> Any:
        """A call of a parameter or a builtin."""
        values = [self.eval(arg, path) for arg in args]
        if name in path.env:
            return z3.Select(path.env[name], *values)
        if name in ("max", "min") and len(values) >= 2:
            better = operator.ge if name == "max" else operator.le
            return reduce(lambda a, b: z3.If(better(a, b), a, b), values)
        raise self.error(node, f"there is no {name} to call here")

    def quantified(
        self,
        universal: bool,
        body: ast.Lambda,
        path: Path,
        read: Callable[[ast.expr, Path], Any],
    ) -> Any:
        """``forall`` or ``exists``: facts about terms without the variables join the path."""
        names = [argument.arg for argument in body.args.args]
        variables = [self.symbol(name, self.int) for name in names]
        inner = path.fork()
        inner.env.update(zip(names, variables, strict=True))
        with self.binding(variables):
            formula = read(body.body, inner)
        path.known.extend(inner.known[len(path.known) :])
        return (z3.ForAll if universal else z3.Exists)(variables, formula)

    @contextmanager
    def binding(self, variables: list[Any]) -> Iterator[None]:
        """While terms are made under a quantifier."""
        self.bound += variables
        try:
            yield
        finally:
            del self.bound[-len(variables) :]

    def defined(self, what: Definition, values: list[Any], path: Path) -> Any:
        """A definition applied: a symbol, and what it stands for where that can be said."""
        sorts = [self.sort(annotation) for _, annotation in what.params]
        symbol = z3.Function(what.name, *sorts, self.sort(what.result))
        term = symbol(*values)
        if what.body is not None and self.is_ground(term):
            names = [name for name, _ in what.params]
            inner = Path(dict(zip(names, values, strict=True)))
            meaning = self.eval(what.body, inner)
            path.known += [*inner.known, term == meaning]
        return term

    # --- lemmas ---

    def hint(self, node: ast.expr, path: Path) -> Any:
        """What a lemma says, of given numbers or of all. Anything else would be an assumption."""
        match node:
            case ast.Call(ast.Name("forall"), [ast.Lambda() as body], []):
                return self.quantified(True, body, path, self.hint)
            case ast.Call(ast.Name(name), args, []) if name in self.program.functions:
                return self.instance(name, [self.eval(arg, path) for arg in args], node, path)
            case _:
                raise self.error(node, "only lemmas can be used")

    def instance(self, name: str, values: list[Any], node: ast.expr, path: Path) -> Any:
        """What a lemma says of ``values``."""
        lemma = self.program.functions[name]
        if not lemma.is_lemma:
            raise self.error(node, f"{name} is no lemma")
        names = [param for param, _ in lemma.code.params]
        inner = Path(dict(zip(names, values, strict=True)))
        premises = [self.eval(premise, inner) for premise in lemma.contract.requires]
        conclusions = [self.of_result(each, None, inner) for each in lemma.contract.ensures]
        path.known += inner.known
        return z3.Implies(z3.And(*premises, z3.BoolVal(True, self.context)), z3.And(*conclusions))

    def of_result(self, node: ast.expr, result: Any, path: Path) -> Any:
        """A fact of the form ``lambda result: …``."""
        body, inner = self.opened(node, result, path)
        term = self.eval(body, inner)
        path.known.extend(inner.known[len(path.known) :])
        return term

    def opened(self, node: ast.expr, result: Any, path: Path) -> tuple[ast.expr, Path]:
        """The body of ``lambda result: …`` and the path on which it is to be read."""
        match node:
            case ast.Lambda(ast.arguments(args=[ast.arg(name)]), body):
                inner = path.fork()
                inner.env[name] = result
                return body, inner
            case _:
                raise self.error(node, "not of the form lambda result: …")


def _subterms(term: Any) -> Iterator[Any]:
    yield term
    for child in term.children():
        yield from _subterms(child)
