"""Records the histories that the tests judge: ``python -m tests.conformance.corpus [--check]``.

Every trace that a test feeds to a monitor, and every move that it makes on a reference of its own,
is kept with the test's name and with what was found. Nothing is declared twice: a test that is
added to the suite is a history of the corpus the next time that it is written.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kvproof.conformance.monitor.monitor import Monitor
from kvproof.conformance.monitor.world import World
from kvproof.conformance.mutation import histories
from kvproof.conformance.mutation.histories import CORPUS, Play, Trace, dumps, pack
from kvproof.conformance.trace.events import AnyEvent
from kvproof.model.contract import Contract
from kvproof.spec.contract import contract

ROOT = Path(__file__).parents[2]
TELLERS = ("tests.conformance.story", "tests.model.scene")
"""What tests tell histories with: the files that import one of these are recorded."""

LONGEST = 400
"""Events of a trace that is kept: every mutant of its actions is tried on it."""


def test_files() -> list[str]:
    """The files whose tests tell histories, as pytest is given them."""
    found = (
        path
        for house in ("conformance", "model")
        for path in (ROOT / "tests" / house).glob("test_*.py")
    )
    return sorted(
        str(path.relative_to(ROOT))
        for path in found
        if any(f"from {teller} import" in path.read_text(encoding="utf-8") for teller in TELLERS)
    )


class Recorder:
    """A pytest plugin that keeps what each passing test judged."""

    def __init__(self) -> None:
        self.traces: list[Trace] = []
        self.plays: list[Play] = []
        self.failed: list[str] = []
        self._fed: dict[Monitor, list[AnyEvent]] = {}
        self._moved: dict[Contract, list[tuple[str, list[int]]]] = {}
        self._judging: set[Contract] = set()

    # --- watching ---

    def pytest_configure(self) -> None:
        self._committed: list[tuple[type | ModuleType, str, Any]] = []
        self._watch(Monitor, "feed", self._feed)
        self._watch(World, "__init__", self._new_world)
        self._watch(histories, "alter", self._alter)
        for action in contract().actions:
            self._watch(Contract, action, self._move(action))

    def pytest_unconfigure(self) -> None:
        for owner, name, original in self._committed:
            setattr(owner, name, original)

    def _watch(
        self, owner: type | ModuleType, name: str, watcher: Callable[..., Callable[..., Any]]
    ) -> None:
        original = vars(owner)[name]
        self._committed.append((owner, name, original))
        setattr(owner, name, watcher(original))

    def _feed(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def feed(monitor: Monitor, event: AnyEvent) -> Any:
            if monitor.finding is None:
                self._fed.setdefault(monitor, []).append(event)
            return original(monitor, event)

        return feed

    def _new_world(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def init(world: World, *arguments: Any) -> None:
            original(world, *arguments)
            self._judging.add(world.reference)

        return init

    def _move(self, action: str) -> Callable[..., Callable[..., Any]]:
        def watcher(original: Callable[..., Any]) -> Callable[..., Any]:
            def move(reference: Contract, *params: int) -> None:
                if reference not in self._judging:
                    self._moved.setdefault(reference, []).append((action, list(params)))
                original(reference, *params)

            return move

        return watcher

    def _alter(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def alter(reference: Contract, change: str, *row: int) -> None:
            self._moved.setdefault(reference, []).append((change, list(row)))
            original(reference, change, *row)

        return alter

    # --- keeping ---

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)
        if report.when != "call":
            return
        if report.passed:
            for monitor, events in self._fed.items():
                findings = [(f.id, f.index) for f in monitor.missed]
                if monitor.finding is not None:
                    findings.append((monitor.finding.id, monitor.finding.index))
                self.traces.append(Trace(report.nodeid, monitor.world.header, events, findings))
            for reference, moves in self._moved.items():
                play = Play(
                    report.nodeid, len(reference.workers), attributes(reference, moves), moves, []
                )
                self.plays.append(play)
        for kept in (self._fed, self._moved, self._judging):
            kept.clear()


def attributes(
    reference: Contract, moves: list[tuple[str, list[int]]]
) -> dict[str, list[tuple[int, int]]]:
    """The rows of the attributes of everything that the moves speak of, at any remove."""
    machine = contract()
    todo = [
        (parameter.sort, value)
        for action, params in moves
        if action in machine.actions
        for parameter, value in zip(machine.actions[action].params, params, strict=True)
    ]
    rows: dict[str, dict[int, int]] = {}
    seen: set[tuple[str, int]] = set()
    while todo:
        sort, element = todo.pop()
        if (sort, element) in seen:
            continue
        seen.add((sort, element))
        for field in machine.fields.values():
            if field.kind != "attribute" or field.args != (sort,):
                continue
            table = getattr(reference, field.name)
            if element in table:
                rows.setdefault(field.name, {})[element] = int(table[element])
                todo.append((field.value, int(table[element])))
    return {name: sorted(found.items()) for name, found in sorted(rows.items())}


def longest(traces: list[Trace]) -> list[Trace]:
    """The traces without those that another one continues: what holds of it holds of them."""
    by_header: dict[str, list[Trace]] = {}
    for trace in traces:
        by_header.setdefault(repr(trace.header), []).append(trace)
    kept = []
    for trace in traces:
        n = len(trace.events)
        others = (o for o in by_header[repr(trace.header)] if o is not trace)
        continued = (
            len(other.events) > n or (len(other.events) == n and other in kept)
            for other in others
            if other.events[:n] == trace.events
        )
        if not any(continued):
            kept.append(trace)
    return kept


def recorded() -> tuple[bytes, list[str]]:
    """The corpus as it is to be committed, and the tests that failed."""
    recorder = Recorder()
    selection = "not vllm and not e2e and not gpu and not slow"
    quiet = ["-q", "--no-header", "--no-summary", "-p", "no:cacheprovider", "-p", "no:xdist"]
    pytest.main([*quiet, "-m", selection, f"--rootdir={ROOT}", *test_files()], [recorder])
    traces = longest([t for t in recorder.traces if len(t.events) <= LONGEST])
    plays: list[Play] = []
    for play in recorder.plays:
        findings, _ = play.judged()
        repeatable = Play(play.test, play.workers, play.attributes, play.moves, findings)
        same = (p for p in plays if (p.attributes, p.moves) == (play.attributes, play.moves))
        if not any(same):
            plays.append(repeatable)
    return dumps(pack(traces, plays)), recorder.failed


def main(arguments: list[str]) -> int:
    """Write the corpus, or with ``--check`` tell whether it is fresh; returns the exit code."""
    data, failed = recorded()
    for test in failed:
        print(f"left out, for it fails: {test}", file=sys.stderr)
    if "--check" not in arguments:
        CORPUS.parent.mkdir(exist_ok=True)
        CORPUS.write_bytes(data)
        return 1 if failed else 0
    if not CORPUS.exists() or CORPUS.read_bytes() != data:
        print(f"{CORPUS.name} is stale: run scripts/corpus", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
