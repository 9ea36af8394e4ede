"""The reference's constructor, read back: which fields there are and how they start."""

from __future__ import annotations

import ast
from dataclasses import replace

from kvproof.spec import ir


class ParseError(Exception):
    """The text is not a reference: says which line, and why."""


def initial_fields(method: ast.FunctionDef, declared: ir.Machine) -> dict[str, ir.Field]:
    """The fields as ``__init__`` sets them up, in its order.

    What a text cannot say (whose id a field serves, that an attribute never changes) is taken from
    the declaration.

    Raises:
        ParseError: a statement is not the start of a declared field.
    """
    fields: dict[str, ir.Field] = {}
    for statement in method.body:
        match statement:
            case ast.Assign(targets=[ast.Attribute(attr="workers")], value=ast.Name(id="workers")):
                continue
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="__init__"))):
                # The fields of the machine below are read from its own text.
                continue
            case ast.Assign(targets=[ast.Attribute(attr=name)], value=ast.Constant(value=int(n))):
                shape = ir.Field(name, "scalar", (), "Int", total=True, init=n)
            case ast.AnnAssign(
                target=ast.Attribute(attr=name), annotation=annotation, value=ast.expr() as value
            ):
                shape = _shape(name, annotation, value)
            case _:
                raise ParseError(f"{statement.lineno}: not the start of a field")
        if shape.name not in declared.fields:
            raise ParseError(f"{statement.lineno}: there is no field {shape.name}")
        known = declared.fields[shape.name]
        kind = "attribute" if known.kind == "attribute" and shape.kind == "map" else shape.kind
        fields[shape.name] = replace(shape, kind=kind, serves=known.serves, doc=known.doc)
    return fields


def _shape(name: str, annotation: ast.expr, value: ast.expr) -> ir.Field:
    match annotation, value:
        case (
            ast.Subscript(value=ast.Name(id="set"), slice=sort),
            ast.Call(func=ast.Name(id="set"), args=[]),
        ):
            return ir.Field(name, "relation", (_sort(sort),), "Bool")
        case (
            ast.Subscript(value=ast.Name(id="Relation"), slice=ast.Tuple(elts=sorts)),
            ast.Call(func=ast.Name(id="Relation"), args=[]),
        ):
            return ir.Field(name, "relation", tuple(map(_sort, sorts)), "Bool")
        case (
            ast.Subscript(value=ast.Name(id="dict"), slice=ast.Tuple(elts=[key, to])),
            ast.Dict(keys=[]),
        ):
            return ir.Field(name, "map", _key(key), _sort(to))
        case (
            ast.Subscript(value=ast.Name(id="dict"), slice=ast.Tuple(elts=[key, to])),
            ast.Call(
                func=ast.Attribute(attr="fromkeys"),
                args=[ast.Name(id="workers"), ast.Constant(value=int(n))],
            ),
        ):
            return ir.Field(name, "map", _key(key), _sort(to), total=True, init=n)
        case _:
            raise ParseError(f"{annotation.lineno}: not the start of a field")


def _key(node: ast.expr) -> tuple[str, ...]:
    match node:
        case ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=sorts)):
            return tuple(map(_sort, sorts))
        case _:
            return (_sort(node),)


def _sort(node: ast.expr) -> str:
    if not isinstance(node, ast.Name):
        raise ParseError(f"{node.lineno}: not a sort")
    return {"int": "Int", "bool": "Bool"}.get(node.id, node.id)
