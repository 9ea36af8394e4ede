"""The fields that the production scheduler and its worker add to the contract."""

from __future__ import annotations

from kvproof.spec.contract import Contract
from kvproof.spec.contract.sorts import Block, Job, Residency, Worker
from kvproof.spec.lang import map1, relation2, scalar


class MechanismState(Contract):
    """Each field names the obligation that it exists for."""

    fence = relation2(Block, Job, "a store that has not completed reads the block (M3)", "S3")
    to_complete = relation2(Job, Residency, "the store has yet to be completed for the chunk", "P4")
    to_unpin = relation2(Job, Residency, "the load has yet to let go of the chunk", "P4")
    decided_in = scalar("the last window whose flush set is decided (M5)", "S3")
    cleared_to = map1(
        Worker,
        int,
        "the last step for which it has waited for the flushed jobs of earlier steps (M7)",
        "S7",
        total=True,
    )
    waited_to = map1(
        Worker, int, "the last step whose whole flush set it has waited for (M5)", "S3", total=True
    )
