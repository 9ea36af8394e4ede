"""Why a guard is false, as facts in the spec's own names.

The guard's expression is evaluated over the reference as it stands; only the parts that made it
false are told.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvproof.conformance.monitor.world import World
from kvproof.spec import ir

Env = Mapping[str, int]


class Facts:
    """Collects what is wrong with one guard."""

    def __init__(self, machine: ir.Machine, world: World) -> None:
        self.machine = machine
        self.world = world
        self.found: dict[str, str] = {}
        self.elements: dict[str, tuple[str, int]] = {}

    def explain(self, action: str, index: int, params: tuple[int, ...]) -> dict[str, str]:
        """The facts that make guard ``index`` of ``action`` false for ``params``."""
        declared = self.machine.actions[action]
        guards = [s for s in declared.body if isinstance(s, ir.Guard)]
        env = {p.name: value for p, value in zip(declared.params, params, strict=True)}
        for p, value in zip(declared.params, params, strict=True):
            self.found[p.name] = self.show(p.sort, value)
            self.elements[p.name] = (p.sort, value)
        self._blame(guards[index].cond, env, True)
        return self.found

    def show(self, sort: str, value: int) -> str:
        """An element as its trace called it."""
        return self.world.show(sort, value)

    # --- evaluation ---

    def value(self, node: ir.Node, env: Env) -> Any:
        """``node`` over the reference's present state."""
        reference = self.world.reference
        match node:
            case ir.Var(name, _):
                return env[name]
            case ir.Lit(value):
                return value
            case ir.Read(name, args) | ir.Has(name, args):
                store = getattr(reference, name)
                if not args:
                    return store
                key = tuple(self.value(a, env) for a in args)
                index = key[0] if len(key) == 1 else key
                if isinstance(node, ir.Has) or self.machine.fields[name].kind == "relation":
                    return index in store
                return store[index]
            case ir.Cmp(op, left, right):
                a, b = self.value(left, env), self.value(right, env)
                return a == b if op == "==" else a < b if op == "<" else a <= b
            case ir.Plus(left, right):
                return self.value(left, env) + self.value(right, env)
            case ir.Not(body):
                return not self.value(body, env)
            case ir.And(parts):
                return all(self.value(p, env) for p in parts)
            case ir.Or(parts):
                return any(self.value(p, env) for p in parts)
            case ir.Implies(left, right):
                return not self.value(left, env) or self.value(right, env)
            case ir.ForAll(variables, body):
                (variable,) = variables
                return all(self.value(body, {**env, variable.name: w}) for w in reference.workers)
            case ir.Every():
                return all(self.value(node.body, inner) for inner in self._rows(node, env))
            case ir.Exists():
                raise ValueError("existentials are not executed")

    def _rows(self, node: ir.Every, env: Env) -> list[Env]:
        relation = getattr(self.world.reference, node.field)
        free = {v.name for v in node.vars}
        names = [a.name if isinstance(a, ir.Var) and a.name in free else None for a in node.args]
        if len(node.args) == 1:
            return [{**env, node.vars[0].name: row} for row in sorted(relation)]
        pattern = [None if a in node.vars else self.value(a, env) for a in node.args]
        return [
            {**env, **{n: v for n, v in zip(names, row, strict=True) if n is not None}}
            for row in sorted(relation.match(*pattern))
        ]

    # --- blame ---

    def _blame(self, node: ir.Node, env: Env, wanted: bool) -> None:
        """Record why ``node`` is not ``wanted``."""
        match node:
            case ir.Not(body):
                self._blame(body, env, not wanted)
            case ir.And(parts) if wanted:
                self._blame(next(p for p in parts if not self.value(p, env)), env, True)
            case ir.Or(parts) if not wanted:
                self._blame(next(p for p in parts if self.value(p, env)), env, False)
            case ir.And(parts) | ir.Or(parts):
                for p in parts:
                    self._blame(p, env, wanted)
            case ir.Implies(left, right) if wanted:
                self._blame(left, env, False)
                self._blame(right, env, True)
            case ir.Every(name, args, variables, body) if wanted:
                inner = next(e for e in self._rows(node, env) if not self.value(body, e))
                self.found[self._text(ir.Read(name, args), inner)] = "True"
                for v in variables:
                    self.found[v.name] = self.show(v.sort, inner[v.name])
                    self.elements[v.name] = (v.sort, inner[v.name])
                self._blame(body, inner, True)
            case ir.ForAll((variable,), body) if wanted:
                workers = self.world.reference.workers
                w = next(w for w in workers if not self.value(body, {**env, variable.name: w}))
                self._blame(body, {**env, variable.name: w}, True)
            case ir.Cmp(_, left, right):
                for side in (left, right):
                    if not isinstance(side, ir.Lit):
                        self._tell(side, env)
            case ir.Read() | ir.Has():
                self._tell(node, env)
            case _:
                pass

    def _tell(self, node: ir.Node, env: Env) -> None:
        if isinstance(node, ir.Var):
            self.found.setdefault(node.name, self.show(node.sort, env[node.name]))
            return
        sort = "Bool"
        if isinstance(node, ir.Read):
            sort = self.machine.fields[node.field].value
        self.found[self._text(node, env)] = self.show(sort, self.value(node, env))

    def _text(self, node: ir.Node, env: Env) -> str:
        """A field at the elements that its arguments are; anything else as it is written."""
        match node:
            case ir.Var(name, sort):
                return self.show(sort, env[name])
            case ir.Read(name, args) if args:
                return f"{name}[{self._elements(name, args, env)}]"
            case ir.Read(name, _):
                return name
            case ir.Has(name, args):
                return f"{name}.has({self._elements(name, args, env)})"
            case ir.Plus(left, right):
                return f"{self._text(left, env)} + {self._text(right, env)}"
            case ir.Lit(value):
                return str(value)
            case _:
                return "…"

    def _elements(self, field: str, args: tuple[ir.Node, ...], env: Env) -> str:
        sorts = self.machine.fields[field].args
        values = (self.value(a, env) for a in args)
        return ", ".join(self.show(s, v) for s, v in zip(sorts, values, strict=True))
