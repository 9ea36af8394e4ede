"""The mechanism refines the contract, each of its conditions is needed, and it is not vacuous."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from types import ModuleType
from typing import Any

import pytest
import z3

from kvproof.model.broken import Broken
from kvproof.spec import ir
from kvproof.spec.contract import contract
from kvproof.spec.encode import Encoder
from kvproof.spec.generate import render
from kvproof.spec.mechanism import NOT_OURS, REFINED, mechanism
from kvproof.spec.obligations import Obligation
from kvproof.spec.refinement import refinement


def proved(obligation: Obligation, encoder: Encoder) -> bool:
    hypotheses, goal = obligation.build(encoder)
    solver = z3.Solver(ctx=encoder.context)
    solver.set("timeout", 10_000)
    solver.add(*hypotheses)
    solver.add(z3.Not(goal))
    return str(solver.check()) == "unsat"


def test_what_is_refined() -> None:
    kept = [o for o in refinement(contract(), mechanism(), REFINED, NOT_OURS) if o.kind == "refine"]
    assert Counter(o.id for o in kept) == {"P4": 8, "S7": 4, "S3": 4, "P5": 3, "S6": 1, "P14": 1}


# (action, number of one of its own conditions or updates, an obligation that then fails)
NEEDED = [
    ("reset", 0, "step/reset/dead_jobs_are_older"),
    ("start_store", 1, "refine/start_store/5"),
    ("start_load", 0, "refine/start_load/4"),
    ("issue_load", 0, "step/issue_load/dead_jobs_are_flushed"),
    ("issue_store", 0, "step/issue_store/dead_jobs_are_flushed"),
    ("make", 0, "refine/make/2"),
    ("plan_store", 0, "refine/plan_store/7"),
    ("plan_store", 2, "step/plan_store/a_reader_of_a_lease_that_is_over_is_flushed"),
    ("plan_store", 3, "step/plan_store/a_reader_of_a_lease_that_is_over_is_flushed"),
    ("plan_store", 4, "step/plan_store/what_is_read_is_fenced"),
    ("flush", 0, "step/flush/flushes_follow_issues"),
    ("lease", 0, "step/lease/a_reader_of_a_lease_that_is_over_is_flushed"),
    ("close_window", 0, "step/close_window/a_reader_of_a_lease_that_is_over_is_flushed"),
    ("launch", 0, "step/launch/workers_wait_step_by_step"),
    ("compute", 0, "refine/compute/2"),
    ("zero", 0, "refine/zero/2"),
    ("copy_slot", 0, "refine/copy_slot/2"),
    ("decide", 1, "step/decide/a_reader_of_a_lease_that_is_over_is_flushed"),
    ("decide", 2, "step/decide/dead_jobs_are_flushed"),
    ("clear", 0, "step/clear/what_was_waited_for_uses_no_slot"),
    ("wait_all", 0, "step/wait_all/what_was_waited_for_uses_no_slot"),
    ("wait_all", 1, "step/wait_all/what_was_waited_for_is_not_read"),
    ("publish", 0, "refine/publish/2"),
    ("publish", 1, "refine/publish/6"),
    ("publish", 2, "step/publish/what_is_to_complete_waits_in_the_tier"),
    ("unpin", 0, "refine/unpin/2"),
    ("report", 0, "refine/report/1"),
    ("lift", 0, "step/lift/what_is_read_is_fenced"),
]


def own_statements(action: str) -> list[int]:
    """Where a mechanism's action says what the contract's does not."""
    below = list(contract().actions[action].body) if action in contract().actions else []
    found = []
    for i, statement in enumerate(mechanism().actions[action].body):
        if below and statement == below[0]:
            below.pop(0)
        else:
            found.append(i)
    return found


@pytest.mark.parametrize(("action", "number", "obligation"), NEEDED)
def test_each_condition_of_the_mechanism_is_needed(
    action: str, number: int, obligation: str
) -> None:
    spec = mechanism()
    where = own_statements(action)[number]
    body = spec.actions[action].body
    shorter = replace(spec.actions[action], body=(*body[:where], *body[where + 1 :]))
    weaker = replace(spec, actions={**spec.actions, action: shorter})
    # Obligations behind the gap have moved up by one place.
    names = {f"mechanism/{obligation}"}
    head, _, last = obligation.rpartition("/")
    if last.isdigit():
        names.add(f"mechanism/{head}/{int(last) - 1}")
    encoder = Encoder(weaker)
    found = [o for o in refinement(contract(), weaker, REFINED, NOT_OURS) if o.name in names]
    assert found
    assert not all(proved(o, encoder) for o in found)


def test_an_action_that_writes_a_field_of_the_contract_is_no_superposition() -> None:
    spec = mechanism()
    decide = spec.actions["decide"]
    meddling = replace(decide, body=(*decide.body, ir.Discard("reading", (ir.Any(),) * 4)))
    worse = replace(spec, actions={**spec.actions, "decide": meddling})
    (found,) = [
        o
        for o in refinement(contract(), worse, REFINED, NOT_OURS)
        if o.name == "mechanism/superpose/decide"
    ]
    assert not proved(found, Encoder(worse))


# --- it runs -------------------------------------------------------------------------------------


@cache
def running() -> Any:
    """The mechanism as code, made the way the reference is."""
    module = ModuleType("kvproof_mechanism")
    exec(compile(render(mechanism()), "mechanism", "exec"), module.__dict__)
    return module.__dict__["Mechanism"]


def scene() -> Any:
    """One worker; lease n of block n % 10, residency n in slot n % 10, job n in lane n // 100."""
    m = running()([0])
    for n in range(40):
        m.lease_block[n], m.lease_position[n], m.lease_seq[n] = n % 10, n % 10, n
        m.residency_slot[n], m.residency_key[n], m.residency_seq[n] = n % 10, n % 10, n
        m.slot_exists[n % 10] = True
        m.place_residency[n], m.place_position[n], m.place_content[n] = n, n % 10, 7
        m.piece_lease[n], m.piece_place[n] = n, n
    for n in (*range(10), *range(100, 110)):
        m.job_request[n], m.job_lane[n] = 0, n // 100
    return m


def window(m: Any) -> None:
    """The plan is over, the window closes, and the worker launches it."""
    m.close_window()
    m.launch(0)


def test_a_block_is_handed_out_under_a_store_which_is_flushed_first() -> None:
    m = scene()
    m.arrive(0)
    m.lease(0, 1)
    m.decide()
    m.admit(1)
    m.issue_store(1)
    m.make(1, 1)
    m.piece_job[1] = 1
    m.plan_store(1)
    assert set(m.fence) == {(1, 1)}
    window(m)
    m.wait_all(0)
    m.compute(0, 1, 7)
    # The request ends, and its block goes to somebody else, while the store has not begun.
    m.finish(0)
    m.free(0, 1)
    m.arrive(2)
    m.lease(2, 11)
    with pytest.raises(Broken):
        m.decide()
    m.flush(1)
    m.decide()
    window(m)
    m.start_store(0, 1)
    m.submit(0, 1)
    with pytest.raises(Broken):
        m.wait_all(0)
    m.land(0, 1)
    m.end(0, 1)
    m.waited(0, 1)
    m.wait_all(0)
    m.compute(0, 11, 7)
    m.report(0, 1)
    m.publish(1, 1)
    m.lift(1)
    assert (set(m.fence), set(m.to_complete), m.ready) == (set(), set(), {1})
