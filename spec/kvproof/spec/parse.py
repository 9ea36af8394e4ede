"""The reference's text, read back into the intermediate form.

Only the shapes that the generator writes are understood; anything else is an error that names the
line. Proving the result takes the generator out of the trust base, and the tracer as far as updates
go; what is expected of the text (invariants, guards, effects) still comes from the spec.
"""

from __future__ import annotations

import ast
from pathlib import Path

from kvproof.spec import ir
from kvproof.spec.contract import contract
from kvproof.spec.generate import reference_path
from kvproof.spec.mechanism import mechanism
from kvproof.spec.parse_fields import ParseError, initial_fields

OPERATORS: dict[type[ast.cmpop], str] = {ast.Eq: "==", ast.Lt: "<", ast.LtE: "<="}


def reference_machine(path: Path | None = None) -> ir.Machine:
    """The machine that the committed reference is.

    Raises:
        ParseError: the text cannot be read back.
    """
    path = path or reference_path()
    return parse(path.read_text(encoding="utf-8"), contract(), str(path))


def mechanism_machine(path: Path | None = None) -> ir.Machine:
    """The machine that the committed mechanism is, on top of the committed reference.

    Raises:
        ParseError: one of the two texts cannot be read back.
    """
    path = path or reference_path("mechanism.py")
    declared = mechanism()
    own = parse(path.read_text(encoding="utf-8"), declared, str(path))
    below = reference_machine()
    return ir.Machine(
        declared.name,
        declared.sorts,
        {**below.fields, **own.fields},
        {**below.actions, **own.actions},
        declared.invariants,
    )


def parse(text: str, declared: ir.Machine, name: str = "<reference>") -> ir.Machine:
    """``text`` as a machine over the sorts and fields that ``declared`` declares."""
    try:
        module = ast.parse(text)
    except SyntaxError as error:
        raise ParseError(f"{name}:{error.lineno}: {error.msg}") from None
    classes = [n for n in module.body if isinstance(n, ast.ClassDef) and n.name == declared.name]
    if len(classes) != 1:
        raise ParseError(f"{name}: no class {declared.name}")
    actions: dict[str, ir.Action] = {}
    fields: dict[str, ir.Field] = {}
    for method in classes[0].body:
        if not isinstance(method, ast.FunctionDef):
            continue
        try:
            if method.name == "__init__":
                fields = initial_fields(method, declared)
            else:
                actions[method.name] = _Method(declared, method).action()
        except ParseError as error:
            raise ParseError(f"{name}:{error}") from None
    return ir.Machine(declared.name, declared.sorts, fields, actions, declared.invariants)


class _Method:
    """One method under reading."""

    def __init__(self, machine: ir.Machine, method: ast.FunctionDef) -> None:
        self.machine = machine
        self.method = method
        self.scope: dict[str, ir.Var] = {}
        self.aliases: dict[str, ir.Node] = {}

    def action(self) -> ir.Action:
        if self.method.name not in self.machine.actions:
            raise self.error(self.method, "the spec has no such action")
        for argument in self.method.args.args[1:]:
            if not isinstance(argument.annotation, ast.Name):
                raise self.error(argument, "a parameter without its sort")
            sort = "Int" if argument.annotation.id == "int" else argument.annotation.id
            self.scope[argument.arg] = ir.Var(argument.arg, sort)
        params = tuple(self.scope.values())
        body: list[ir.Statement] = []
        doc, *rest = self.method.body
        if not (isinstance(doc, ast.Expr) and isinstance(doc.value, ast.Constant)):
            rest.insert(0, doc)
        for statement in rest:
            body += self.statement(statement, ir.TRUE)
        by = self.machine.actions[self.method.name].by
        return ir.Action(self.method.name, by, params, tuple(body))

    def error(self, node: ast.AST, why: str) -> ParseError:
        return ParseError(f"{getattr(node, 'lineno', 0)}: {self.method.name}: {why}")

    # --- statements ---

    def statement(self, node: ast.stmt, when: ir.Node) -> list[ir.Statement]:
        match node:
            case ast.If(test=ast.UnaryOp(op=ast.Not(), operand=cond), body=[ast.Raise() as r]):
                return [self.guard(cond, r)]
            case ast.If(test=test, body=body, orelse=[]):
                inner = self.expression(test)
                return [s for n in body for s in self.statement(n, inner)]
            case ast.For(
                target=ast.Name(id="worker"),
                iter=ast.Attribute(value=ast.Name(id="self"), attr="workers"),
                body=body,
            ):
                self.scope["worker"] = ir.Var("worker", "Worker")
                try:
                    return [_widen(s) for n in body for s in self.statement(n, when)]
                finally:
                    del self.scope["worker"]
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self.aliases[name] = self.expression(value)
                return []
            case ast.Assign(targets=[target], value=value):
                return [self.assignment(target, value, when)]
            case ast.Expr(value=ast.Call() as call):
                return [self.call(call, when)]
            case _:
                raise self.error(node, "not a statement of a reference")

    def guard(self, cond: ast.expr, r: ast.Raise) -> ir.Guard:
        match r.exc:
            case ast.Call(
                func=ast.Name(id="Broken"),
                args=[ast.Constant(value=str(kind)), ast.Constant(value=str(id)), *_],
            ):
                return ir.Guard(kind, id, self.expression(cond))
            case _:
                raise self.error(r, "a guard must raise Broken")

    def assignment(self, target: ast.expr, value: ast.expr, when: ir.Node) -> ir.Put:
        match target:
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                return ir.Put(self.field(target, name).name, (), self.expression(value), when)
            case ast.Subscript(
                value=ast.Attribute(value=ast.Name(id="self"), attr=name), slice=index
            ):
                f = self.field(target, name)
                return ir.Put(f.name, self.arguments(index), self.expression(value), when)
            case _:
                raise self.error(target, "only fields are assigned to")

    def call(self, call: ast.Call, when: ir.Node) -> ir.Update:
        match call.func:
            case ast.Attribute(
                value=ast.Attribute(value=ast.Name(id="self"), attr=name), attr=method
            ):
                f = self.field(call, name)
            case _:
                raise self.error(call, "only fields are updated")
        match method:
            case "add":
                return ir.Insert(f.name, tuple(self.expression(a) for a in call.args), when)
            case "clear":
                return ir.Discard(f.name, tuple(ir.Any() for _ in f.args), when)
            case "pop":
                return ir.Discard(f.name, (self.expression(call.args[0]),), when)
            case "discard":
                return ir.Discard(f.name, tuple(self.pattern(a) for a in call.args), when)
            case _:
                raise self.error(call, f"a field has no method {method}")

    def pattern(self, node: ast.expr) -> ir.Pattern:
        return ir.Any() if _is_name(node, "ANY") else self.expression(node)

    def field(self, node: ast.AST, name: str) -> ir.Field:
        if name not in self.machine.fields:
            raise self.error(node, f"there is no field {name}")
        return self.machine.fields[name]

    # --- expressions ---

    def arguments(self, node: ast.expr) -> tuple[ir.Node, ...]:
        parts = node.elts if isinstance(node, ast.Tuple) else [node]
        return tuple(self.expression(p) for p in parts)

    def expression(self, node: ast.expr) -> ir.Node:
        match node:
            case ast.Name(id=name) if name in self.scope:
                return self.scope[name]
            case ast.Name(id=name) if name in self.aliases:
                return self.aliases[name]
            case ast.Constant(value=bool(value)) | ast.Constant(value=int(value)):
                return ir.Lit(value)
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                return ir.Read(self.field(node, name).name, ())
            case ast.Subscript(
                value=ast.Attribute(value=ast.Name(id="self"), attr=name), slice=index
            ):
                return ir.Read(self.field(node, name).name, self.arguments(index))
            case ast.Compare(left=left, ops=[ast.In()], comparators=[ast.Attribute(attr=name)]):
                f = self.field(node, name)
                kind = ir.Read if f.kind == "relation" else ir.Has
                return kind(f.name, self.arguments(left))
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in OPERATORS:
                return ir.Cmp(OPERATORS[type(op)], self.expression(left), self.expression(right))
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return ir.Plus(self.expression(left), self.expression(right))
            case ast.UnaryOp(op=ast.Not(), operand=ast.Attribute(attr=name)):
                f = self.field(node, name)
                variable = ir.Var("_0", f.args[0])
                return ir.Every(f.name, (variable,), (variable,), ir.FALSE)
            case ast.UnaryOp(op=ast.Not(), operand=body):
                return ir.Not(self.expression(body))
            case ast.BoolOp(op=ast.And(), values=values):
                return ir.And(tuple(self.expression(v) for v in values))
            case ast.BoolOp(op=ast.Or(), values=values):
                return ir.Or(tuple(self.expression(v) for v in values))
            case ast.IfExp(test=test, body=body, orelse=ast.Constant(value=True)):
                return ir.Implies(self.expression(test), self.expression(body))
            case ast.Call(
                func=ast.Attribute(value=ast.Attribute(attr=name), attr="none"), args=args
            ):
                return self.rows(node, name, args, None, None)
            case ast.Call(func=ast.Name(id="all"), args=[ast.GeneratorExp() as generator]):
                return self.quantifier(generator)
            case _:
                raise self.error(node, f"not an expression of a reference: {ast.unparse(node)}")

    def quantifier(self, generator: ast.GeneratorExp) -> ir.Node:
        match generator.generators:
            case [ast.comprehension(target=target, iter=source, ifs=[])]:
                pass
            case _:
                raise self.error(generator, "not a quantifier of a reference")
        match source:
            case ast.Attribute(value=ast.Name(id="self"), attr="workers"):
                assert isinstance(target, ast.Name)
                variable = ir.Var(target.id, "Worker")
                return ir.ForAll((variable,), self.inside((variable,), generator.elt))
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                assert isinstance(target, ast.Name)
                variable = ir.Var(target.id, self.field(source, name).args[0])
                body = self.inside((variable,), generator.elt)
                return ir.Every(name, (variable,), (variable,), body)
            case ast.Call(
                func=ast.Attribute(value=ast.Attribute(attr=name), attr="match"), args=args
            ):
                return self.rows(generator, name, args, target, generator.elt)
            case _:
                raise self.error(generator, "not a quantifier of a reference")

    def rows(
        self,
        node: ast.AST,
        name: str,
        args: list[ast.expr],
        target: ast.expr | None,
        body: ast.expr | None,
    ) -> ir.Every:
        """Rows of ``name`` that match ``args``; without ``target`` and ``body``: there are none."""
        f = self.field(node, name)
        names = (
            [t.id for t in target.elts if isinstance(t, ast.Name)]
            if (isinstance(target, ast.Tuple))
            else [f"_{c}" for c in range(len(args))]
        )
        if not len(args) == len(names) == len(f.args):
            raise self.error(node, f"{name} has {len(f.args)} columns")
        pattern: list[ir.Node] = []
        free: list[ir.Var] = []
        for argument, bound, sort in zip(args, names, f.args, strict=True):
            if _is_name(argument, "EACH"):
                free.append(ir.Var(bound, sort))
                pattern.append(free[-1])
            else:
                pattern.append(self.expression(argument))
        inner = self.inside(tuple(free), body) if body is not None else ir.FALSE
        return ir.Every(name, tuple(pattern), tuple(free), inner)

    def inside(self, variables: tuple[ir.Var, ...], body: ast.expr) -> ir.Node:
        outer = dict(self.scope)
        self.scope.update((v.name, v) for v in variables)
        try:
            return self.expression(body)
        finally:
            self.scope = outer


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _widen(statement: ir.Statement) -> ir.Statement:
    """An update inside a loop over all workers: its worker column is a wildcard."""
    worker = ir.Var("worker", "Worker")
    if not isinstance(statement, ir.Insert):
        raise ParseError("0: only rows are added for every worker")
    args = tuple(ir.Any() if a == worker else a for a in statement.args)
    return ir.Insert(statement.field, args, statement.when)


__all__ = ["ParseError", "mechanism_machine", "parse", "reference_machine"]
