"""Known kinds of faults, recognised in whatever release, history and configuration they show.

Each was reported in public for some release, or found in one. A recogniser looks at the verdict, at
its facts and at the geometry of the history, never at a release's name: which releases have a kind
of fault is what a matrix is to tell.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from kvproof.conformance.engines.base import History, ResetCache, Step
from kvproof.conformance.monitor.finding import Finding

Recogniser = Callable[[Finding, History], bool]


class Case(msgspec.Struct, frozen=True):
    """A kind of fault: ``title`` says what goes wrong."""

    id: str
    title: str
    recognise: Recogniser


def recognised(finding: Finding, history: History) -> list[str]:
    """The ids of the cases that a finding is one of; hardly ever more than one."""
    return [case.id for case in CASES if case.recognise(finding, history)]


def _is(finding: Finding, id: str) -> bool:
    """The id itself, broken or in the way of a call that raised; not by way of a re-used name."""
    explained = (id, None) if finding.id == id else (id,) if finding.id == "P11" else ()
    return finding.explained_by in explained


def _circumstances(finding: Finding) -> list[str]:
    return finding.kind.split(", ")


def _windowed(finding: Finding, history: History) -> bool:
    """Whether it is about a window group; where nobody says which group, whether there is one."""
    if finding.kind.partition(",")[0] in ("full", "recurrent", "chunked"):
        return False
    return any(group.kind == "window" for group in history.setup.groups)


def _stale_window_blocks(finding: Finding, history: History) -> bool:
    told = _circumstances(finding)
    late = "at the end" in told or "again" in told
    return _is(finding, "S1") and "slid" in told and not late and _windowed(finding, history)


def _load_while_busy(finding: Finding, _history: History) -> bool:
    return _is(finding, "M1")


def _gone_before_it_ran(finding: Finding, _history: History) -> bool:
    return _is(finding, "P7") and "never scheduled" in finding.facts


def _job_of_before_a_reset(finding: Finding, history: History) -> bool:
    waits = _is(finding, "L1") and _resets(history) > 0
    return waits or _is(finding, "M2")


def _verified_less_than_loaded(finding: Finding, history: History) -> bool:
    return _is(finding, "S5") and _windowed(finding, history)


def _packed_early(finding: Finding, history: History) -> bool:
    several = history.setup.blocks_per_chunk > 1
    return _is(finding, "S4") and finding.action == "plan_store" and several


def _second_reset(finding: Finding, history: History) -> bool:
    return _is(finding, "P10") and _resets_in_a_row(history) > 1


def _filled_by_another_connector(finding: Finding, _history: History) -> bool:
    return _is(finding, "S3") and finding.event == "filled"


def _irrelevant_wait(finding: Finding, history: History) -> bool:
    otherwise = {"forbidden", "drafts", "in part", "prefix", "one more"} & set(
        _circumstances(finding)
    )
    return _is(finding, "L3") and _windowed(finding, history) and not otherwise


def _inexact_state(finding: Finding, _history: History) -> bool:
    return _is(finding, "S9")


def _resets(history: History) -> int:
    return sum(isinstance(move, ResetCache) and move.connector for move in history.moves)


def _resets_in_a_row(history: History) -> int:
    """The most resets of the tier that have no step between them."""
    most = row = 0
    for move in history.moves:
        if isinstance(move, ResetCache):
            row += move.connector
        elif isinstance(move, Step):
            row = 0
        most = max(most, row)
    return most


CASES = (
    Case(
        "K1",
        "a store reads blocks that slid out of a window and were handed out again",
        _stale_window_blocks,
    ),
    Case(
        "K2",
        "a request is given blocks to load while a store of its own is in flight",
        _load_while_busy,
    ),
    Case(
        "K3",
        "a request that was never scheduled ends, and is offered for storing",
        _gone_before_it_ran,
    ),
    Case("K4", "a job from before a reset is named after it", _job_of_before_a_reset),
    Case("K5", "a load takes chunks of a window that no lookup saw", _verified_less_than_loaded),
    Case("K6", "the blocks of a chunk are stored one place early", _packed_early),
    Case("K7", "a second reset comes before the first one is worked off", _second_reset),
    Case(
        "K8",
        "blocks that another connector fills are not flushed before",
        _filled_by_another_connector,
    ),
    Case("K9", "a lookup waits for a chunk that cannot enlarge its answer", _irrelevant_wait),
    Case(
        "K10", "the state that is loaded is not the one that the engine is told of", _inexact_state
    ),
)
