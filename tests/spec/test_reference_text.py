"""The committed reference is the generator's text, reads back exactly, and no update is spare."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from kvproof.spec import ir
from kvproof.spec.contract import contract
from kvproof.spec.generate import reference_path, render, render_on_top
from kvproof.spec.mechanism import ELSEWHERE, mechanism
from kvproof.spec.obligations import obligations
from kvproof.spec.parse import ParseError, mechanism_machine, parse, reference_machine
from kvproof.spec.prove import prove_one
from kvproof.spec.refinement import refinement

TEXT = reference_path().read_text(encoding="utf-8")


def test_the_committed_reference_is_fresh() -> None:
    assert render() == TEXT


def test_reading_the_text_back_gives_the_authored_actions() -> None:
    read = reference_machine()
    for name, action in contract().actions.items():
        assert (read.actions[name].params, read.actions[name].body) == (action.params, action.body)
    assert set(read.actions) == set(contract().actions)


def updates() -> list[tuple[str, int]]:
    """(action, index of the update in its body) of every update of the spec."""
    return [
        (name, i)
        for name, action in contract().actions.items()
        for i, statement in enumerate(action.body)
        if not isinstance(statement, ir.Guard)
    ]


@pytest.mark.parametrize(("action", "index"), updates())
def test_deleting_any_one_update_breaks_an_obligation_of_that_action(
    action: str, index: int
) -> None:
    spec = contract()
    body = spec.actions[action].body
    deleted = body[index]
    assert not isinstance(deleted, ir.Guard)
    shorter = ir.Action(
        action,
        spec.actions[action].by,
        spec.actions[action].params,
        body[:index] + body[index + 1 :],
    )
    subject = ir.Machine(
        spec.name, spec.sorts, spec.fields, {**spec.actions, action: shorter}, spec.invariants
    )
    mine = [o for o in obligations(spec, subject) if o.action == action and o.kind == "effect"]
    failed = [r for r in (prove_one(o, 10_000) for o in mine) if r.status == "failed"]
    assert failed, f"nobody misses {deleted}"
    assert {r.action for r in failed} == {action}
    assert spec.fields[deleted.field].serves in {r.id for r in failed}


def statements_of(text: str) -> list[tuple[int, int]]:
    """First and last line of every update statement in the text, loops and conditions whole."""
    (machine,) = [n for n in ast.parse(text).body if isinstance(n, ast.ClassDef)]
    found = []
    for method in machine.body:
        if isinstance(method, ast.FunctionDef) and method.name != "__init__":
            for statement in method.body:
                is_guard = isinstance(statement, ast.If) and isinstance(
                    statement.body[0], ast.Raise
                )
                is_local = isinstance(statement, ast.Assign) and isinstance(
                    statement.targets[0], ast.Name
                )
                is_doc = isinstance(statement, ast.Expr) and isinstance(
                    statement.value, ast.Constant
                )
                if not (is_guard or is_local or is_doc):
                    found.append((statement.lineno, statement.end_lineno or statement.lineno))
    return found


def test_the_text_has_as_many_updates_as_the_spec() -> None:
    assert len(statements_of(TEXT)) == len(updates()) == 139


def test_a_line_deleted_from_the_text_is_noticed_by_proof_and_by_name() -> None:
    lines = TEXT.splitlines(keepends=True)
    number = next(i for i, line in enumerate(lines) if "self.ready.add(x)" in line)
    subject = parse("".join(lines[:number] + lines[number + 1 :]), contract())
    results = [
        prove_one(o, 10_000) for o in obligations(contract(), subject) if o.action == "publish"
    ]
    failed = {(r.name, r.action, r.id) for r in results if r.status != "proved"}
    assert failed == {
        ("effect/publish/ready/6", "publish", "S6"),
        (
            "step/publish/resident_chunks_are_stored_or_being_stored",
            "publish",
            "S6",
        ),
    }


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("self.epoch = 0", "self.epoch = 1"),
        ("self.now = 1", "self.now = 0"),
        ("self.ready: set[Residency] = set()", "self.ready: set[Slot] = set()"),
        ("fromkeys(workers, 0)", "fromkeys(workers, 1)"),
    ],
)
def test_another_initial_state_is_noticed(before: str, after: str) -> None:
    subject = parse(TEXT.replace(before, after), contract())
    (fields,) = [o for o in obligations(contract(), subject) if o.name == "faithful/fields"]
    assert prove_one(fields, 10_000).status == "failed"


def test_a_field_left_out_of_the_start_is_noticed() -> None:
    line = "        self.ready: set[Residency] = set()\n"
    subject = parse(TEXT.replace(line, ""), contract())
    (fields,) = [o for o in obligations(contract(), subject) if o.name == "faithful/fields"]
    assert prove_one(fields, 10_000).status == "failed"


def test_a_guard_deleted_from_the_text_is_noticed() -> None:
    condition = "        if not self.pinned.none(x, EACH):\n"
    start = TEXT.index(condition)
    end = TEXT.index("\n", start + len(condition)) + 1
    subject = parse(TEXT[:start] + TEXT[end:], contract())
    results = [
        prove_one(o, 10_000) for o in obligations(contract(), subject) if o.action == "evict"
    ]
    assert {r.name for r in results if r.status == "failed"} == {
        "faithful/evict",
        "step/evict/answers_and_pins_name_readable_chunks",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("class Contract(:", "invalid syntax"),
        ("x = 1", "no class Contract"),
        ("class Contract:\n    def free(self, r):\n        pass", "a parameter without its sort"),
        (
            "class Contract:\n    def free(self, r: Request):\n        print(r)",
            "only fields are updated",
        ),
        (
            "class Contract:\n    def free(self, r: Request):\n        self.nothing.add(r)",
            "there is no field nothing",
        ),
        (
            "class Contract:\n    def free(self, r: Request):\n        while True: pass",
            "not a statement of a reference",
        ),
        ("class Contract:\n    def steal(self) -> None: ...", "the spec has no such action"),
        (
            "class Contract:\n    def __init__(self, workers):\n        self.ready = {1}",
            "not the start of a field",
        ),
    ],
)
def test_a_text_that_is_no_reference_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse(text, contract(), "here")


# --- the mechanism -------------------------------------------------------------------------------

ON_TOP = reference_path("mechanism.py").read_text(encoding="utf-8")


def test_the_committed_mechanism_is_fresh_and_reads_back() -> None:
    assert render_on_top(contract(), mechanism()) == ON_TOP
    read = mechanism_machine()
    assert read.fields == mechanism().fields
    for name, action in mechanism().actions.items():
        assert (read.actions[name].params, read.actions[name].body) == (action.params, action.body)
    assert set(read.actions) == set(mechanism().actions)


@pytest.mark.parametrize(
    ("before", "after", "failing"),
    [
        # A table is not written.
        ("        self.fence.add(p_lease_block, p_job)\n", "", "faithful/plan_store"),
        # A condition is gone, and with it what it was for.
        (
            "        if not (j in self.all_reported):\n"
            '            raise Broken("assume", "", "end_job", 0, (j,))\n',
            "",
            "step/end_job/what_is_read_is_fenced",
        ),
        # The contract's own field is written.
        ("        self.listed.discard(j)\n", "        self.ready.clear()\n", "superpose/end_job"),
        ("        self.losses = 0\n", "        self.losses = 1\n", "faithful/fields"),
    ],
)
def test_a_slip_in_the_text_of_the_mechanism_is_noticed(
    tmp_path: Path, before: str, after: str, failing: str
) -> None:
    assert before in ON_TOP
    text = tmp_path / "mechanism.py"
    text.write_text(ON_TOP.replace(before, after), encoding="utf-8")
    subject = mechanism_machine(text)
    (found,) = [
        o
        for o in refinement(contract(), mechanism(), ELSEWHERE, subject)
        if o.name == f"mechanism/{failing}"
    ]
    assert prove_one(found, 10_000).status == "failed"
