"""Names for attributes that an action reads more than once, so that the text stays readable.

``self.place_residency[self.piece_place[p]]`` becomes the local ``p_place_residency``. Attributes
never change, so a local that is set at the top means the same everywhere in the body.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from kvproof.spec import ir

Alias = tuple[str, ir.Node]


def hoist(machine: ir.Machine, action: ir.Action) -> tuple[ir.Action, list[Alias]]:
    """The action over locals, and the locals in the order in which they must be set."""
    params = {p.name for p in action.params}
    counts: Counter[ir.Node] = Counter()
    for statement in action.body:
        for part in expressions(statement):
            counts.update(n for n in ir.walk(part) if _is_chain(machine, n, params))
    chosen = [n for n, times in counts.items() if times > 1 and isinstance(n, ir.Read)]
    chosen.sort(key=_depth)
    names = {n: _name(n) for n in chosen}
    aliases: list[Alias] = []
    for node in chosen:
        (inner,) = node.args
        aliases.append((names[node], ir.Read(node.field, (replace(inner, names),))))
    body = tuple(map_statement(s, lambda n: replace(n, names)) for s in action.body)
    return ir.Action(action.name, action.by, action.params, body, action.doc), aliases


def _is_chain(machine: ir.Machine, node: ir.Node, params: set[str]) -> bool:
    match node:
        case ir.Read(field, (inner,)) if machine.fields[field].kind == "attribute":
            return (isinstance(inner, ir.Var) and inner.name in params) or _is_chain(
                machine, inner, params
            )
        case _:
            return False


def _depth(node: ir.Node) -> int:
    return 1 + max((_depth(c) for c in ir.children(node)), default=0)


def _name(node: ir.Node) -> str:
    match node:
        case ir.Read(field, (inner,)):
            return f"{_name(inner)}_{field.rsplit('_', 1)[1]}"
        case ir.Var(name, _):
            return name
        case _:
            raise ValueError(node)


def replace(node: ir.Node, names: dict[ir.Read, str]) -> ir.Node:
    """``node`` with every named chain replaced by its local."""
    return rewrite(
        node, lambda n: ir.Var(names[n], "") if isinstance(n, ir.Read) and n in names else None
    )


def rewrite(node: ir.Node, change: Callable[[ir.Node], ir.Node | None]) -> ir.Node:
    """``node`` with each subexpression, outermost first, replaced where ``change`` says so."""
    changed = change(node)
    if changed is not None:
        return changed

    def sub(n: ir.Node) -> ir.Node:
        return rewrite(n, change)

    match node:
        case ir.Var() | ir.Lit():
            return node
        case ir.Read(field, args):
            return ir.Read(field, tuple(map(sub, args)))
        case ir.Has(field, args):
            return ir.Has(field, tuple(map(sub, args)))
        case ir.Cmp(op, left, right):
            return ir.Cmp(op, sub(left), sub(right))
        case ir.Plus(left, right):
            return ir.Plus(sub(left), sub(right))
        case ir.Not(body):
            return ir.Not(sub(body))
        case ir.And(parts):
            return ir.And(tuple(map(sub, parts)))
        case ir.Or(parts):
            return ir.Or(tuple(map(sub, parts)))
        case ir.Implies(left, right):
            return ir.Implies(sub(left), sub(right))
        case ir.ForAll(variables, body):
            return ir.ForAll(variables, sub(body))
        case ir.Exists(variables, body):
            return ir.Exists(variables, sub(body))
        case ir.Every(field, args, variables, body):
            return ir.Every(field, tuple(map(sub, args)), variables, sub(body))


def expressions(statement: ir.Statement) -> list[ir.Node]:
    """All expressions of a statement: the condition first, then the arguments, then the value."""
    match statement:
        case ir.Guard(_, _, cond):
            return [cond]
        case ir.Put(_, args, value, when):
            return [when, *args, value]
        case ir.Insert(_, args, when) | ir.Discard(_, args, when):
            return [when, *(a for a in args if not isinstance(a, ir.Any))]


def map_statement(statement: ir.Statement, change: Callable[[ir.Node], ir.Node]) -> ir.Statement:
    """The statement with each of its expressions changed."""

    def pattern(a: ir.Pattern) -> ir.Pattern:
        return a if isinstance(a, ir.Any) else change(a)

    match statement:
        case ir.Guard(kind, id, cond):
            return ir.Guard(kind, id, change(cond))
        case ir.Put(field, args, value, when):
            return ir.Put(field, tuple(map(change, args)), change(value), change(when))
        case ir.Insert(field, patterns, when):
            return ir.Insert(field, tuple(map(pattern, patterns)), change(when))
        case ir.Discard(field, patterns, when):
            return ir.Discard(field, tuple(map(pattern, patterns)), change(when))
