"""A finding: the first obligation that a history breaks, and everything needed to understand it."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

MISSED = "missed"
"""The severity of findings that stop nothing: work or room is wasted, or a hit is lost."""


class Signature(NamedTuple):
    """What makes two findings the same fault.

    ``where`` is the place of an exception, else the explanation, if there is one; ``kind`` are a
    few circumstances, from coarse to fine (see ``monitor/signature.py``).
    """

    id: str
    action: str
    where: str = ""
    kind: str = ""

    def covers(self, other: Signature) -> bool:
        """Whether ``other`` is this one, or this one with more circumstances."""
        return self[:3] == other[:3] and (
            self.kind in ("", other.kind) or other.kind.startswith(f"{self.kind}, ")
        )

    def __str__(self) -> str:
        """``ID ACTION [WHERE] ["(" KIND ")"]``, as allow files have it."""
        kind = f"({self.kind})" if self.kind else ""
        return " ".join(part for part in (*self[:3], kind) if part)


def parse_signature(text: str) -> Signature | None:
    """The signature that ``str`` wrote so, or None."""
    head, opened, kind = text.strip().partition("(")
    words = head.split(maxsplit=2)
    if len(words) < 2 or (opened and not kind.endswith(")")):
        return None
    return Signature(words[0], words[1], "".join(words[2:]).strip(), kind.removesuffix(")").strip())


class Finding(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The verdict on a history.

    ``id`` and ``sentence`` are the invariant's (INVARIANTS in the ledger); ``culprit`` is
    "scheduler", "engine", "worker", "tier" or "harness"; ``severity`` is "unsafe" or "missed";
    ``index`` counts events from 0 (the header not included); ``action`` is the reference's action;
    ``facts`` are the ones that differ, in the spec's own names; ``explained_by`` is the id whose
    state the model was in when a call raised, or P13 when the request's id is used again; ``kind``
    are the circumstances that tell faults apart which break the same guard.
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
    kind: str = ""

    def signature(self) -> Signature:
        """Id, action, exception site or explanation, and kind."""
        where = self.facts.get("where", "") or (self.explained_by or "")
        return Signature(self.id, self.action, where, self.kind)
