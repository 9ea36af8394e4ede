"""The authoring language refuses what would be traced wrongly."""

from __future__ import annotations

import pytest

from kvproof.spec import ir
from kvproof.spec.lang import (
    ANY,
    EACH,
    Expr,
    Int,
    MachineSpec,
    Sort,
    SpecError,
    action,
    assume,
    both,
    every,
    negate,
    oblige,
    relation2,
    scalar,
)


class A(Sort):
    """One kind of thing."""


class B(Sort):
    """Another."""


class Toy(MachineSpec):
    """Two fields, one action."""

    likes = relation2(A, B, "whom it likes", "S1")
    clock = scalar("the time", "S1")

    @action(by="engine")
    def drop(self, a: Expr[A], b: Expr[B]) -> None:
        """Likes it no more."""
        assume(self.likes[a, b])
        oblige("S1", every(self.likes.match(a, EACH), lambda other: negate(other == b)))
        self.likes.discard(a, ANY)
        self.clock.set(self.clock.value + 1)


def test_an_action_is_traced_to_its_statements() -> None:
    a, b = ir.Var("a", "A"), ir.Var("b", "B")
    other = ir.Var("other", "B")
    assert Toy.trace().actions["drop"] == ir.Action(
        "drop",
        "engine",
        (a, b),
        (
            ir.Guard("assume", "", ir.Read("likes", (a, b))),
            ir.Guard(
                "oblige",
                "S1",
                ir.Every("likes", (a, other), (other,), ir.Not(ir.Cmp("==", other, b))),
            ),
            ir.Discard("likes", (a, ir.Any())),
            ir.Put("clock", (), ir.Plus(ir.Read("clock", ()), ir.Lit(1))),
        ),
        "Likes it no more.",
    )


def test_fields_are_declared_with_their_sorts() -> None:
    machine = Toy.trace()
    assert machine.sorts == ("A", "B")
    assert machine.fields["likes"].args == ("A", "B")
    assert machine.fields["clock"] == ir.Field(
        "clock", "scalar", (), "Int", "S1", "the time", total=True
    )


def test_an_expression_has_no_truth_value() -> None:
    class Wrong(Toy):
        @action(by="engine")
        def wrong(self, a: Expr[A], b: Expr[B]) -> None:
            if self.likes[a, b]:
                self.likes.discard(a, b)

    with pytest.raises(SpecError, match="no truth value"):
        Wrong.trace()


def test_a_parameter_must_not_shadow_a_field() -> None:
    class Wrong(Toy):
        @action(by="engine")
        def wrong(self, clock: Int) -> None:
            assume(clock < 3)

    with pytest.raises(SpecError, match="shadows the field"):
        Wrong.trace()


def test_an_action_needs_a_known_owner() -> None:
    with pytest.raises(SpecError, match="no party is called 'nobody'"):
        action(by="nobody")


def test_statements_belong_into_actions() -> None:
    with pytest.raises(SpecError, match="action's body"):
        assume(both())


def test_a_quantifier_binds_as_many_names_as_columns_are_free() -> None:
    class Wrong(Toy):
        @action(by="engine")
        def wrong(self, a: Expr[A]) -> None:
            assume(every(self.likes.match(EACH, EACH), lambda x: x == a))

    with pytest.raises(SpecError, match="2 free columns, 1 parameters"):
        Wrong.trace()
