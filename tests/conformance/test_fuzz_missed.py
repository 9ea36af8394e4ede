"""Findings that end no run: shrunk to what shows them, told after the unsafe ones."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from kvproof.conformance.engines.base import Add, ResetCache, Step
from kvproof.conformance.fuzz import campaign, outputs
from kvproof.conformance.fuzz.session import play
from kvproof.conformance.fuzz.shrink import MISSED_REPLAYS, shrink
from kvproof.conformance.monitor.finding import Finding, Signature
from kvproof.conformance.trace.events import AnyEvent, Arrive, Reset

from .fuzz_toy import ONE_GROUP, RaisedIsWrong, ToyTarget

WASTE = Signature("E6", "reset", "", "while one waits")
PLANTED = Signature("P11", "crash", "toy.py:1")


class ResetIsWaste(RaisedIsWrong):
    """Nothing raises, and to reset while a request lives is a waste of what it stored."""

    waiting = False

    def feed(self, event: AnyEvent) -> Finding | None:
        self.waiting |= isinstance(event, Arrive)
        if isinstance(event, Reset) and self.waiting and not self.missed:
            self.missed.append(
                Finding(
                    id="E6",
                    sentence="Nothing is wasted.",
                    culprit="scheduler",
                    severity="missed",
                    index=self._events,
                    step=event.step,
                    action="reset",
                    event="reset",
                    facts={},
                    kind="while one waits",
                )
            )
        return super().feed(event)


def run(out: Path, severity: str = "missed", max_examples: int = 60) -> campaign.CampaignResult:
    return campaign.run(
        ToyTarget(),
        seed=1,
        seconds=None,
        max_examples=max_examples,
        out=out,
        severity=severity,
        make_judge=ResetIsWaste,
    )


def test_a_missed_finding_is_shrunk_and_told_after_the_unsafe_one(tmp_path: Path) -> None:
    result = run(tmp_path, max_examples=400)
    assert [found.finding.signature() for found in result.found] == [PLANTED, WASTE]
    wasted = result.found[1]
    assert [type(move) for move in wasted.history.moves] == [Add, ResetCache]
    assert wasted.replays <= MISSED_REPLAYS
    assert result.again[str(WASTE)] > 10


def test_judged_for_unsafe_findings_alone_it_is_not_there(tmp_path: Path) -> None:
    result = run(tmp_path, "unsafe")
    assert [found for found in result.found if found.finding.severity == "missed"] == []
    assert str(WASTE) not in result.again


def test_an_allowed_one_is_counted(tmp_path: Path) -> None:
    result = campaign.run(
        ToyTarget(),
        seed=4,
        seconds=None,
        max_examples=60,
        out=tmp_path,
        allow={Signature("E6", "reset")},
        make_judge=ResetIsWaste,
    )
    assert "E6" not in {found.finding.id for found in result.found}
    assert result.allowed[str(WASTE)] > 10


MOVES = (Step("all"), Add("x", (1, 2), 3), ResetCache(), Step("all"), ResetCache(), Step("all"))


def test_a_session_goes_on_behind_it_unless_told_to_stop_there() -> None:
    whole = play(ToyTarget(), ONE_GROUP, MOVES, ResetIsWaste)
    assert whole.finding is None
    assert [one.signature() for one in whole.findings()] == [WASTE]
    assert whole.findings("unsafe") == []
    assert len(whole.moves) == len(MOVES)
    cut = play(ToyTarget(), ONE_GROUP, MOVES, ResetIsWaste, until=WASTE)
    assert cut.moves == list(MOVES[:3])


def test_shrinking_begins_where_it_shows() -> None:
    session = play(ToyTarget(), ONE_GROUP, MOVES, ResetIsWaste)
    (finding,) = session.findings()
    unshrunk = shrink(ToyTarget(), session, finding=finding, make_judge=ResetIsWaste, max_replays=0)
    assert [type(move) for move in unshrunk.history.moves] == [Step, Add, ResetCache]
    shrunk = shrink(ToyTarget(), session, finding=finding, make_judge=ResetIsWaste)
    assert shrunk.history.moves == (Add("a", (1,), 1), ResetCache())
    assert shrunk.finding.signature() == WASTE


def test_its_files_are_those_of_any_finding_but_for_the_test(tmp_path: Path) -> None:
    session = play(ToyTarget(), ONE_GROUP, MOVES, ResetIsWaste)
    paths = outputs.write(tmp_path, ToyTarget(), session.history(), ResetIsWaste, WASTE)
    assert ["".join(path.suffixes) for path in paths] == [
        ".jsonl",
        ".history.json",
        ".finding.json",
        ".txt",
    ]
    assert msgspec.json.decode(paths[2].read_bytes(), type=Finding).signature() == WASTE
    text = paths[3].read_text()
    assert "broken by the scheduler (missed)" in text
    assert "kind: while one waits" in text
    assert "no stand-alone test: nothing is wrong with any byte" in text


def test_two_findings_of_one_history_have_names_of_their_own(tmp_path: Path) -> None:
    session = play(ToyTarget(), ONE_GROUP, MOVES, ResetIsWaste)
    (finding,) = session.findings()
    other = msgspec.structs.replace(finding, kind="")
    history = session.history()
    assert outputs.name_of(history, finding) != outputs.name_of(history, other)


def test_a_signature_that_the_history_does_not_break_is_not_written(tmp_path: Path) -> None:
    history = play(ToyTarget(), ONE_GROUP, MOVES, ResetIsWaste).history()
    with pytest.raises(ValueError, match="does not break that"):
        outputs.write(tmp_path, ToyTarget(), history, ResetIsWaste, PLANTED)


def test_a_signature_covers_what_is_more_specific() -> None:
    window = Signature("S1", "plan_store", "", "window")
    assert Signature("S1", "plan_store").covers(window)
    assert window.covers(window)
    assert window.covers(window._replace(kind="window, slid"))
    assert not window.covers(window._replace(kind="windowed"))
    assert not window.covers(Signature("S1", "plan_store"))
    assert not window.covers(window._replace(where="P13"))
