"""The proof notices: each planted fault weakens one promise, and a named obligation fails."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvproof.spec import ir
from kvproof.spec.contract import contract
from kvproof.spec.obligations import obligations
from kvproof.spec.prove import prove_one

# (action, id of the promises taken away, an obligation that must then fail)
FAULTS = [
    ("compute", "S3", "step/compute/nothing_changes_under_a_reader"),
    ("zero", "S3", "step/zero/nothing_changes_under_a_reader"),
    ("copy_slot", "S3", "step/copy_slot/nothing_changes_under_a_reader"),
    ("start_load", "S3", "step/start_load/nothing_changes_under_a_reader"),
    ("start_store", "S2", "step/start_store/nothing_changes_under_a_reader"),
    ("start_store", "S7", "step/start_store/a_late_copy_is_not_overtaken"),
    ("plan_store", "S1", "step/plan_store/stores_read_leases"),
    ("plan_load", "S4", "conclude/plan_load/7"),
    ("plan_load", "S5", "conclude/plan_load/7"),
    ("plan_load", "S11", "step/plan_load/destinations_are_held_by_one"),
    ("settle", "S11", "conclude/settle/3"),
    ("settle", "S10", "conclude/settle/3"),
    ("publish", "S6", "step/publish/readable_means_complete"),
    ("publish", "P4", "step/publish/readable_means_complete"),
    ("hit", "S6", "step/hit/answers_and_pins_name_readable_chunks"),
    ("pin", "S5", "conclude/pin/4"),
    ("evict", "S7", "step/evict/answers_and_pins_name_readable_chunks"),
    ("admit", "S8", "step/admit/slots_match_keys"),
    ("report", "P4", "step/report/only_issued_jobs_are_under_way"),
    ("attend", "S14", "conclude/attend/4"),
]


def weakened(action: str, id: str) -> ir.Machine:
    """The contract with every obligation ``id`` of ``action`` taken for granted as true."""
    spec = contract()
    body = tuple(
        ir.Guard(s.kind, s.id, ir.TRUE)
        if isinstance(s, ir.Guard) and s.kind == "oblige" and s.id == id
        else s
        for s in spec.actions[action].body
    )
    assert body != spec.actions[action].body
    changed = ir.Action(action, spec.actions[action].by, spec.actions[action].params, body)
    return replace(spec, actions={**spec.actions, action: changed})


@pytest.mark.parametrize(("action", "id", "obligation"), FAULTS)
def test_without_the_promise_the_proof_fails(action: str, id: str, obligation: str) -> None:
    machine = weakened(action, id)
    (found,) = [o for o in obligations(machine, machine) if o.name == obligation]
    result = prove_one(found, 10_000)
    assert result.status == "failed"
    assert result.model


# (action, field, an update of it in place of the spec's own, a measure that then may grow)
STEPS_BACK: list[tuple[str, ir.Update, str]] = [
    (
        "defer",
        ir.Put("putting_off", (ir.Var("r", "Request"),), ir.Read("issued", ())),
        "jobs_waited_for",
    ),
    (
        "issue_store",
        ir.Put("job_number", (ir.Var("j", "Job"),), ir.Lit(0)),
        "jobs_waited_for",
    ),
    (
        "waited",
        ir.Insert("unreported", (ir.Var("j", "Job"), ir.Var("w", "Worker"))),
        "reports_to_come",
    ),
    ("waited", ir.Insert("pending", (ir.Var("j", "Job"), ir.Var("w", "Worker"))), "copies_to_end"),
    ("end", ir.Discard("submitted", (ir.Var("j", "Job"), ir.Var("w", "Worker"))), "submissions"),
    ("fail", ir.Discard("landed", (ir.Any(), ir.Var("w", "Worker"))), "pieces_to_land"),
    ("ask", ir.Discard("spoiled", (ir.Var("r", "Request"), ir.Any())), "chunks_to_try"),
]


@pytest.mark.parametrize(("action", "update", "measure"), STEPS_BACK)
def test_a_step_back_is_no_progress(action: str, update: ir.Update, measure: str) -> None:
    spec = contract()
    changed = replace(spec.actions[action], body=(*spec.actions[action].body, update))
    machine = replace(spec, actions={**spec.actions, action: changed})
    (found,) = [
        o
        for o in obligations(machine, machine)
        if o.name.startswith(f"progress/{action}/{measure}")
    ]
    assert prove_one(found, 10_000).status == "failed"
