"""The ledger: for every invariant of the contract the evidence that there is, and no more."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata

import msgspec

from kvproof.conformance.monitor.finding import Finding
from kvproof.conformance.report import trust
from kvproof.conformance.report.evidence import Campaign, Case, Count, Evidence, Judged, Proofs
from kvproof.spec import ir
from kvproof.spec.contract import contract
from kvproof.spec.ids import CONTRACT

SCHEMA = 1


class Asked(msgspec.Struct, frozen=True):
    """How often the guards of one id were asked on one target.

    ``runs`` are examples of campaigns, or traces; ``length`` their moves, or events.
    """

    target: str
    asked: int
    runs: int
    length: int


class Breaking(msgspec.Struct, frozen=True):
    """A target that breaks an id: the shortest history for it, and how many there are.

    ``case`` is the number of that history in the ledger. ``stored`` says that only the finding
    beside it says so, since there was no trace to judge anew.
    """

    target: str
    case: int
    length: int
    unit: str
    histories: int
    stored: bool


class Row(msgspec.Struct, frozen=True):
    """One id. ``proved`` and ``generated`` are None where no proof was run or none serves the id;
    ``invariant`` says whether the contract states one under this id: without, what is proved for
    the id is that its guards and updates stand where the spec puts them.
    ``guarded`` says whether the contract has a guard of this id that could be asked at all, and
    ``forbidden`` that to be asked is to be broken: its guards forbid a move outright.
    """

    id: str
    name: str
    sentence: str
    severity: str
    invariant: bool
    guarded: bool
    forbidden: bool
    proved: Count | None
    generated: Count | None
    fuzzed: list[Asked]
    replayed: list[Asked]
    broken: list[Breaking]


class Ledger(msgspec.Struct, frozen=True):
    """The whole ledger; ``kvproof report --json`` prints it.

    ``rows`` are the contract's ids in its own order, then those that only findings have (promises
    of the engine, the workers, the tier or the trace). ``cases`` are sorted as the rows are, the
    shortest first. ``notes`` say what evidence is absent.
    """

    schema: int
    written: str
    versions: dict[str, str]
    folders: list[str]
    spec: Proofs | None
    text: Proofs | None
    rows: list[Row]
    campaigns: list[Campaign]
    traces: list[Judged]
    cases: list[Case]
    notes: list[str]
    trust: list[trust.Trusted]

    @property
    def broken(self) -> list[Row]:
        """The rows that some target breaks."""
        return [row for row in self.rows if row.broken]


def assemble(evidence: Evidence, spec: Proofs | None, text: Proofs | None) -> Ledger:
    """Put the evidence in order."""
    order = {id: number for number, id in enumerate(CONTRACT)}

    def rank(case: Case) -> tuple[int, str, int, str]:
        id = case.finding.id if case.finding else ""
        return order.get(id, len(order)), id or "~", case.length[0], case.name

    cases = sorted(evidence.cases, key=rank)
    guards = [
        statement
        for action in contract().actions.values()
        for statement in action.body
        if isinstance(statement, ir.Guard)
    ]
    stated = {invariant.id for invariant in contract().invariants}
    guarded = {guard.id for guard in guards}
    forbidden = guarded - {guard.id for guard in guards if guard.cond != ir.FALSE}
    rows = [
        Row(
            id=known.id,
            name=known.name,
            sentence=known.sentence,
            severity=known.severity,
            invariant=known.id in stated,
            guarded=known.id in guarded,
            forbidden=known.id in forbidden,
            proved=spec.by_id.get(known.id) if spec else None,
            generated=text.by_id.get(known.id) if text else None,
            fuzzed=_fuzzed(known.id, evidence.campaigns),
            replayed=_replayed(known.id, evidence.traces),
            broken=_broken(known.id, cases),
        )
        for known in CONTRACT.values()
    ]
    others = {f.id: f for case in cases for f in case.findings if f.id not in CONTRACT}
    rows += [_other(finding, cases) for finding in others.values()]
    return Ledger(
        schema=SCHEMA,
        written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        versions={
            "kvproof": metadata.version("kvproof"),
            "z3": metadata.version("z3-solver"),
            "python": platform.python_version(),
        },
        folders=evidence.folders,
        spec=spec,
        text=text,
        rows=rows,
        campaigns=evidence.campaigns,
        traces=evidence.traces,
        cases=cases,
        notes=_absent(evidence, spec, text),
        trust=list(trust.BASE),
    )


def _other(finding: Finding, cases: Sequence[Case]) -> Row:
    """A row for an id that the contract does not list."""
    return Row(
        id=finding.id,
        name=f"promise of the {finding.culprit}",
        sentence=finding.sentence,
        severity=finding.severity,
        invariant=False,
        guarded=True,
        forbidden=False,
        proved=None,
        generated=None,
        fuzzed=[],
        replayed=[],
        broken=_broken(finding.id, cases),
    )


def _fuzzed(id: str, campaigns: Sequence[Campaign]) -> list[Asked]:
    found = []
    for target in dict.fromkeys(c.target for c in campaigns):
        on = [c for c in campaigns if c.target == target]
        asked = sum(c.coverage.reference.get(f"guard {id}", 0) for c in on)
        found.append(Asked(target, asked, sum(c.examples for c in on), sum(c.steps for c in on)))
    return found


def _replayed(id: str, traces: Sequence[Judged]) -> list[Asked]:
    found = []
    for target in dict.fromkeys(t.target for t in traces):
        on = [t for t in traces if t.target == target]
        asked = sum(t.coverage.get(f"guard {id}", 0) for t in on)
        found.append(Asked(target, asked, len(on), sum(t.events for t in on)))
    return found


def _broken(id: str, cases: Sequence[Case]) -> list[Breaking]:
    found: dict[str, list[int]] = {}
    for number, case in enumerate(cases):
        if any(finding.id == id for finding in case.findings):
            found.setdefault(case.target, []).append(number)
    return [
        Breaking(
            target=target,
            case=numbers[0],
            length=cases[numbers[0]].length[0],
            unit=cases[numbers[0]].length[1],
            histories=len(numbers),
            stored=cases[numbers[0]].judged is None,
        )
        for target, numbers in found.items()
    ]


def _absent(evidence: Evidence, spec: Proofs | None, text: Proofs | None) -> list[str]:
    notes = []
    if spec is None or text is None:
        notes.append("The proofs were not run for this ledger.")
    if not evidence.folders:
        notes.append("No folder of evidence was given: nothing is said of any scheduler.")
        return notes
    if not evidence.campaigns:
        notes.append("No campaign's result was found: how much was fuzzed is not known.")
    if not evidence.traces:
        notes.append("No trace was found: nothing was judged anew.")
    return notes
