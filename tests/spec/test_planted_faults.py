"""The proof notices: each planted fault weakens one promise, and a named obligation fails."""

from __future__ import annotations

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
    ("pin", "S5", "conclude/pin/3"),
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
    return ir.Machine(
        spec.name, spec.sorts, spec.fields, {**spec.actions, action: changed}, spec.invariants
    )


@pytest.mark.parametrize(("action", "id", "obligation"), FAULTS)
def test_without_the_promise_the_proof_fails(action: str, id: str, obligation: str) -> None:
    machine = weakened(action, id)
    (found,) = [o for o in obligations(machine, machine) if o.name == obligation]
    result = prove_one(found, 10_000)
    assert result.status == "failed"
    assert result.model
