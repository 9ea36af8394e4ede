"""What has to be proved so that one machine refines another that it is laid on top of.

superpose    each action is the base's, with further conditions, and updates of new fields alone
initial      each new invariant holds at the start
step         each action keeps each new invariant whose fields it may change
defined      no further condition reads a map where it is undefined
refine       what the base obliges a scheduler to follows from the invariants of both machines
conclude     so does what the top machine concludes by itself
faithful     the text of the top machine is the spec's own (trivial on the spec itself)

The base's invariants are hypotheses: they follow from the obligations, which are goals here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kvproof.spec import ir
from kvproof.spec.encode import Encoder
from kvproof.spec.ids import CONTRACT
from kvproof.spec.obligations import (
    Goal,
    Obligation,
    advance,
    defined,
    find,
    start,
)


def refinement(
    base: ir.Machine,
    top: ir.Machine,
    elsewhere: Collection[str],
    subject: ir.Machine | None = None,
) -> list[Obligation]:
    """All obligations.

    Args:
        base: the machine that is refined.
        top: the same with more fields, conditions, actions and invariants.
        elsewhere: obligations of the base, as ``oblige_name`` names them, that are not goals.
        subject: the machine under proof: ``top`` itself, or the same read back from its text.
    """
    known = {inv.name for inv in base.invariants}
    fresh = [inv for inv in top.invariants if inv.name not in known]
    subject = subject or top
    found = [_same_fields(top, subject)]
    for inv in fresh:
        found.append(_initial(inv))
        found.append(_invariant_defined(inv))
    for name, expected in top.actions.items():
        action = subject.actions.get(name, _missing(expected))
        found.append(_faithful(expected, action))
        # What is to be proved is listed by what the spec says, and proved of the text.
        found.append(_superposed(base, subject, action))
        found += _own_guards(base, expected, action)
        found += _kept_here(expected, action, elsewhere)
        written = ir.fields_written(expected) | ir.fields_written(action)
        found += [_step(action, i) for i in fresh if written & ir.fields_read(i.body)]
    return found


def oblige_names(action: ir.Action) -> dict[int, str]:
    """Where an action obliges -> ``action: id``, numbered where it does so twice for one id."""
    ids = {
        i: s.id for i, s in enumerate(action.body) if isinstance(s, ir.Guard) and s.kind == "oblige"
    }
    names = {}
    for i, id in ids.items():
        same = [j for j, other in ids.items() if other == id]
        number = f" #{same.index(i) + 1}" if len(same) > 1 else ""
        names[i] = f"{action.name}: {id}{number}"
    return names


def _missing(expected: ir.Action) -> ir.Action:
    return ir.Action(expected.name, expected.by, expected.params, ())


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


def _same_fields(top: ir.Machine, subject: ir.Machine) -> Obligation:
    return _certain("faithful", "", _named("faithful", "fields"), top.fields == subject.fields)


def _faithful(expected: ir.Action, action: ir.Action) -> Obligation:
    same = (action.params, action.body) == (expected.params, expected.body)
    return _certain("faithful", expected.name, _named("faithful", expected.name), same)


def _superposed(base: ir.Machine, top: ir.Machine, action: ir.Action) -> Obligation:
    """The base's statements, in order, and nothing else that writes the base's fields."""
    expected, own = _apart(base, action)
    writes = {s.field for s in own if not isinstance(s, ir.Guard)}
    obliges = [s for s in own if isinstance(s, ir.Guard) and s.kind == "oblige"]
    holds = not expected and not obliges and not writes & set(base.fields)
    holds = holds and all(top.fields.get(name) == f for name, f in base.fields.items())
    return _certain("superpose", action.name, _named("superpose", action.name), holds)


def _apart(base: ir.Machine, action: ir.Action) -> tuple[list[ir.Statement], list[ir.Statement]]:
    """The base's statements that an action lacks, and those that it has besides."""
    below = base.actions.get(action.name)
    expected = list(below.body) if below else []
    own = []
    for statement in action.body:
        if expected and statement == expected[0]:
            expected.pop(0)
        else:
            own.append(statement)
    return expected, own


def _certain(kind: str, action: str, name: str, holds: bool) -> Obligation:
    """An obligation that was decided by looking."""

    def build(e: Encoder) -> Goal:
        return [], e.true if holds else e.false

    return Obligation(kind, action, "", name, build, "mechanism")


def _own_guards(base: ir.Machine, expected: ir.Action, action: ir.Action) -> Iterator[Obligation]:
    """Of each guard that the base does not have: it reads no undefined map; conclusions hold."""
    below = base.actions.get(expected.name)
    known = set(below.body) if below else set()
    for i, statement in enumerate(expected.body):
        if isinstance(statement, ir.Guard) and statement not in known:
            yield _at(expected, action, i, "defined")
            if statement.kind == "conclude":
                yield _at(expected, action, i, "conclude")


def _kept_here(
    expected: ir.Action, action: ir.Action, elsewhere: Collection[str]
) -> Iterator[Obligation]:
    """What the base obliges to, if it is of class *unsafe*."""
    for i, name in oblige_names(expected).items():
        statement = expected.body[i]
        assert isinstance(statement, ir.Guard)
        if name not in elsewhere and CONTRACT[statement.id].severity == "unsafe":
            yield _at(expected, action, i, "refine")


def _at(expected: ir.Action, action: ir.Action, i: int, kind: str) -> Obligation:
    """Guard ``i`` of ``expected``, where ``action`` has it: is it defined there, does it hold?"""
    guard = expected.body[i]
    assert isinstance(guard, ir.Guard)
    where = find(action, guard, expected.body[:i].count(guard))

    def build(e: Encoder) -> Goal:
        if where is None:
            return [], e.false
        run = advance(start(action, e), action.body[:where])
        if kind == "defined":
            return run.known, defined(guard.cond, run.state, run.env)
        return run.known, run.state.eval(guard.cond, run.env)

    name = _named(kind, expected.name, str(i))
    return Obligation(kind, expected.name, guard.id, name, build, "mechanism")
