"""What is deleted, one thing at a time, and what is left."""

from __future__ import annotations

from kvproof.spec import ir
from kvproof.spec.contract import contract
from kvproof.spec.lang import (
    ANY,
    EACH,
    Expr,
    MachineSpec,
    Sort,
    action,
    assume,
    both,
    conclude,
    either,
    every,
    implies,
    map1,
    negate,
    oblige,
    relation2,
)
from kvproof.spec.mutants import mutants, shortened, without


class A(Sort):
    """One kind of thing."""


class Toy(MachineSpec):
    """Two fields, two actions."""

    likes = relation2(A, A, "whom it likes", "S1")
    age = map1(A, int, "how old it is", "S2")

    @action(by="engine")
    def meet(self, a: Expr[A], b: Expr[A]) -> None:
        """Two that are of one age may like each other."""
        assume(both(self.age.has(a), self.age.has(b), self.age[a] == self.age[b]))
        oblige("S1", every(self.likes.match(a, EACH), lambda c: either(c == a, c == b)))
        conclude("S2", implies(self.likes[a, b], self.age.has(a)))
        self.likes.add(a, b, when=negate(self.likes[b, a]))

    @action(by="engine")
    def part(self, a: Expr[A]) -> None:
        """It likes nobody."""
        self.likes.discard(a, ANY)
        self.likes.discard(a, ANY)


MACHINE = Toy.trace()
X, Y, Z = (ir.Read(name, ()) for name in "xyz")


def test_every_statement_and_every_part_of_a_condition_is_deleted_once() -> None:
    assert [(m.name, m.kind, m.id, m.what) for m in mutants(MACHINE)] == [
        (
            "meet: no assume ((a in age) and (b in age) and (age[a] == age[b]))",
            "assume",
            "",
            "statement",
        ),
        ("meet: assume without (a in age)", "assume", "", "part"),
        ("meet: assume without (b in age)", "assume", "", "part"),
        ("meet: assume without (age[a] == age[b])", "assume", "", "part"),
        (
            "meet: no oblige S1 (all((c == a) or (c == b) for _, c in likes.match(a, EACH)))",
            "oblige",
            "S1",
            "statement",
        ),
        ("meet: oblige S1 without (c == a)", "oblige", "S1", "part"),
        ("meet: oblige S1 without (c == b)", "oblige", "S1", "part"),
        (
            "meet: no conclude S2 ((a in age) if ((a, b) in likes) else True)",
            "conclude",
            "S2",
            "statement",
        ),
        ("meet: conclude S2 without ((a, b) in likes)", "conclude", "S2", "part"),
        (
            "meet: no update of likes (if not ((b, a) in likes): likes.add(a, b))",
            "update",
            "S1",
            "statement",
        ),
        ("meet: update of likes without (not ((b, a) in likes))", "update", "S1", "part"),
        ("part: no update of likes (likes.discard(a, ANY))", "update", "S1", "statement"),
        ("part: no update of likes (likes.discard(a, ANY)) #2", "update", "S1", "statement"),
    ]


def test_a_deleted_guard_always_holds_and_a_deleted_update_is_gone() -> None:
    by_name = {m.name: m for m in mutants(MACHINE)}
    meet = MACHINE.actions["meet"].body
    weaker = without(MACHINE, by_name["meet: assume without (b in age)"])
    assert weaker.actions.keys() == {"meet"}
    assert weaker.actions["meet"].body == (
        ir.Guard("assume", "", ir.And((_parts(meet[0])[0], _parts(meet[0])[2]))),
        *meet[1:],
    )
    unguarded = without(MACHINE, by_name[next(iter(by_name))])
    assert unguarded.actions["meet"].body == (ir.Guard("assume", "", ir.TRUE), *meet[1:])
    silent = without(
        MACHINE, by_name["meet: no update of likes (if not ((b, a) in likes): likes.add(a, b))"]
    )
    assert silent.actions["meet"].body == meet[:3]
    assert (silent.fields, silent.invariants) == (MACHINE.fields, MACHINE.invariants)


def _parts(statement: ir.Statement) -> tuple[ir.Node, ...]:
    assert isinstance(statement, ir.Guard) and isinstance(statement.cond, ir.And)
    return statement.cond.parts


def test_parts_are_deleted_at_any_depth() -> None:
    node = ir.Not(ir.Or((X, ir.And((Y, Z)))))
    assert list(shortened(node)) == [
        (ir.Not(ir.And((Y, Z))), X),
        (ir.Not(X), ir.And((Y, Z))),
        (ir.Not(ir.Or((X, Z))), Y),
        (ir.Not(ir.Or((X, Y))), Z),
    ]
    assert list(shortened(ir.Implies(X, ir.And((Y, Z))))) == [
        (ir.And((Y, Z)), X),
        (ir.Implies(X, Z), Y),
        (ir.Implies(X, Y), Z),
    ]
    assert list(shortened(ir.Cmp("==", X, Y))) == []


def test_no_two_mutants_of_the_contract_share_a_name_and_each_changes_its_action() -> None:
    machine = contract()
    found = mutants(machine)
    assert len({m.name for m in found}) == len(found)
    assert {m.action for m in found} == {a.name for a in machine.actions.values() if a.body}
    for mutant in found:
        assert without(machine, mutant).actions[mutant.action] != machine.actions[mutant.action]
