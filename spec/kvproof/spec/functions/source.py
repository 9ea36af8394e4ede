"""Functions as they are written: contracts from the spec, bodies from the spec or the emitted text.

Both are read as text, with the same rules; nothing of them is run. What is not understood is an
error that names the line.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from kvproof.spec.functions.program import (
    Code,
    Contract,
    Definition,
    Function,
    Loop,
    Program,
    SourceError,
    Text,
    in_order,
)

HEAD = frozenset({"requires", "ensures", "use"})
LOOP_HEAD = frozenset({"invariant", "variant", "use"})
MARKERS = HEAD | LOOP_HEAD
"""Calls that are statements about the program, not statements of it."""

BUILTINS = frozenset({"max", "min"})
"""What Python itself brings."""

OWN = "kvproof.spec.functions."
IMPORTS = {"__future__": {"annotations"}, "collections.abc": {"Callable"}}
"""All that the emitted text may import; the spec's modules import each other as well."""


def read_text(text: str, file: str) -> Text:
    """A module of plain functions, such as the one that is emitted.

    Raises:
        SourceError: anything but constants, the alias ``Status``, its imports and functions.
    """
    found = Text()
    for node in _parse(text, file).body:
        match node:
            case ast.FunctionDef(decorator_list=[]):
                if node.name in found.functions:
                    raise _error(file, node, f"{node.name} is defined twice")
                for part in ast.walk(node):
                    if isinstance(part, ast.stmt) and is_marker(part):
                        raise _error(file, part, "a text that runs makes no promises")
                found.functions[node.name] = _code(node, file)
            case _:
                _module_level(node, file, found.constants)
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(OWN):
                    raise _error(file, node, "the text may not import the spec")
    return found


def read_program(paths: list[Path]) -> Program:
    """The functions of the spec's own modules, with their contracts.

    Raises:
        SourceError: a module is not written as ``language`` says.
    """
    program = Program()
    for path in paths:
        for node in _parse(path.read_text(encoding="utf-8"), path.name).body:
            if not isinstance(node, ast.FunctionDef):
                _module_level(node, path.name, program.constants)
                continue
            if node.name in program.functions.keys() | program.definitions.keys() | BUILTINS:
                raise _error(path.name, node, f"{node.name} is defined twice")
            match node.decorator_list:
                case []:
                    program.functions[node.name] = _function(node, path.name, False)
                case [ast.Name("lemma")]:
                    program.functions[node.name] = _function(node, path.name, True)
                case [ast.Name("definition" | "uninterpreted" as how)]:
                    program.definitions[node.name] = _definition(node, path.name, how)
                case _:
                    raise _error(path.name, node, "an unknown decorator")
    return program


def is_marker(node: ast.stmt) -> bool:
    """A statement about the program, not of it."""
    return _marker(node) is not None


# --- parts ---------------------------------------------------------------------------------------


def _parse(text: str, file: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError as error:
        raise SourceError(f"{file}:{error.lineno}: {error.msg}") from None


def _error(file: str, node: ast.AST, why: str) -> SourceError:
    return SourceError(f"{file}:{getattr(node, 'lineno', 0)}: {why}")


def _module_level(node: ast.stmt, file: str, constants: dict[str, int]) -> None:
    match node:
        case ast.Expr(ast.Constant(str())):
            return
        case ast.ImportFrom(module=str() as module, names=names, level=0) if all(
            name.asname is None and (module.startswith(OWN) or name.name in IMPORTS.get(module, ()))
            for name in names
        ):
            return
        case ast.Assign([ast.Name("Status")], value) if (
            ast.unparse(value) == "Callable[[int], int]"
        ):
            return
        case ast.Assign([ast.Tuple(names)], ast.Tuple(values)) if len(names) == len(values):
            for name, value in zip(names, values, strict=True):
                if not (
                    isinstance(name, ast.Name)
                    and isinstance(value, ast.Constant)
                    and type(value.value) is int
                    and name.id not in constants
                ):
                    raise _error(file, node, "not the definition of new integer constants")
                constants[name.id] = value.value
        case _:
            raise _error(file, node, "neither a constant nor a function")


def _code(node: ast.FunctionDef, file: str) -> Code:
    arguments = node.args
    plain = ast.arguments(
        posonlyargs=[], args=arguments.args, kwonlyargs=[], kw_defaults=[], defaults=[]
    )
    if ast.unparse(arguments) != ast.unparse(plain) or node.returns is None:
        raise _error(file, node, f"{node.name} may have plain annotated parameters only")
    params = []
    for argument in arguments.args:
        if argument.annotation is None:
            raise _error(file, argument, f"the parameter {argument.arg} has no type")
        params.append((argument.arg, ast.unparse(argument.annotation)))
    body = tuple(_stripped(node.body))
    return Code(node.name, tuple(params), ast.unparse(node.returns), body, file, node.lineno)


def _function(node: ast.FunctionDef, file: str, is_lemma: bool) -> Function:
    doc = ast.get_docstring(node)
    if doc is None:
        raise _error(file, node, f"{node.name} has no docstring")
    head: dict[str, list[ast.expr]] = {name: [] for name in HEAD}
    for statement in node.body[1:]:
        if (name := _marker(statement)) is None:
            break
        if name not in HEAD:
            raise _error(file, statement, f"{name} belongs to the head of a loop")
        head[name] += _arguments(statement)
    loops = [n for s in node.body for n in in_order(s) if isinstance(n, ast.While)]
    contract = Contract(
        tuple(head["requires"]),
        tuple(head["ensures"]),
        tuple(head["use"]),
        tuple(_loop(loop, file) for loop in loops),
    )
    _, _, served = doc.rpartition("Serves ")
    ids = tuple(served.rstrip(".").split(", ")) if "Serves " in doc else ()
    return Function(_code(node, file), contract, doc, is_lemma, ids)


def _loop(node: ast.While, file: str) -> Loop:
    head: dict[str, list[ast.expr]] = {name: [] for name in LOOP_HEAD}
    for statement in node.body:
        if (name := _marker(statement)) is None:
            break
        if name not in LOOP_HEAD:
            raise _error(file, statement, f"{name} belongs to the head of a function")
        head[name] += _arguments(statement)
    if not head["variant"]:
        raise _error(file, node, "the loop has no variant")
    return Loop(tuple(head["invariant"]), tuple(head["variant"]), tuple(head["use"]))


def _definition(node: ast.FunctionDef, file: str, how: str) -> Definition:
    code = _code(node, file)
    if how == "uninterpreted":
        return Definition(code.name, code.params, code.result, None)
    match code.body:
        case [ast.Return(ast.expr() as body)]:
            return Definition(code.name, code.params, code.result, body)
        case _:
            raise _error(file, node, f"{node.name} is not one expression")


def _marker(node: ast.stmt) -> str | None:
    match node:
        case ast.Expr(ast.Call(func=ast.Name(name), keywords=[])) if name in MARKERS:
            return name
        case _:
            return None


def _arguments(node: ast.stmt) -> list[ast.expr]:
    assert isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    return node.value.args


def _stripped(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run: no docstring, no marker."""
    for statement in body:
        match statement:
            case ast.Expr(ast.Constant(str())):
                continue
            case _ if is_marker(statement):
                continue
            case ast.While(test, inner, orelse):
                loop = ast.While(test, list(_stripped(inner)), orelse)
                yield ast.copy_location(loop, statement)
            case ast.If(test, then, orelse):
                branch = ast.If(test, list(_stripped(then)), list(_stripped(orelse)))
                yield ast.copy_location(branch, statement)
            case _:
                yield statement
