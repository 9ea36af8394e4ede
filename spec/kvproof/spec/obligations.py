"""What has to be proved about a machine.

initial      each invariant holds at the start
step         each action keeps each invariant whose fields it may change
defined      no map is read where it is undefined
conclude     what an action concludes follows from its guards and the invariants
progress     each action leaves each measure's set no larger, unless it begins
effect       each update that the spec states has taken place when the action is over
faithful     the guards are the spec's own and nothing else is written (trivial on the spec itself)

The machine under proof is either the spec itself or the text of the generated reference, read back;
what is expected of it always comes from the spec.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import z3

from kvproof.spec import ir
from kvproof.spec.encode import Encoder, Env, State
from kvproof.spec.hoist import expressions

Goal = tuple[list[Any], Any]
"""Hypotheses and what must follow from them."""


@dataclass(frozen=True)
class Obligation:
    """One thing to prove. ``build`` makes its formulas in an encoder of ``machine``."""

    kind: str
    action: str
    id: str
    name: str
    build: Callable[[Encoder], Goal]
    machine: str = "contract"


def obligations(spec: ir.Machine, subject: ir.Machine) -> list[Obligation]:
    """All obligations on ``subject`` (the spec itself, or the reference read back)."""
    found = [_same_fields(spec, subject)]
    for inv in spec.invariants:
        found.append(_initial(inv))
        found.append(_invariant_defined(spec, inv))
    for name, expected in spec.actions.items():
        found += _action(spec, expected, subject.actions.get(name, _missing(expected)))
    return found


def _missing(expected: ir.Action) -> ir.Action:
    return ir.Action(expected.name, expected.by, expected.params, ())


def _same_fields(spec: ir.Machine, subject: ir.Machine) -> Obligation:
    same = spec.fields == subject.fields
    return Obligation(
        "faithful",
        "",
        "",
        "faithful/fields",
        lambda e: ([], e.true if same else e.false),
    )


def _initial(inv: ir.Invariant) -> Obligation:
    return Obligation(
        "initial",
        "",
        inv.id,
        f"initial/{inv.name}",
        lambda e: ([], e.initial().eval(inv.body, {})),
    )


def _invariant_defined(spec: ir.Machine, inv: ir.Invariant) -> Obligation:
    def build(e: Encoder) -> Goal:
        state = e.arbitrary()
        return e.invariants(), defined(inv.body, state, {})

    return Obligation("defined", "", inv.id, f"defined/{inv.name}", build)


# --- actions -------------------------------------------------------------------------------------


@dataclass
class _Run:
    """An action under execution: the state so far and what may be taken for granted."""

    state: State
    env: Env
    known: list[Any]


def start(action: ir.Action, e: Encoder) -> _Run:
    """An action about to be carried out in any state that satisfies the invariants."""
    state = e.arbitrary()
    env = {p.name: e.constant(p) for p in action.params}
    return _Run(state, env, e.invariants())


def advance(run: _Run, statements: tuple[ir.Statement, ...]) -> _Run:
    """Carry statements out: guards are taken for granted, updates change the state."""
    for statement in statements:
        if isinstance(statement, ir.Guard):
            run.known.append(run.state.eval(statement.cond, run.env))
        else:
            run.state.apply(statement, run.env)
    return run


def _action(spec: ir.Machine, expected: ir.Action, actual: ir.Action) -> Iterator[Obligation]:
    yield _faithful(expected, actual)
    yield from _statements(spec, expected, actual)
    written = ir.fields_written(expected) | ir.fields_written(actual)
    for inv in spec.invariants:
        if written & ir.fields_read(inv.body):
            yield _step(spec, actual, inv)
    for measure in spec.measures:
        if written & ir.fields_read(measure.rest):
            yield _progress(actual, measure)
    yield from _effects(spec, expected, actual)


def _faithful(expected: ir.Action, actual: ir.Action) -> Obligation:
    guards = [s for s in expected.body if isinstance(s, ir.Guard)]
    same = (
        guards == [s for s in actual.body if isinstance(s, ir.Guard)]
        and expected.params == actual.params
        and ir.fields_written(actual) <= ir.fields_written(expected)
    )
    id = next((g.id for g in guards if g.id), "")
    return Obligation(
        "faithful",
        expected.name,
        id,
        f"faithful/{expected.name}",
        lambda e: ([], e.true if same else e.false),
    )


def _statements(spec: ir.Machine, expected: ir.Action, actual: ir.Action) -> Iterator[Obligation]:
    """Definedness of each statement, and conclusions; listed by what the spec says."""
    for i, statement in enumerate(expected.body):
        where = find(actual, statement, expected.body[:i].count(statement))
        id = _served(spec, statement)
        if _partial(spec, statement):
            yield Obligation(
                "defined",
                expected.name,
                id,
                f"defined/{expected.name}/{i}",
                _defined_at(spec, actual, where),
            )
        if isinstance(statement, ir.Guard) and statement.kind == "conclude":
            yield Obligation(
                "conclude",
                expected.name,
                id,
                f"conclude/{expected.name}/{i}",
                _concluded_at(spec, actual, where),
            )


def find(action: ir.Action, statement: ir.Statement, skip: int) -> int | None:
    """Where an action says ``statement``, after having said it ``skip`` times."""
    places = [i for i, s in enumerate(action.body) if s == statement]
    return places[skip] if skip < len(places) else None


def _served(spec: ir.Machine, statement: ir.Statement) -> str:
    if isinstance(statement, ir.Guard):
        return statement.id
    return spec.fields[statement.field].serves


def _partial(spec: ir.Machine, statement: ir.Statement) -> bool:
    """Whether the statement reads a partial map."""
    return any(
        isinstance(n, ir.Read)
        and spec.fields[n.field].kind == "map"
        and not spec.fields[n.field].total
        for part in expressions(statement)
        for n in ir.walk(part)
    )


def _defined_at(
    spec: ir.Machine, action: ir.Action, where: int | None
) -> Callable[[Encoder], Goal]:
    def build(e: Encoder) -> Goal:
        if where is None:
            return [], e.false
        run = advance(start(action, e), action.body[:where])
        statement = action.body[where]
        if isinstance(statement, ir.Guard):
            return run.known, defined(statement.cond, run.state, run.env)
        when, *rest = expressions(statement)
        goal = e.conj([defined(part, run.state, run.env) for part in rest])
        condition = run.state.eval(when, run.env)
        return run.known, e.conj([defined(when, run.state, run.env), z3.Implies(condition, goal)])

    return build


def _concluded_at(
    spec: ir.Machine, action: ir.Action, where: int | None
) -> Callable[[Encoder], Goal]:
    def build(e: Encoder) -> Goal:
        if where is None:
            return [], e.false
        run = advance(start(action, e), action.body[:where])
        statement = action.body[where]
        assert isinstance(statement, ir.Guard)
        return run.known, run.state.eval(statement.cond, run.env)

    return build


def _step(spec: ir.Machine, action: ir.Action, inv: ir.Invariant) -> Obligation:
    def build(e: Encoder) -> Goal:
        run = advance(start(action, e), action.body)
        return run.known, run.state.eval(inv.body, {})

    return Obligation("step", action.name, inv.id, f"step/{action.name}/{inv.name}", build)


def _progress(action: ir.Action, measure: ir.Measure) -> Obligation:
    def build(e: Encoder) -> Goal:
        run = start(action, e)
        bound, env = run.state.bind(measure.params, {})
        before = run.state.eval(measure.rest, env)
        begins = run.state.eval(measure.begins, env)
        after = advance(run, action.body).state.eval(measure.rest, env)
        return run.known, z3.ForAll(bound, z3.Implies(after, z3.Or(before, begins)))

    name = f"progress/{action.name}/{measure.name}"
    return Obligation("progress", action.name, measure.id, name, build)


def _effects(spec: ir.Machine, expected: ir.Action, actual: ir.Action) -> Iterator[Obligation]:
    for i, update in enumerate(expected.body):
        if isinstance(update, ir.Guard):
            continue
        yield Obligation(
            "effect",
            expected.name,
            spec.fields[update.field].serves,
            f"effect/{expected.name}/{update.field}/{i}",
            _effect(spec, expected, actual, i),
        )


def _effect(
    spec: ir.Machine, expected: ir.Action, actual: ir.Action, index: int
) -> Callable[[Encoder], Goal]:
    """After ``actual``, the field is as update ``index`` of ``expected`` leaves it at its place."""

    def build(e: Encoder) -> Goal:
        after = advance(start(actual, e), actual.body)
        at = advance(start(expected, e), expected.body[:index])
        update = expected.body[index]
        assert not isinstance(update, ir.Guard)
        columns = e.row_variables(update.field)
        row = [
            column if isinstance(a, ir.Any) else at.state.eval(a, at.env)
            for a, column in zip(update.args, columns, strict=True)
        ]
        when = at.state.eval(update.when, at.env)
        domain = after.state.domains.get(update.field)
        match update:
            case ir.Insert():
                goal = after.state.values[update.field](*row)
            case ir.Discard():
                goal = z3.Not((domain or after.state.values[update.field])(*row))
            case ir.Put(_, _, value, _):
                goal = after.state.values[update.field](*row) == at.state.eval(value, at.env)
                if domain:
                    goal = e.conj([goal, domain(*row)])
        return [*at.known, *after.known], z3.Implies(when, goal)

    return build


# --- definedness ---------------------------------------------------------------------------------


def defined(node: ir.Node, state: State, env: Env) -> Any:
    """The condition under which evaluating ``node``, left to right, reads no undefined map."""
    e = state.encoder
    match node:
        case ir.Var() | ir.Lit():
            return e.true
        case ir.Read(name, args):
            inner = [defined(a, state, env) for a in args]
            if name in state.domains:
                inner.append(state.domains[name](*(state.eval(a, env) for a in args)))
            return e.conj(inner)
        case ir.And(parts):
            return _in_order(list(parts), state, env, lambda holds: holds)
        case ir.Or(parts):
            return _in_order(list(parts), state, env, z3.Not)
        case ir.Implies(left, right):
            return _in_order([left, right], state, env, lambda holds: holds)
        case ir.ForAll(variables, body) | ir.Exists(variables, body):
            bound, inner_env = state.bind(variables, env)
            return z3.ForAll(bound, defined(body, state, inner_env))
        case ir.Every(name, args, variables, body):
            bound, inner_env = state.bind(variables, env)
            row = state.values[name](*(state.eval(a, inner_env) for a in args))
            fixed = [defined(a, state, inner_env) for a in args]
            return z3.ForAll(
                bound, e.conj([*fixed, z3.Implies(row, defined(body, state, inner_env))])
            )
        case _:
            return e.conj([defined(c, state, env) for c in ir.children(node)])


def _in_order(
    parts: list[ir.Node], state: State, env: Env, reached_if: Callable[[Any], Any]
) -> Any:
    first, *rest = parts
    condition = defined(first, state, env)
    if not rest:
        return condition
    after = z3.Implies(reached_if(state.eval(first, env)), _in_order(rest, state, env, reached_if))
    return state.encoder.conj([condition, after])
