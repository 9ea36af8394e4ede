"""A finding: the first obligation that a history breaks, and everything needed to understand it."""

from __future__ import annotations

import msgspec


class Finding(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The verdict on a history.

    ``id`` and ``sentence`` are the invariant's (INVARIANTS in the ledger); ``culprit`` is
    "scheduler", "engine", "worker", "tier" or "harness"; ``severity`` is "unsafe" or "missed";
    ``index`` counts events from 0 (the header not included); ``action`` is the reference's action;
    ``facts`` are the ones that differ, in the spec's own names; ``explained_by`` is the id whose
    state the model was in when a call raised, or P13 when a re-used request id is in play.
    """

    id: str
    sentence: str
    culprit: str
    severity: str
    index: int
    step: int
    action: str
    event: str
    facts: dict[str, str]
    explained_by: str | None = None

    def signature(self) -> tuple[str, str, str]:
        """What makes two findings the same fault: id, action, and explanation or exception site."""
        return (self.id, self.action, self.facts.get("where", "") or (self.explained_by or ""))
