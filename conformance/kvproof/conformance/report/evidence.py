"""What the ledger is made of: proofs, campaigns, judged traces and broken histories.

Each piece says only what was run. What was not run is ``None`` or absent, never a zero.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from kvproof.conformance.engines.base import History
from kvproof.conformance.monitor.finding import Finding

if TYPE_CHECKING:
    from kvproof.conformance.fuzz.campaign import CampaignResult

CAMPAIGN = ".campaign.json"
HISTORY = ".history.json"
FINDING = ".finding.json"
TRACE = ".jsonl"


class Count(msgspec.Struct, frozen=True):
    """Obligations that serve one invariant; ``slowest`` took ``worst_seconds``."""

    proved: int
    total: int
    worst_seconds: float
    slowest: str


class Proofs(msgspec.Struct, frozen=True):
    """One run of the prover.

    ``by_id`` counts per invariant, ``unserving`` counts the obligations that serve no single one;
    together they are ``overall``. ``unproved`` names every obligation that is not proved, as
    (name, status).
    """

    generated: bool
    seconds: float
    overall: Count
    by_id: dict[str, Count]
    unserving: Count | None
    unproved: list[tuple[str, str]]


class CampaignCoverage(msgspec.Struct, frozen=True):
    """The part of a campaign's coverage that the ledger reads."""

    reference: dict[str, int] = {}
    never: list[str] = []


class CampaignFound(msgspec.Struct, frozen=True):
    """What the ledger needs of one distinct finding of a campaign."""

    finding: Finding


class Campaign(msgspec.Struct, frozen=True):
    """A fuzzing campaign as its ``*.campaign.json`` tells it.

    The file is a whole ``CampaignResult``; what the ledger does not need is skipped, and what an
    older file lacks has a default, so that results of other versions stay readable.
    """

    target: str
    seed: int
    examples: int
    steps: int
    events: int
    seconds: float
    found: list[CampaignFound] = []
    allowed: dict[str, int] = {}
    coverage: CampaignCoverage = CampaignCoverage()


class Judged(msgspec.Struct, frozen=True):
    """A trace that this version's monitor has just judged.

    ``events`` were judged: all of ``recorded``, or those up to the finding. ``coverage`` counts
    how often each action was made and each guard asked. ``missed`` are the findings that did not
    end the judging.
    """

    file: str
    target: str
    recorded: int
    events: int
    coverage: dict[str, int]
    finding: Finding | None
    missed: list[Finding] = []

    @property
    def findings(self) -> list[Finding]:
        """All of them, the unsafe one first."""
        return [*([self.finding] if self.finding else []), *self.missed]


class Case(msgspec.Struct, frozen=True):
    """A stored history, a trace that breaks something, or both.

    ``judged`` is this version's own verdict on the trace, ``stored`` the finding that lies beside
    it; either may be missing. ``files`` are the paths, by kind ("history", "trace", "finding").
    """

    name: str
    target: str
    files: dict[str, str]
    history: History | None
    judged: Judged | None
    stored: Finding | None

    @property
    def findings(self) -> list[Finding]:
        """The verdicts, the chief one first: today's where there is a trace to judge, else the
        stored one. Chief is what the history was stored for, then what is unsafe.
        """
        if self.judged is None:
            return [self.stored] if self.stored else []
        stored = self.stored.signature() if self.stored else None
        return sorted(self.judged.findings, key=lambda found: found.signature() != stored)

    @property
    def finding(self) -> Finding | None:
        """The chief verdict."""
        return next(iter(self.findings), None)

    @property
    def length(self) -> tuple[int, str]:
        """How long it is, in moves, or in events where nobody stored its moves."""
        if self.history is not None:
            return len(self.history.moves), "moves"
        return (self.judged.events, "events") if self.judged else (0, "events")


class Evidence(msgspec.Struct, frozen=True):
    """Everything that was found below some folders. ``traces`` holds every judged trace."""

    folders: list[str]
    campaigns: list[Campaign]
    traces: list[Judged]
    cases: list[Case]


def write_campaign(out: Path, result: CampaignResult) -> Path:
    """Leave a campaign's result in ``out``, where ``kvproof report --from`` finds it.

    One file for each target and seed: the same campaign run again replaces its former result.
    """
    name = result.target.replace(":", "-").replace("/", "-")
    path = out / f"{name}-seed{result.seed}{CAMPAIGN}"
    write_text(path, msgspec.json.format(msgspec.json.encode(result), indent=2).decode() + "\n")
    return path


def write_text(path: Path, text: str) -> None:
    """Write a file, whole or not at all (through a temporary neighbour)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".part")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
