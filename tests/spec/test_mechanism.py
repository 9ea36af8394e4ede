"""The mechanism refines the contract, each of its conditions is needed, and it is the code's."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import z3

from kvproof.model.broken import Broken
from kvproof.model.contract import Contract, Worker
from kvproof.model.mechanism import Mechanism
from kvproof.spec import ir
from kvproof.spec.contract import contract
from kvproof.spec.encode import Encoder
from kvproof.spec.generate import render_on_top
from kvproof.spec.ids import CONTRACT
from kvproof.spec.mechanism import ELSEWHERE, mechanism
from kvproof.spec.mutants import Mutant, mutants, without
from kvproof.spec.obligations import Obligation
from kvproof.spec.refinement import oblige_names, refinement
from tests.spec.mechanism_scenes import SCENES, Scene, prepare

NEEDED: dict[str, str] = tomllib.loads(
    Path(__file__).with_name("needed.toml").read_text(encoding="utf-8")
)
"""A deletion in the mechanism -> an obligation that then fails."""


@cache
def encoder() -> Encoder:
    """Fields and invariants are the same with and without a deletion."""
    return Encoder(mechanism())


def proved(obligation: Obligation) -> bool:
    hypotheses, goal = obligation.build(encoder())
    solver = z3.Solver(ctx=encoder().context)
    solver.set("timeout", 10_000)
    solver.add(*hypotheses)
    solver.add(z3.Not(goal))
    return str(solver.check()) == "unsat"


# --- what is refined -----------------------------------------------------------------------------


def test_what_is_refined() -> None:
    kept = [o for o in refinement(contract(), mechanism(), ELSEWHERE) if o.kind == "refine"]
    assert Counter(o.id for o in kept) == {
        "P13": 5,
        "S5": 2,
        "L5": 1,
        "S9": 1,
        "S4": 4,
        "S11": 6,
        "S1": 2,
        "S2": 1,
        "S3": 4,
        "S6": 3,
        "S7": 4,
        "S10": 1,
        "S12": 1,
        "S13": 1,
        "P2": 2,
        "P4": 8,
        "P5": 3,
        "P6": 4,
        "P7": 2,
        "P12": 2,
        "P14": 2,
        "L2": 1,
        "L4": 2,
    }


def test_what_is_not_refined_is_listed_with_a_reason_and_could_not_be_proved() -> None:
    obliged = {
        name: guard
        for action in contract().actions.values()
        for i, name in oblige_names(action).items()
        if isinstance(guard := action.body[i], ir.Guard)
    }
    unsafe = {name for name, guard in obliged.items() if CONTRACT[guard.id].severity == "unsafe"}
    assert ELSEWHERE.keys() <= unsafe
    here = refinement(contract(), mechanism(), ELSEWHERE)
    known = {o.name for o in here}
    left_out = [o for o in refinement(contract(), mechanism(), ()) if o.name not in known]
    assert len(left_out) == len(ELSEWHERE)
    assert len(unsafe) == len(ELSEWHERE) + sum(o.kind == "refine" for o in here)
    assert [o.name for o in left_out if proved(o)] == []


def test_nothing_is_left_of_what_is_kept_by_request_or_job() -> None:
    own = {f for name, f in mechanism().fields.items() if name not in contract().fields}
    by_life = {f.name for f in own if f.kind == "relation" and {"Request", "Job"} & set(f.args)}
    concluded = {
        node.field
        for s in mechanism().actions["drained"].body
        if isinstance(s, ir.Guard) and s.kind == "conclude" and s.id == "P12"
        for node in ir.walk(s.cond)
        if isinstance(node, ir.Every)
    }
    # Empty by the condition itself; the engine's own; gone when the window closes.
    by_condition, engines = {"listed", "ending"}, {"lists", "said_failed"}
    of_the_window = {"last_table", "fresh", "offered"}
    assert by_life - concluded == by_condition | engines | of_the_window
    closing = ir.fields_written(mechanism().actions["close_window"])
    assert of_the_window <= closing


# --- what is needed ------------------------------------------------------------------------------


@cache
def own_mutants() -> dict[str, Mutant]:
    """Deletions that concern what the mechanism adds; conclusions move nothing."""
    below = {m.name for m in mutants(contract())}
    return {m.name: m for m in mutants(mechanism()) if m.name not in below and m.kind != "conclude"}


def narrows(mutant: Mutant) -> bool:
    """The condition with the deletion asks for all that it asked for without it."""
    if mutant.kind == "update":
        return False
    action = mechanism().actions[mutant.action]
    before, (after,) = action.body[mutant.statement], mutant.instead
    assert isinstance(before, ir.Guard) and isinstance(after, ir.Guard)
    state, env = encoder().arbitrary(), {p.name: encoder().constant(p) for p in action.params}
    solver = z3.Solver(ctx=encoder().context)
    solver.add(state.eval(after.cond, env), z3.Not(state.eval(before.cond, env)))
    return str(solver.check()) == "unsat"


@pytest.mark.parametrize("action", sorted({name.partition(":")[0] for name in NEEDED}))
def test_each_condition_of_the_mechanism_is_needed(action: str) -> None:
    survived = []
    for name, fails in NEEDED.items():
        if name.partition(":")[0] == action:
            weaker = without(mechanism(), own_mutants()[name])
            (found,) = [
                o
                for o in refinement(contract(), weaker, ELSEWHERE)
                if o.name == f"mechanism/{fails}"
            ]
            if proved(found):
                survived.append(name)
    assert survived == []


def test_every_condition_is_listed_as_needed() -> None:
    conditions = {name for name, m in own_mutants().items() if m.kind == "assume"}
    unlisted = [name for name in conditions - NEEDED.keys() if not narrows(own_mutants()[name])]
    assert unlisted == []
    assert NEEDED.keys() <= own_mutants().keys()


def test_every_update_is_needed_for_a_proof_or_for_something_to_be_possible() -> None:
    updates = {name for name, m in own_mutants().items() if m.kind == "update"}
    rest = {name: own_mutants()[name] for name in updates - NEEDED.keys()}
    assert [name for name, mutant in rest.items() if not broken_scenes(without_it(mutant))] == []


def without_it(mutant: Mutant) -> type[Mechanism]:
    """The mechanism as code, its one action as the generator writes it with the deletion."""
    space: dict[str, Any] = {}
    text = render_on_top(contract(), without(mechanism(), mutant))
    exec(compile(text, f"<{mutant.name}>", "exec"), space)
    # What is left may be the contract's own move, which is not written again.
    changed = vars(space["Mechanism"]).get(mutant.action) or vars(Contract)[mutant.action]
    return type("Mutant", (Mechanism,), {mutant.action: changed})


def broken_scenes(machine: type[Mechanism]) -> list[str]:
    """The scenes that do not go on as told."""
    broken = []
    for scene in SCENES:
        m = machine([Worker(0)])
        prepare(m)
        try:
            scene(m)
        except (Broken, AssertionError, KeyError):
            broken.append(scene.__name__)
    return broken


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_a_scene_goes_on_as_told(scene: Scene) -> None:
    m = Mechanism([Worker(0)])
    prepare(m)
    scene(m)


def test_an_action_that_writes_a_field_of_the_contract_is_no_superposition() -> None:
    spec = mechanism()
    decide = spec.actions["decide"]
    meddling = replace(decide, body=(*decide.body, ir.Discard("reading", (ir.Any(),) * 4)))
    worse = replace(spec, actions={**spec.actions, "decide": meddling})
    (found,) = [
        o
        for o in refinement(contract(), worse, ELSEWHERE)
        if o.name == "mechanism/superpose/decide"
    ]
    assert not proved(found)


# --- it is the code's ----------------------------------------------------------------------------


@cache
def names_of_the_code() -> frozenset[str]:
    """``Class.member`` and function names of the production scheduler and its connector."""
    found: set[str] = set()
    for part in ("scheduler", "connector"):
        folder = resources.files("kvproof.impl") / part
        assert isinstance(folder, Path)
        for path in sorted(folder.glob("*.py")):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.FunctionDef):
                    found.add(node.name)
                elif isinstance(node, ast.ClassDef):
                    found |= {node.name, *(f"{node.name}.{m}" for m in members(node))}
    return frozenset(found)


def members(node: ast.ClassDef) -> Iterator[str]:
    """Methods, declared attributes, and attributes that a method sets on ``self``."""
    for inner in ast.walk(node):
        match inner:
            case ast.FunctionDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield name


def test_what_the_mechanism_says_is_the_codes_is_in_the_code() -> None:
    own = {f.doc for name, f in mechanism().fields.items() if name not in contract().fields}
    own |= {a.doc for name, a in mechanism().actions.items() if a != contract().actions.get(name)}
    named = {n for doc in own for n in re.findall(r"\b_?[A-Z][A-Za-z]+\.\w+", doc)}
    named |= {n for doc in own for n in re.findall(r"``(\w\w+)``", doc)}
    assert len(named) > 50
    assert sorted(named - names_of_the_code() - NAMES_OF_THE_ENGINE) == []


NAMES_OF_THE_ENGINE = {
    "WorkerReport.completed_jobs",
    "block_hashes",
    "num_computed_tokens",
    "request_finished",
    "update_state_after_alloc",
    "build_connector_meta",
}
