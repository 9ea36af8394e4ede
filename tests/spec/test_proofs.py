"""What is proved, and how many obligations that takes."""

from __future__ import annotations

from collections import Counter

from kvproof.spec.contract import contract
from kvproof.spec.ids import CONTRACT
from kvproof.spec.prove import prove_all


def test_every_obligation_on_the_spec_is_proved() -> None:
    results = prove_all(jobs=1, timeout_ms=60_000)
    assert [r for r in results if r.status != "proved"] == []
    assert Counter(r.kind for r in results) == {
        "initial": 79,
        "defined": 221,
        "faithful": 148,
        "conclude": 19,
        "step": 483,
        "progress": 22,
        "effect": 139,
        "superpose": 77,
        "refine": 62,
        "function": 172,
    }


def test_the_same_obligations_are_proved_on_the_text_of_the_reference() -> None:
    on_spec = prove_all(jobs=1, timeout_ms=60_000)
    on_text = prove_all(generated=True, jobs=1, timeout_ms=60_000)
    assert [(r.name, r.status) for r in on_text] == [(r.name, "proved") for r in on_spec]


def test_names_of_obligations_are_unique() -> None:
    names = [r.name for r in prove_all(jobs=1)]
    assert len(set(names)) == len(names)


def test_every_id_of_the_contract_has_a_guard_an_invariant_or_both() -> None:
    machine = contract()
    guarded = {getattr(s, "id", "") for action in machine.actions.values() for s in action.body} - {
        ""
    }
    proved = {inv.id for inv in machine.invariants}
    assert guarded | proved == set(CONTRACT)


def test_every_mutable_field_names_an_id_that_it_serves() -> None:
    fields = [f for f in contract().fields.values() if f.kind != "attribute"]
    assert {f.serves for f in fields} <= set(CONTRACT)
    assert all(f.doc for f in contract().fields.values())
