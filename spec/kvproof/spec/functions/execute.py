"""A function under symbolic execution: every path, loops cut at their heads.

What has to be proved comes from the contract in the spec, what is executed from the code, which is
the spec's or that of the emitted text; loops are matched with their contracts by their order.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

import z3

from kvproof.spec.functions.program import Code, Function, Program, SourceError
from kvproof.spec.functions.source import BUILTINS
from kvproof.spec.functions.terms import Path, Terms


@dataclass(frozen=True)
class Query:
    """``goal`` follows from ``known``."""

    known: tuple[Any, ...]
    goal: Any


class Execution(Terms):
    """Executes one function, and collects what must be proved, by name."""

    def __init__(
        self, program: Program, function: Function, code: Code, constants: dict[str, int]
    ) -> None:
        super().__init__(program)
        self.function = function
        self.code = code
        self.constants = constants
        self.queries: dict[str, list[Query]] = {}
        self.loops = {id(loop): number for number, loop in enumerate(code.loops)}
        known = list(program.functions)
        self.callable = set(known[: known.index(function.code.name)])
        self.in_code = False

    def run(self) -> dict[str, list[Query]]:
        """Name of an obligation -> what must be proved for it.

        Raises:
            SourceError: the code is not written in this language.
        """
        try:
            self.body()
        except SourceError as error:
            raise SourceError(f"{self.code.file}:{error}") from None
        except (z3.Z3Exception, AttributeError, TypeError, ValueError) as error:
            # Whoever checks types finds the place; here it is enough not to prove nonsense.
            where = f"{self.code.file}:{self.code.line}: {self.code.name}"
            raise SourceError(f"{where} is not well typed ({error})") from None
        return self.queries

    def body(self) -> None:
        """From the parameters to every end."""
        contract = self.function.contract
        path = Path({name: self.fresh(name, sort) for name, sort in self.code.params})
        for each in contract.requires:
            path.known.append(self.eval(each, path))
        for each in contract.uses:
            path.known.append(self.hint(each, path))
        for number in range(len(contract.ensures)):
            self.queries[f"ensures-{number}"] = []
        for end in self.block(list(self.code.body), path):
            if self.code.result == "None":
                self.returned(None, end)
            else:
                self.check("returns", end, z3.BoolVal(False, self.context))

    # --- goals ---

    def check(self, name: str, path: Path, goal: Any) -> None:
        """Note that ``goal`` must follow on ``path``."""
        self.queries.setdefault(name, []).append(Query(tuple(path.known), goal))

    def aim(self, name: str, node: ast.expr, path: Path) -> None:
        """Note that the formula ``node`` must follow; outermost variables become unknowns.

        So what is known of quotients and definitions is stated of them too.
        """
        path = path.fork()
        match node:
            case ast.Call(ast.Name("forall"), [ast.Lambda(ast.arguments(args=args), body)], []):
                for argument in args:
                    path.env[argument.arg] = self.symbol(argument.arg, self.int)
                self.aim(name, body, path)
            case ast.Call(ast.Name("implies"), [premise, conclusion], []):
                path.known.append(self.eval(premise, path))
                self.aim(name, conclusion, path)
            case _:
                goal = self.eval(node, path)
                self.check(name, path, goal)

    def returned(self, result: Any, path: Path) -> None:
        """The end of a path."""
        for number, each in enumerate(self.function.contract.ensures):
            body, inner = self.opened(each, result, path)
            self.aim(f"ensures-{number}", body, inner)

    # --- statements ---

    def block(self, statements: list[ast.stmt], path: Path) -> list[Path]:
        """Execute; the paths that reach the end."""
        paths = [path]
        for statement in statements:
            paths = [end for each in paths for end in self.statement(statement, each)]
        return paths

    def statement(self, node: ast.stmt, path: Path) -> list[Path]:
        """Execute one statement."""
        match node:
            case ast.Pass():
                return [path]
            case ast.Assign([ast.Name(name)], value):
                self.assign(name, self.value(value, path), node, path)
                return [path]
            case ast.AugAssign(ast.Name(name), op, value):
                sum_ = ast.copy_location(ast.BinOp(ast.Name(name), op, value), node)
                self.assign(name, self.value(sum_, path), node, path)
                return [path]
            case ast.If(test, then, orelse):
                condition = self.value(test, path)
                return [
                    *self.block(then, path.fork(condition)),
                    *self.block(orelse, path.fork(z3.Not(condition))),
                ]
            case ast.While(orelse=[]):
                return self.loop(node, path)
            case ast.Return(ast.expr() as value):
                self.returned(self.value(value, path), path)
                return []
            case _:
                raise self.error(node, "not a statement of this language")

    def assign(self, name: str, value: Any, node: ast.stmt, path: Path) -> None:
        """Give a local variable a value; parameters, constants and functions keep theirs."""
        taken = {param for param, _ in self.code.params} | BUILTINS
        if name in taken | self.constants.keys() | self.program.functions.keys():
            raise self.error(node, f"{name} may not be assigned")
        if isinstance(value, tuple) or (name in path.env and path.env[name].sort() != value.sort()):
            raise self.error(node, f"{name} changes its type")
        path.env[name] = value

    def loop(self, node: ast.While, path: Path) -> list[Path]:
        """Cut at the head: one arbitrary round, and the way out."""
        number = self.loops[id(node)]
        contract = self.function.contract.loops[number]
        name = f"loop-{number}"
        for k, each in enumerate(contract.invariants):
            self.aim(f"{name}/invariant-{k}/holds", each, path)
        head = path.fork()
        for variable in sorted(_assigned(node) & path.env.keys()):
            was = path.env[variable]
            head.env[variable] = self.symbol(f"{variable} in {name}", was.sort())
        for each in contract.invariants:
            head.known.append(self.eval(each, head))
        for each in contract.uses:
            head.known.append(self.hint(each, head))
        before = [self.eval(each, head) for each in contract.variant]
        condition = self.value(node.test, head)
        for end in self.block(node.body, head.fork(condition)):
            end.env = {variable: end.env[variable] for variable in head.env}
            for k, each in enumerate(contract.invariants):
                self.aim(f"{name}/invariant-{k}/kept", each, end)
            after = [self.eval(each, end) for each in contract.variant]
            self.check(f"{name}/variant", end, _descends(before, after))
        return [head.fork(z3.Not(condition))]

    # --- expressions of code ---

    def value(self, node: ast.expr, path: Path) -> Any:
        """An expression of the code: it may call functions, and must not divide by zero."""
        self.in_code = True
        try:
            return self.eval(node, path)
        finally:
            self.in_code = False

    def name(self, name: str, node: ast.expr, path: Path) -> Any:
        """In code, constants are the code's own."""
        if self.in_code and name not in path.env and name in self.constants:
            return z3.IntVal(self.constants[name], self.context)
        if self.in_code and name not in path.env:
            raise self.error(node, f"{name} has no value here")
        return super().name(name, node, path)

    def divides(self, divisor: Any, path: Path) -> None:
        """Python rounds as the proofs do only for divisors that are positive."""
        if self.in_code:
            self.check("divisors", path, divisor >= 1)

    def connective(self, is_and: bool, parts: list[ast.expr], path: Path) -> Any:
        """What stands to the right is evaluated only when it matters."""
        if not self.in_code:
            return super().connective(is_and, parts, path)
        term = self.eval(parts[0], path)
        for part in parts[1:]:
            guard = term if is_and else z3.Not(term)
            right = self.guarded(part, guard, path)
            term = z3.And(term, right) if is_and else z3.Or(term, right)
        return term

    def choice(self, test: ast.expr, then: ast.expr, orelse: ast.expr, path: Path) -> Any:
        """Only the chosen value is evaluated."""
        if not self.in_code:
            return super().choice(test, then, orelse, path)
        condition = self.eval(test, path)
        first = self.guarded(then, condition, path)
        return z3.If(condition, first, self.guarded(orelse, z3.Not(condition), path))

    def instance(self, name: str, values: list[Any], node: ast.expr, path: Path) -> Any:
        """Only lemmas that are proved before, so that none is used in its own proof."""
        if name not in self.callable:
            raise self.error(node, f"{name} is not proved before")
        return super().instance(name, values, node, path)

    def guarded(self, node: ast.expr, guard: Any, path: Path) -> Any:
        """The value of ``node`` where ``guard`` holds."""
        inner = path.fork(guard)
        count = len(inner.known)
        term = self.eval(node, inner)
        path.known += [z3.Implies(guard, fact) for fact in inner.known[count:]]
        return term

    def call(self, name: str, args: list[ast.expr], node: ast.expr, path: Path) -> Any:
        """In code: a function by its contract, a parameter or a builtin."""
        if not self.in_code:
            return super().call(name, args, node, path)
        if name in path.env or name not in self.callable:
            return self.plain_call(name, args, node, path)
        callee = self.program.functions[name]
        if callee.is_lemma or len(args) != len(callee.code.params):
            raise self.error(node, f"{name} cannot be called so")
        names = [param for param, _ in callee.code.params]
        inner = path.fork()
        inner.env = dict(zip(names, [self.eval(arg, inner) for arg in args], strict=True))
        self.in_code = False
        for each in callee.contract.requires:
            self.aim(f"requires-of-{name}", each, inner)
        result = self.fresh(name, callee.code.result)
        for each in callee.contract.ensures:
            inner.known.append(self.of_result(each, result, inner))
        self.in_code = True
        path.known.extend(inner.known[len(path.known) :])
        return result


def _assigned(node: ast.While) -> set[str]:
    """The variables that a loop may change."""
    return {
        n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }


def _descends(before: list[Any], after: list[Any]) -> Any:
    """``after`` is smaller than ``before`` in the order of a dictionary, from a number >= 0."""
    cases = []
    for k, (was, now) in enumerate(zip(before, after, strict=True)):
        same = [a == b for a, b in zip(before[:k], after[:k], strict=True)]
        cases.append(z3.And(*same, was >= 0, now < was))
    return z3.Or(*cases)
