"""The page needs nothing beside it, holds its histories as data, and films tell what changed."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kvproof.conformance.monitor.monitor import Monitor
from kvproof.conformance.report import ledger, page, sources
from kvproof.conformance.report.film import BOARD, EVENTS_KEPT, Change, Film, shoot, table
from kvproof.conformance.report.names import Shown
from kvproof.conformance.report.narrate import LANES, LONGEST, narrate
from kvproof.conformance.trace import events as ev
from kvproof.spec.contract import contract
from kvproof.spec.ids import CONTRACT
from tests.conformance import report_folder
from tests.conformance.story import Story
from tests.conformance.test_monitor import eventful

HOSTILE = "</script><script>alert('&')</script>#0"


class Reader(HTMLParser):
    """Collects ids, the attributes that could load something, and embedded data."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.references: list[str] = []
        self.data: dict[str, Any] = {}
        self._open: str | None = None
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        if given.get("id"):
            self.ids.append(str(given["id"]))
        self.references += [str(given[a]) for a in ("src", "href", "action") if a in given]
        self._open = given.get("id") if given.get("type") == "application/json" else None

    def handle_data(self, data: str) -> None:
        if self._open:
            self.data[self._open] = json.loads(data)
            self._open = None


def drawn(folder: Path) -> str:
    return page.render(ledger.assemble(sources.gather([folder]), None, None))


@pytest.fixture
def html(tmp_path: Path) -> str:
    return drawn(report_folder.fill(tmp_path))


def test_nothing_outside_the_page_is_named(html: str) -> None:
    read = Reader(html)
    assert [r for r in read.references if not r.startswith("#")] == []
    assert {r.removeprefix("#") for r in read.references} <= set(read.ids)
    assert not re.search(r"https?:|url\(|@import|import\(|fetch\(", html)
    assert {"link", "img", "iframe", "object", "base"}.isdisjoint(read.tags)
    assert "default-src 'none'" in html


def test_the_ids_of_the_contract_are_anchors_in_its_order(html: str) -> None:
    assert [id for id in Reader(html).ids if id in CONTRACT] == list(CONTRACT)


def test_the_history_is_embedded_as_it_was_filmed(html: str) -> None:
    story = report_folder.overtaken()
    finding = story.finding()
    assert finding is not None
    film = shoot(story.header, story.events[: finding.index + 1])
    assert Reader(html).data["film-0"] == msgspec.to_builtins(film)
    assert 'data-breaks="S3"' in html


def test_the_facts_of_the_finding_are_on_the_page_without_scripts(html: str) -> None:
    finding = report_folder.overtaken().finding()
    assert finding is not None and finding.facts
    for fact, value in finding.facts.items():
        assert f'<tr><th scope="row">{fact}</th><td>{value}</td></tr>' in html


def test_a_name_cannot_end_the_script_that_holds_it(tmp_path: Path) -> None:
    report_folder.write(tmp_path, report_folder.overtaken(HOSTILE), "hostile")
    html = drawn(tmp_path)
    assert "<script>alert" not in html
    read = Reader(html)
    assert read.tags.count("script") == 3
    assert read.data["film-0"]["frames"][0]["text"].startswith(HOSTILE)


def test_embedded_json_has_no_character_that_html_could_take_for_its_own() -> None:
    value = {"a": "</script><!-- & \u2028\u2029"}
    embedded = page.embed(value)
    assert not re.search("[<>&\u2028\u2029]", embedded)
    assert json.loads(embedded) == value


def test_absent_evidence_is_shown_as_absent(tmp_path: Path) -> None:
    html = drawn(tmp_path)
    assert html.count("not run") >= 2 * len(CONTRACT)
    assert "none found" not in html
    assert "No history was found" in html
    assert "No campaign&#39;s result was found: how much was fuzzed is not known." in html


def test_a_long_trace_is_cut_and_says_so(tmp_path: Path) -> None:
    story = report_folder.overtaken()
    long = Story(events=list(story.events))
    for _ in range(EVENTS_KEPT):
        long.events.insert(0, ev.Touch(1, ev.SCHEDULER_RANK, "a#0", []))
    long.emit(ev.Touch(9, ev.SCHEDULER_RANK, "a#0", []))
    report_folder.write(tmp_path, long, "long")
    html = drawn(tmp_path)
    judged = len(story.events) + EVENTS_KEPT
    assert f"The first {judged - EVENTS_KEPT} of {judged} events are left out here." in html
    assert "The trace goes on for 1 events after the finding." in html
    assert len(Reader(html).data["film-0"]["frames"]) == EVENTS_KEPT


def test_histories_beyond_the_page_s_room_are_listed_without_a_stepper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report_folder.fill(tmp_path)
    monkeypatch.setattr(page, "FRAMES_IN_ALL", 5)
    html = drawn(tmp_path)
    assert "This page already shows 5 events step by step: this one is left out." in html
    assert "film-0" not in html


# --- films ---


def replayed(film: Film) -> dict[str, dict[tuple[str, ...], str]]:
    """The facts after the last frame, from the opening and the changes alone.

    A cut film knows only the board's fields from before the cut.
    """
    facts: dict[str, dict[tuple[str, ...], str]] = {}

    def apply(change: Change) -> None:
        rows = facts.setdefault(change.field, {})
        if change.op == "-":
            assert tuple(change.args) in rows or change.field not in BOARD
            rows.pop(tuple(change.args), None)
        else:
            rows[tuple(change.args)] = change.value

    for change in [*film.opening, *(c for frame in film.frames for c in frame.changes)]:
        apply(change)
    return {field: rows for field, rows in facts.items() if rows}


def held(story: Story, fields: frozenset[str]) -> dict[str, dict[tuple[str, ...], str]]:
    """The same facts, as the reference has them at the end of the story."""
    monitor = Monitor(story.header)
    for event in story.events:
        monitor.feed(event)
    shown = Shown(monitor.world)
    declared = contract().fields
    return {
        field: {
            tuple(shown.row(field, key)): ""
            if declared[field].kind == "relation"
            else shown.value(field, value)
            for key, value in rows.items()
        }
        for field in fields
        if (rows := table(monitor.world, field))
    }


@pytest.mark.parametrize("keep", [1, 7, 30, 10_000])
def test_the_board_can_be_replayed_from_a_film_however_it_was_cut(keep: int) -> None:
    for story in (eventful(), report_folder.innocent()):
        film = shoot(story.header, story.events, keep)
        facts = {field: rows for field, rows in replayed(film).items() if field in BOARD}
        assert facts == held(story, BOARD)


def test_a_whole_film_tells_every_fact() -> None:
    story = report_folder.innocent()
    film = shoot(story.header, story.events)
    assert all(frame.changes_left_out == 0 for frame in film.frames)
    written = frozenset(c.field for frame in film.frames for c in frame.changes)
    changed = replayed(film)
    assert changed == {f: rows for f, rows in held(story, written).items() if f in changed}
    assert {"written", "settled", "placed", "now", "resident"} <= written


def test_the_last_move_of_a_film_is_the_one_that_breaks() -> None:
    story = report_folder.overtaken()
    finding = story.finding()
    assert finding is not None
    film = shoot(story.header, story.events[: finding.index + 1])
    assert film.frames[-1].index == finding.index
    assert film.frames[-1].moves[-1].startswith(f"{finding.action}(")


def test_contents_are_named_after_the_tokens_of_a_request() -> None:
    story = report_folder.innocent()
    film = shoot(story.header, story.events)
    forward = next(f for f in film.frames if f.kind == "forward" and f.moves)
    assert forward.moves[-1] == "compute(rank 0, lease 1001 of block 2, a#0[:8])"


def test_every_kind_of_event_has_a_lane_and_words_of_its_own() -> None:
    for event in eventful().events:
        lane, text = narrate(event)
        assert lane in LANES
        assert 0 < len(text) <= LONGEST
        assert text != str(type(event).__struct_config__.tag)
