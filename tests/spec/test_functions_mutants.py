"""Every small slip in the emitted functions is noticed: contracts say all that functions do."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from kvproof.spec.functions.emit import functions_path
from kvproof.spec.functions.program import SourceError, Text
from kvproof.spec.functions.source import read_text
from kvproof.spec.functions.verify import function_obligations

MODULE = ast.parse(functions_path().read_text(encoding="utf-8"))
INTACT = read_text(ast.unparse(MODULE), "text")

OTHERS: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt,),
    ast.Gt: (ast.GtE,),
    ast.GtE: (ast.Gt,),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Add,),
    ast.FloorDiv: (ast.Mod,),
    ast.Mod: (ast.FloorDiv,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
}

SAME_RESULT = {
    # Asks once more, at `floor`, which is always served.
    ("greatest_served", "while boundary >= floor:"),
    # Look at boundaries past the chunk, of which none needs it.
    ("keeps_chunk", "while boundary <= tokens:"),
    ("keeps_chunk", "while boundary <= tokens and first_needed(kind, window, boundary) <= end:"),
}


def slips(function: ast.FunctionDef) -> Iterator[ast.FunctionDef]:
    """Another operator, a number one off, a condition or statement less."""
    for number, node in enumerate(ast.walk(function)):
        for change in changes(node):
            mutant = copy.deepcopy(function)
            change(list(ast.walk(mutant))[number])
            yield mutant


def changes(node: ast.AST) -> Iterator[Callable[[ast.AST], None]]:
    """Everything that may be done to a node like ``node``."""
    for name, value in ast.iter_fields(node):
        for other in OTHERS.get(type(value), ()):
            yield partial(put, name, other())
    match node:
        case ast.Compare(ops=ops):
            for i, op in enumerate(ops):
                for other in OTHERS[type(op)]:
                    yield partial(put_at, "ops", i, other())
        case ast.Constant(value=bool(value)):
            yield partial(put, "value", not value)
        case ast.Constant(value=int(value)):
            yield partial(put, "value", value + 1)
            yield partial(put, "value", value - 1)
        case ast.BoolOp(values=values):
            for i in range(len(values)):
                yield partial(drop_at, "values", i)
        case ast.Name(id="max" | "min" as name):
            yield partial(put, "id", "min" if name == "max" else "max")
    for name in ("body", "orelse"):
        statements = getattr(node, name, None)
        if isinstance(statements, list):
            for i, statement in enumerate(statements):
                if not isinstance(statement, ast.Expr):
                    yield partial(put_at, name, i, ast.Pass())


def put(field: str, value: object, node: ast.AST) -> None:
    setattr(node, field, value)


def put_at(field: str, index: int, value: object, node: ast.AST) -> None:
    getattr(node, field)[index] = value


def drop_at(field: str, index: int, node: ast.AST) -> None:
    del getattr(node, field)[index]


def noticed(function: str, mutant: ast.FunctionDef, timeout_ms: int) -> bool:
    """Is the mutant refused, or something about it not proved?"""
    module = ast.Module([mutant], [])
    try:
        code = read_text(ast.unparse(ast.fix_missing_locations(module)), "mutant")
        text = Text(INTACT.constants, {**INTACT.functions, **code.functions})
        found = [o for o in function_obligations(text) if o.action == function]
    except SourceError as error:
        # A variable that has lost its assignment, or a type error.
        return "has no value here" in str(error)
    return any(o.prove(timeout_ms)[0] != "proved" for o in found)


@pytest.mark.slow
@pytest.mark.parametrize(
    "function",
    [pytest.param(n, id=n.name) for n in MODULE.body if isinstance(n, ast.FunctionDef)],
)
def test_every_slip_that_changes_a_result_is_noticed(function: ast.FunctionDef) -> None:
    before = ast.unparse(function).splitlines()
    survivors = set()
    for mutant in slips(function):
        after = ast.unparse(mutant).splitlines()
        line = next((line.strip() for line in after if line not in before), "")
        # What must be proved gets its time; for the others undecided is as good as failed.
        must = (function.name, line) in SAME_RESULT
        if not noticed(function.name, mutant, 60_000 if must else 1000):
            survivors.add((function.name, line))
    assert survivors == {s for s in SAME_RESULT if s[0] == function.name}
