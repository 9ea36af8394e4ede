"""Slips of a spec's author, one at a time: each statement and each part of a condition, deleted.

A mutant is the machine that the author would have written without that statement or part. Its
reference is generated from it, so spec and reference agree with each other, and only what is proved
about the machine, or what happens on a history, can tell that something is missing.

Deleted are

- each guard and each update of an action;
- each part of a conjunction or disjunction, and the premise of each implication, at any depth of a
  guard's condition or of the condition under which an update takes place;
- that condition of an update as a whole.

Invariants are left alone: they are what notices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kvproof.spec import ir
from kvproof.spec.generate import text


@dataclass(frozen=True)
class Mutant:
    """One deletion in one action.

    ``statement`` is the index in the action's body, and ``instead`` is what stands there now; a
    deleted guard stays as one that always holds, so that the guards after it keep their numbers.
    ``kind`` is the guard's, or "update"; ``id`` is the guard's, or the one that the updated field
    serves; ``what`` is "statement" or "part"; ``deleted`` is what went, as the reference has it.
    ``name`` is unique, and stays the same while what is deleted stays the same.
    """

    name: str
    action: str
    statement: int
    kind: str
    id: str
    what: str
    deleted: str
    instead: tuple[ir.Statement, ...]


def without(spec: ir.Machine, mutant: Mutant) -> ir.Machine:
    """``spec`` reduced to the mutant's action: the deletion affects no other."""
    action = spec.actions[mutant.action]
    before, after = action.body[: mutant.statement], action.body[mutant.statement + 1 :]
    changed = replace(action, body=(*before, *mutant.instead, *after))
    return replace(spec, actions={mutant.action: changed})


def mutants(spec: ir.Machine) -> list[Mutant]:
    """All mutants of a machine, in the order of its actions and statements."""
    found: list[Mutant] = []
    taken: Counter[str] = Counter()
    for action in spec.actions.values():
        for index, statement in enumerate(action.body):
            for mutant in _of_statement(spec, action.name, index, statement):
                taken[mutant.name] += 1
                times = taken[mutant.name]
                again = replace(mutant, name=f"{mutant.name} #{times}")
                found.append(again if times > 1 else mutant)
    return found


def _of_statement(
    spec: ir.Machine, action: str, index: int, statement: ir.Statement
) -> Iterator[Mutant]:
    kind, id, called = _described(spec, statement)

    def mutant(how: str, what: str, part: ir.Node | ir.Statement, *instead: ir.Statement) -> Mutant:
        deleted = text(spec, part).replace("self.", "")
        name = f"{action}: {how} ({deleted})"
        return Mutant(name, action, index, kind, id, what, deleted, instead)

    always = (replace(statement, cond=ir.TRUE),) if isinstance(statement, ir.Guard) else ()
    yield mutant(f"no {called}", "statement", statement, *always)
    for changed, part in _without_a_part(statement):
        yield mutant(f"{called} without", "part", part, changed)


def _described(spec: ir.Machine, statement: ir.Statement) -> tuple[str, str, str]:
    """Kind, id, and what to call the statement."""
    if isinstance(statement, ir.Guard):
        return statement.kind, statement.id, f"{statement.kind} {statement.id}".rstrip()
    return "update", spec.fields[statement.field].serves, f"update of {statement.field}"


def _without_a_part(statement: ir.Statement) -> Iterator[tuple[ir.Statement, ir.Node]]:
    """The statement with one part of its condition less, and that part."""
    if isinstance(statement, ir.Guard):
        for cond, part in shortened(statement.cond):
            yield replace(statement, cond=cond), part
        return
    if statement.when != ir.TRUE:
        yield replace(statement, when=ir.TRUE), statement.when
    for when, part in shortened(statement.when):
        yield replace(statement, when=when), part


def shortened(node: ir.Node) -> Iterator[tuple[ir.Node, ir.Node]]:
    """Each way to delete one part of ``node`` at any depth: what is left, and what was deleted."""
    match node:
        case ir.And(parts) | ir.Or(parts):
            for i, part in enumerate(parts):
                rest = (*parts[:i], *parts[i + 1 :])
                if len(rest) > 1:
                    yield replace(node, parts=rest), part
                elif rest:
                    yield rest[0], part
                for changed, deleted in shortened(part):
                    yield replace(node, parts=(*parts[:i], changed, *parts[i + 1 :])), deleted
        case ir.Implies(left, right):
            yield right, left
            for changed, deleted in shortened(left):
                yield ir.Implies(changed, right), deleted
            for changed, deleted in shortened(right):
                yield ir.Implies(left, changed), deleted
        case ir.Not(body) | ir.ForAll(_, body) | ir.Exists(_, body) | ir.Every(_, _, _, body):
            for changed, deleted in shortened(body):
                yield replace(node, body=changed), deleted
        case _:
            return
