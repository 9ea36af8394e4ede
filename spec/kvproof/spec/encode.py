"""From the intermediate form to Z3, by substitution.

A state is a set of closures: the pre-state's are uninterpreted functions, and each update wraps
the closure of the field that it changes. There are no frame axioms, and integers stand for steps
and epochs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import z3

from kvproof.spec import ir

Closure = Callable[..., Any]
Env = Mapping[str, Any]


class Encoder:
    """Builds formulas over one machine's sorts and fields, in one fresh Z3 context."""

    def __init__(self, machine: ir.Machine) -> None:
        self.machine = machine
        self.context = z3.Context()
        self._sorts: dict[str, Any] = {
            name: z3.DeclareSort(name, self.context) for name in machine.sorts
        }
        self._sorts["Int"] = z3.IntSort(self.context)
        self._sorts["Bool"] = z3.BoolSort(self.context)
        self._invariants: list[Any] | None = None
        self.true = z3.BoolVal(True, self.context)
        self.false = z3.BoolVal(False, self.context)

    # --- states ---

    def arbitrary(self) -> State:
        """A state about which nothing is known."""
        values: dict[str, Closure] = {}
        domains: dict[str, Closure] = {}
        for f in self.machine.fields.values():
            values[f.name] = self._symbol(f.name, f.args, f.value)
            if f.kind == "map" and not f.total:
                domains[f.name] = self._symbol(f"has {f.name}", f.args, "Bool")
        return State(self, values, domains)

    def initial(self) -> State:
        """The state in which every run begins."""
        state = self.arbitrary()
        for f in self.machine.fields.values():
            if f.kind == "relation":
                state.values[f.name] = lambda *_: self.false
            elif f.total:
                start = z3.IntVal(f.init, self.context)
                state.values[f.name] = lambda *_, start=start: start
            elif f.kind == "map":
                state.domains[f.name] = lambda *_: self.false
        return state

    def invariants(self) -> list[Any]:
        """All invariants in the arbitrary state (made once: every proof starts from them)."""
        if self._invariants is None:
            state = self.arbitrary()
            self._invariants = [state.eval(i.body, {}) for i in self.machine.invariants]
        return list(self._invariants)

    def _symbol(self, name: str, args: tuple[str, ...], value: str) -> Closure:
        sorts = [self._sorts[a] for a in args]
        if not sorts:
            constant = z3.Const(name, self._sorts[value])
            return lambda: constant
        function = z3.Function(name, *sorts, self._sorts[value])
        return lambda *actual: function(*actual)

    def constant(self, var: ir.Var) -> Any:
        """A fresh constant for a parameter or bound variable."""
        return z3.Const(var.name, self._sorts[var.sort])

    def row_variables(self, field_name: str) -> list[Any]:
        """One constant for each column of a field."""
        args = self.machine.fields[field_name].args
        return [z3.Const(f"column {i}", self._sorts[a]) for i, a in enumerate(args)]

    # --- connectives that keep the context ---

    def conj(self, parts: list[Any]) -> Any:
        """Conjunction, empty allowed."""
        return z3.And(*parts) if parts else self.true

    def disj(self, parts: list[Any]) -> Any:
        """Disjunction, empty allowed."""
        return z3.Or(*parts) if parts else self.false


@dataclass
class State:
    """One point in time: a closure for each field, and one for each partial map's domain."""

    encoder: Encoder
    values: dict[str, Closure]
    domains: dict[str, Closure] = field(default_factory=dict)

    def copy(self) -> State:
        """The same state, to be updated apart."""
        return State(self.encoder, dict(self.values), dict(self.domains))

    # --- reading ---

    def eval(self, node: ir.Node, env: Env) -> Any:
        """``node`` as a Z3 term in this state."""
        e = self.encoder
        match node:
            case ir.Var(name, _):
                return env[name]
            case ir.Lit(value):
                if isinstance(value, bool):
                    return e.true if value else e.false
                return z3.IntVal(value, e.context)
            case ir.Read(name, args):
                return self.values[name](*(self.eval(a, env) for a in args))
            case ir.Has(name, args):
                if name not in self.domains:
                    return e.true
                return self.domains[name](*(self.eval(a, env) for a in args))
            case ir.Cmp(op, left, right):
                a, b = self.eval(left, env), self.eval(right, env)
                return a == b if op == "==" else a < b if op == "<" else a <= b
            case ir.Plus(left, right):
                return self.eval(left, env) + self.eval(right, env)
            case ir.Not(body):
                return z3.Not(self.eval(body, env))
            case ir.And(parts):
                return e.conj([self.eval(p, env) for p in parts])
            case ir.Or(parts):
                return e.disj([self.eval(p, env) for p in parts])
            case ir.Implies(left, right):
                return z3.Implies(self.eval(left, env), self.eval(right, env))
            case ir.ForAll(variables, body):
                bound, inner = self.bind(variables, env)
                return z3.ForAll(bound, self.eval(body, inner))
            case ir.Exists(variables, body):
                bound, inner = self.bind(variables, env)
                return z3.Exists(bound, self.eval(body, inner))
            case ir.Every(name, args, variables, body):
                bound, inner = self.bind(variables, env)
                row = self.values[name](*(self.eval(a, inner) for a in args))
                return z3.ForAll(bound, z3.Implies(row, self.eval(body, inner)))

    def bind(self, variables: tuple[ir.Var, ...], env: Env) -> tuple[list[Any], Env]:
        """Fresh constants for bound variables, and the environment extended by them."""
        bound = [
            z3.FreshConst(self.encoder._sorts[v.sort], v.name.strip("_") or "row")
            for v in variables
        ]
        return bound, {**env, **{v.name: c for v, c in zip(variables, bound, strict=True)}}

    # --- updating ---

    def apply(self, update: ir.Update, env: Env) -> None:
        """Carry an update out, in place."""
        when = self.eval(update.when, env)
        pattern = [None if isinstance(a, ir.Any) else self.eval(a, env) for a in update.args]

        def here(actual: tuple[Any, ...]) -> Any:
            same = [a == p for a, p in zip(actual, pattern, strict=True) if p is not None]
            return self.encoder.conj([when, *same])

        match update:
            case ir.Insert(name, _, _):
                self._wrap(self.values, name, here, self.encoder.true)
            case ir.Discard(name, _, _):
                table = self.domains if name in self.domains else self.values
                self._wrap(table, name, here, self.encoder.false)
            case ir.Put(name, _, value, _):
                self._wrap(self.values, name, here, self.eval(value, env))
                if name in self.domains:
                    self._wrap(self.domains, name, here, self.encoder.true)

    def _wrap(
        self, table: dict[str, Closure], name: str, here: Callable[..., Any], value: Any
    ) -> None:
        before = table[name]
        table[name] = lambda *actual: z3.If(here(actual), value, before(*actual))
