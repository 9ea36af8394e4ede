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

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kvproof.spec import ir
from kvproof.spec.generate import text


@dataclass(frozen=True)
class Mutant:
    """One deletion in one action.

    ``statement`` is the index in the action's body; ``kind`` is the guard's, or "update"; ``id`` is
    the guard's, or the one that the updated field serves; ``what`` is "statement" or "part";
    ``deleted`` is what went, as the reference has it. ``changed`` is the action without it. A
    deleted guard stays as one that always holds, so that the guards after it keep their numbers.
    ``name`` is unique, and stays the same while what is deleted stays the same.
    """

    name: str
    action: str
    statement: int
    kind: str
    id: str
    what: str
    deleted: str
    changed: ir.Action

    def machine(self, spec: ir.Machine) -> ir.Machine:
        """``spec`` reduced to the changed action: the others are not affected by the deletion."""
        return replace(spec, actions={self.action: self.changed})


def mutants(spec: ir.Machine) -> list[Mutant]:
    """All mutants of a machine, in the order of its actions and statements."""
    found: list[Mutant] = []
    taken: dict[str, int] = {}
    for action in spec.actions.values():
        for mutant in _of_action(spec, action):
            times = taken[mutant.name] = taken.get(mutant.name, 0) + 1
            found.append(replace(mutant, name=f"{mutant.name} #{times}") if times > 1 else mutant)
    return found


def _of_action(spec: ir.Machine, action: ir.Action) -> Iterator[Mutant]:
    for index, statement in enumerate(action.body):
        kind, id, called = _described(spec, statement)

        def without(
            instead: tuple[ir.Statement, ...], what: str, deleted: str, index: int = index
        ) -> ir.Action:
            return replace(action, body=(*action.body[:index], *instead, *action.body[index + 1 :]))

        whole = text(spec, statement).replace("self.", "")
        instead = (replace(statement, cond=ir.TRUE),) if isinstance(statement, ir.Guard) else ()
        yield Mutant(
            f"{action.name}: no {called} ({whole})",
            action.name,
            index,
            kind,
            id,
            "statement",
            whole,
            without(instead, "statement", whole),
        )
        for changed, part in _without_a_part(statement):
            gone = text(spec, part).replace("self.", "")
            yield Mutant(
                f"{action.name}: {called} without ({gone})",
                action.name,
                index,
                kind,
                id,
                "part",
                gone,
                without((changed,), "part", gone),
            )


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
