"""The monitor: feeds a trace to the reference and stops at the first promise that is broken.

A guard of class *missed* (work or room wasted, a hit lost) stops nothing: what follows it is as
sound as before, so the finding is noted and the run goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping as MappingType

from kvproof.conformance.monitor.about import Elements
from kvproof.conformance.monitor.diagnosis import ended_unscheduled, explain, ids_are_confused
from kvproof.conformance.monitor.facts import Facts
from kvproof.conformance.monitor.finding import Finding
from kvproof.conformance.monitor.job_readers import Contradiction
from kvproof.conformance.monitor.mapping import Mapping
from kvproof.conformance.monitor.seen import seen
from kvproof.conformance.monitor.signature import Circumstances
from kvproof.conformance.monitor.world import World
from kvproof.conformance.trace.events import (
    AnyEvent,
    Drained,
    Event,
    Header,
    Raced,
    Raised,
    Stalled,
    WrongBytes,
)
from kvproof.model.broken import Broken
from kvproof.spec import ir
from kvproof.spec.contract import contract
from kvproof.spec.ids import CONTRACT, EXPLANATIONS


class Monitor:
    """Judges one run. ``feed`` it events in order; after an unsafe finding it takes no more.

    ``missed`` are the findings of that class so far, the first of each signature.

    monitor = Monitor(header)
    for event in events:
        if finding := monitor.feed(event):
            break
    """

    def __init__(self, header: Header) -> None:
        self.world = World(header)
        self.mapping = Mapping(self.world)
        self.circumstances = Circumstances(self.world)
        self.events = 0
        self.finding: Finding | None = None
        self.missed: list[Finding] = []
        self._actions: dict[str, Callable[..., None]] = {
            name: getattr(self.world.reference, name) for name in contract().actions
        }
        self._calls: dict[str, int] = dict.fromkeys(self._actions, 0)

    def feed(self, event: AnyEvent) -> Finding | None:
        """Judge one event; the unsafe finding that it is, if it is one."""
        if self.finding is not None:
            return self.finding
        if isinstance(event, (Raced, WrongBytes)):
            self.finding = seen(event, self.events)
            self.events += 1
            return self.finding
        actions, calls = self._actions, self._calls
        try:
            self.circumstances.see(event)
            for action, params in self.mapping.moves(event):
                calls[action] += 1
                try:
                    actions[action](*params)
                except Broken as broken:
                    if not _is_missed(broken):
                        raise
                    self._note(self._finding(event, broken))
        except Broken as broken:
            self.finding = self._finding(event, broken)
        except Contradiction as contradiction:
            self.finding = self._harness(event, str(contradiction))
        except (KeyError, IndexError) as missing:
            self.finding = self._harness(event, f"it names something unknown: {missing}")
        self.events += 1
        return self.finding

    def coverage(self) -> MappingType[str, int]:
        """How often each action of the reference was tried, and each guard's id was asked.

        Actions are listed by name, ids as ``guard S3``; what never came is there with 0.
        """
        counts: dict[str, int] = {}
        for name, action in contract().actions.items():
            counts[name] = self._calls[name]
            for statement in action.body:
                if isinstance(statement, ir.Guard) and statement.id:
                    key = f"guard {statement.id}"
                    counts[key] = counts.get(key, 0) + self._calls[name]
        return counts

    def _note(self, finding: Finding) -> None:
        """Keep the first finding of each signature."""
        if finding.signature() not in {known.signature() for known in self.missed}:
            self.missed.append(finding)

    def _finding(self, event: Event, broken: Broken) -> Finding:
        action = contract().actions[broken.action]
        known = CONTRACT.get(broken.id)
        culprit = {"assume": action.by, "oblige": "scheduler", "conclude": "harness"}[broken.kind]
        sentence = known.sentence if known else action.doc.splitlines()[0]
        if isinstance(event, Raised):
            mapping = self.mapping
            explained_by = explain(self.world, event, mapping.accepted, mapping.boundary)
            facts = {"call": event.call, "exception": event.exception, "where": event.where}
            if event.req:
                facts["request"] = event.req
            if explained_by:
                facts["because"] = EXPLANATIONS[explained_by]
            if explained_by == "P7" and (never := ended_unscheduled(self.world)):
                facts["never scheduled"] = ", ".join(never)
            kind = ""
        else:
            facts, elements = self._facts(broken)
            own = self.circumstances.requests(event, elements)
            # Only these events may be about requests that nobody names.
            told = own or isinstance(event, Drained | Stalled)
            confused = culprit == "scheduler" and told and ids_are_confused(self.world, own)
            explained_by = "P13" if confused else None
            kind = self.circumstances.kind(event, elements, broken.action)
        return Finding(
            id=broken.id or f"A-{broken.action}",
            sentence=sentence,
            culprit=culprit,
            severity=known.severity if known else "unsafe",
            index=self.events,
            step=event.step,
            action=broken.action,
            event=event.__struct_config__.tag or type(event).__name__,  # type: ignore[arg-type]
            facts=facts,
            explained_by=explained_by,
            kind=kind,
        )

    def _facts(self, broken: Broken) -> tuple[dict[str, str], Elements]:
        """The facts that make a guard false, and the elements that they are about."""
        facts = Facts(contract(), self.world)
        try:
            return facts.explain(broken.action, broken.index, broken.params), facts.elements
        except (KeyError, StopIteration):
            return {"parameters": ", ".join(map(str, broken.params))}, facts.elements

    def _harness(self, event: Event, why: str) -> Finding:
        return Finding(
            id="A-trace",
            sentence="A trace does not contradict itself.",
            culprit="harness",
            severity="unsafe",
            index=self.events,
            step=event.step,
            action="",
            event=str(event.__struct_config__.tag),
            facts={"contradiction": why},
        )


def _is_missed(broken: Broken) -> bool:
    """Whether a guard is of class *missed*; the spec sees to it that its action changes nothing."""
    return broken.id in CONTRACT and CONTRACT[broken.id].severity == "missed"
