"""What has to be proved so that one machine refines another that it is laid on top of.

superpose    each action is the base's, with further conditions, and updates of new fields alone
initial      each new invariant holds at the start
step         each action keeps each new invariant whose fields it may change
defined      no further condition reads a map where it is undefined
refine       what the base obliges a scheduler to follows from the invariants of both machines

The base's invariants are hypotheses: they follow from the obligations, which are goals here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kvproof.spec import ir
from kvproof.spec.encode import Encoder
from kvproof.spec.obligations import (
    Goal,
    Obligation,
    advance,
    defined,
    start,
)


def refinement(
    base: ir.Machine, top: ir.Machine, refined: Collection[str], not_ours: Collection[str]
) -> list[Obligation]:
    """All obligations.

    Args:
        base: the machine that is refined.
        top: the same with more fields, conditions, actions and invariants.
        refined: ids whose obligations are to be proved.
        not_ours: actions whose obligations are somebody else's.
    """
    known = {inv.name for inv in base.invariants}
    fresh = [inv for inv in top.invariants if inv.name not in known]
    found: list[Obligation] = []
    for inv in fresh:
        found.append(_initial(inv))
        found.append(_invariant_defined(inv))
    for action in top.actions.values():
        found.append(_superposed(base, top, action))
        found += _conditions(base, top, action)
        if action.name not in not_ours:
            found += _refined(action, refined)
        written = ir.fields_written(action)
        found += [_step(action, i) for i in fresh if written & ir.fields_read(i.body)]
    return found


def _named(kind: str, *rest: str) -> str:
    return "/".join(["mechanism", kind, *rest])


def _initial(inv: ir.Invariant) -> Obligation:
    def build(e: Encoder) -> Goal:
        return [], e.initial().eval(inv.body, {})

    return Obligation("initial", "", inv.id, _named("initial", inv.name), build, "mechanism")


def _invariant_defined(inv: ir.Invariant) -> Obligation:
    def build(e: Encoder) -> Goal:
        return e.invariants(), defined(inv.body, e.arbitrary(), {})

    return Obligation("defined", "", inv.id, _named("defined", inv.name), build, "mechanism")


def _step(action: ir.Action, inv: ir.Invariant) -> Obligation:
    def build(e: Encoder) -> Goal:
        run = advance(start(action, e), action.body)
        return run.known, run.state.eval(inv.body, {})

    name = _named("step", action.name, inv.name)
    return Obligation("step", action.name, inv.id, name, build, "mechanism")


def _superposed(base: ir.Machine, top: ir.Machine, action: ir.Action) -> Obligation:
    """The base's statements, in order, and nothing else that writes the base's fields."""
    below = base.actions.get(action.name)
    expected = list(below.body) if below else []
    own = []
    for statement in action.body:
        if expected and statement == expected[0]:
            expected.pop(0)
        else:
            own.append(statement)
    writes = {s.field for s in own if not isinstance(s, ir.Guard)}
    obliges = [s for s in own if isinstance(s, ir.Guard) and s.kind != "assume"]
    holds = not expected and not obliges and not writes & set(base.fields)
    holds = holds and all(top.fields[name] == f for name, f in base.fields.items())

    def build(e: Encoder) -> Goal:
        return [], e.true if holds else e.false

    return Obligation(
        "superpose", action.name, "", _named("superpose", action.name), build, "mechanism"
    )


def _conditions(base: ir.Machine, top: ir.Machine, action: ir.Action) -> Iterator[Obligation]:
    """Definedness of each condition that the base does not have."""
    below = base.actions.get(action.name)
    known = set(below.body) if below else set()
    for i, statement in enumerate(action.body):
        if isinstance(statement, ir.Guard) and statement not in known:
            yield _condition_defined(action, i, statement)


def _condition_defined(action: ir.Action, i: int, guard: ir.Guard) -> Obligation:
    def build(e: Encoder) -> Goal:
        run = advance(start(action, e), action.body[:i])
        return run.known, defined(guard.cond, run.state, run.env)

    name = _named("defined", action.name, str(i))
    return Obligation("defined", action.name, guard.id, name, build, "mechanism")


def _refined(action: ir.Action, refined: Collection[str]) -> Iterator[Obligation]:
    for i, statement in enumerate(action.body):
        obliges = isinstance(statement, ir.Guard) and statement.kind == "oblige"
        if isinstance(statement, ir.Guard) and obliges and statement.id in refined:
            yield _kept(action, i, statement)


def _kept(action: ir.Action, i: int, guard: ir.Guard) -> Obligation:
    def build(e: Encoder) -> Goal:
        run = advance(start(action, e), action.body[:i])
        return run.known, run.state.eval(guard.cond, run.env)

    name = _named("refine", action.name, str(i))
    return Obligation("refine", action.name, guard.id, name, build, "mechanism")
