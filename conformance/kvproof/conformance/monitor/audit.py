"""The debug profile: all invariants of the spec, evaluated over the reference as it stands.

The proof says that guards suffice, so the monitor never does this in earnest. It is a check of the
proof's own ground: that what was proved is what runs. Costs grow with everything that the trace has
named; it is meant for short histories.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvproof.conformance.monitor.facts import Env, Facts
from kvproof.conformance.monitor.world import World
from kvproof.spec import ir


class Audit:
    """Evaluates invariants over a finite world."""

    def __init__(self, machine: ir.Machine, world: World) -> None:
        self.machine = machine
        self.world = world
        self._evaluate = Facts(machine, world).value

    def broken(self) -> list[str]:
        """The names of the invariants that do not hold now, or read an undefined map."""
        return [inv.name for inv in self.machine.invariants if not self._true(inv.body)]

    def _true(self, body: ir.Node) -> bool:
        try:
            return self._holds(body, {})
        except KeyError:
            return False

    def _holds(self, node: ir.Node, env: Env) -> bool:
        match node:
            case ir.And(parts):
                return all(self._holds(p, env) for p in parts)
            case ir.ForAll(variables, body):
                return all(self._holds(body, inner) for inner in self._cases(variables, body, env))
            case _:
                return bool(self._evaluate(node, env))

    def _cases(
        self, variables: tuple[ir.Var, ...], body: ir.Node, env: Env
    ) -> Iterator[dict[str, int]]:
        """All values of the variables, or the rows of a relation that the body starts from."""
        source = _premise(body)
        rows: list[dict[str, int]] = [dict(env)]
        if source is not None:
            rows = list(self._rows(source, env))
        for variable in variables:
            rows = [
                row if variable.name in row else {**row, variable.name: value}
                for row in rows
                for value in ([0] if variable.name in row else self._domain(variable.sort))
            ]
        yield from rows

    def _rows(self, source: ir.Read | ir.Has, env: Env) -> Iterator[dict[str, int]]:
        table: Any = getattr(self.world.reference, source.field)
        names = [a.name for a in source.args if isinstance(a, ir.Var)]
        for row in list(table):
            values = row if isinstance(row, tuple) else (row,)
            found = dict(env)
            if all(found.setdefault(n, v) == v for n, v in zip(names, values, strict=True)):
                yield found

    def _domain(self, sort: str) -> range:
        if sort == "Content":
            return range(len(self.world.contents))
        return range(self.world.names.count(sort))


def _premise(body: ir.Node) -> ir.Read | ir.Has | None:
    """A relation or domain over distinct variables that the body presupposes."""
    if not isinstance(body, ir.Implies):
        return None
    first = body.left
    while isinstance(first, ir.And):
        first = first.parts[0]
    if isinstance(first, ir.Read | ir.Has) and all(isinstance(a, ir.Var) for a in first.args):
        names = [a.name for a in first.args if isinstance(a, ir.Var)]
        return first if names and len(set(names)) == len(names) else None
    return None
