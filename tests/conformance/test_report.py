"""The ledger says what the evidence says, row by row, and refuses evidence that is broken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kvproof.conformance.report import ledger, proofs, sources, trust
from kvproof.conformance.report.evidence import Evidence
from kvproof.conformance.trace import codec
from kvproof.spec.ids import CONTRACT
from kvproof.spec.prove import ObligationResult, prove_all
from tests.conformance import report_folder

Kvproof = Callable[..., Any]
Refuses = Callable[..., str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    evidence = tmp_path / "evidence"
    evidence.mkdir()
    return report_folder.fill(evidence)


@pytest.fixture
def told(kvproof: Kvproof, folder: Path, tmp_path: Path) -> dict[str, Any]:
    """The ledger of the folder, as ``--json`` prints it."""
    ended = kvproof(
        "report", "--no-prove", "--json", "--from", folder, "--out", tmp_path / "l.html"
    )
    assert ended.code == 0
    document: dict[str, Any] = ended.json()
    assert document["file"] == str(tmp_path / "l.html")
    found: dict[str, Any] = document["ledger"]
    return found


def row(told: dict[str, Any], id: str) -> dict[str, Any]:
    found: dict[str, Any] = next(r for r in told["rows"] if r["id"] == id)
    return found


def test_the_rows_are_the_contract_s_ids_in_its_order(told: dict[str, Any]) -> None:
    assert [(r["id"], r["name"], r["sentence"], r["severity"]) for r in told["rows"]] == [
        (i.id, i.name, i.sentence, i.severity) for i in CONTRACT.values()
    ]


def test_the_json_document_is_a_ledger(told: dict[str, Any]) -> None:
    assert told["schema"] == ledger.SCHEMA
    again = msgspec.json.encode(msgspec.convert(told, ledger.Ledger))
    assert msgspec.json.decode(again) == told


def test_a_target_that_breaks_an_id_is_named_with_its_shortest_history(
    told: dict[str, Any], folder: Path
) -> None:
    (broken,) = row(told, "S3")["broken"]
    assert (broken["target"], broken["length"], broken["unit"]) == ("story", 3, "moves")
    assert told["cases"][broken["case"]]["files"]["trace"] == str(folder / "S3-12345678.jsonl")
    assert [r["id"] for r in told["rows"] if r["broken"]] == ["S3"]


def test_of_two_histories_the_shorter_is_linked(folder: Path) -> None:
    longer = msgspec.structs.replace(report_folder.HISTORY, moves=report_folder.HISTORY.moves * 2)
    report_folder.write(folder, report_folder.overtaken("c#0", "d#0"), "A-first", longer)
    made = ledger.assemble(sources.gather([folder]), None, None)
    (broken,) = next(r for r in made.rows if r.id == "S3").broken
    assert (broken.length, broken.histories) == (3, 2)


def test_what_a_campaign_and_traces_asked_is_summed(told: dict[str, Any]) -> None:
    assert row(told, "S3")["fuzzed"] == [
        {"target": "story", "asked": 41, "runs": 12, "length": 345}
    ]
    assert row(told, "S5")["fuzzed"][0]["asked"] == 0
    (replayed,) = row(told, "S3")["replayed"]
    events = [t["events"] for t in told["traces"]]
    asked = [t["coverage"]["guard S3"] for t in told["traces"]]
    assert (replayed["runs"], replayed["length"]) == (2, sum(events))
    assert replayed["asked"] == sum(asked) > 0


def test_traces_are_judged_as_check_trace_judges_them(
    told: dict[str, Any], kvproof: Kvproof
) -> None:
    for trace in told["traces"]:
        checked = kvproof("check-trace", trace["file"], "--json").json()
        assert (trace["finding"], trace["coverage"]) == (checked["finding"], checked["coverage"])


def test_absent_evidence_is_absent() -> None:
    made = ledger.assemble(Evidence([], [], [], []), None, None)
    assert all((r.proved, r.generated, r.broken) == (None, None, []) for r in made.rows)
    assert all(not r.fuzzed and not r.replayed for r in made.rows)
    assert made.notes == [
        "The proofs were not run for this ledger.",
        "No folder of evidence was given: nothing is said of any scheduler.",
    ]


def test_a_stored_finding_without_its_trace_is_told_as_stored(folder: Path) -> None:
    (folder / "S3-12345678.jsonl").unlink()
    made = ledger.assemble(sources.gather([folder]), None, None)
    (broken,) = next(r for r in made.rows if r.id == "S3").broken
    assert broken.stored


def test_a_stored_finding_that_the_trace_does_not_bear_out_breaks_nothing(folder: Path) -> None:
    story = report_folder.innocent()
    codec.write(folder / "S3-12345678.jsonl", story.header, story.events)
    made = ledger.assemble(sources.gather([folder]), None, None)
    assert made.broken == []
    (case,) = made.cases
    assert case.stored is not None and case.finding is None


def test_a_promise_of_another_party_gets_a_row_of_its_own(folder: Path) -> None:
    story = report_folder.innocent()
    story.submit(99)
    report_folder.write(folder, story, "contradiction")
    made = ledger.assemble(sources.gather([folder]), None, None)
    assert [r.id for r in made.rows] == [*CONTRACT, "A-trace"]
    assert made.rows[-1].broken[0].unit == "events"


def test_the_trust_base_has_five_entries(told: dict[str, Any]) -> None:
    assert [t["what"] for t in told["trust"]] == [t.what for t in trust.BASE]
    assert len(trust.BASE) == 5


def test_proofs_are_counted_by_id_and_nothing_is_lost() -> None:
    def result(name: str, id: str, status: str, seconds: float) -> ObligationResult:
        return ObligationResult(name, "step", "", id, status, seconds, None)

    made = proofs.summary(
        [
            result("one", "S1", "proved", 0.1),
            result("two", "S1", "unknown", 60.0),
            result("three", "", "proved", 0.3),
        ],
        generated=False,
        seconds=61.0,
    )
    assert (made.overall.proved, made.overall.total) == (2, 3)
    assert (made.by_id["S1"].proved, made.by_id["S1"].total) == (1, 2)
    assert (made.by_id["S1"].slowest, made.by_id["S1"].worst_seconds) == ("two", 60.0)
    assert made.unserving is not None and made.unserving.total == 1
    assert made.unproved == [("two", "unknown")]


def test_the_ledger_counts_what_the_prover_proves(
    kvproof: Kvproof, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[bool, list[ObligationResult]] = {}

    def prove_and_tell(generated: bool, **_: object) -> list[ObligationResult]:
        seen[generated] = prove_all(generated=generated, jobs=1)
        return seen[generated]

    monkeypatch.setattr("kvproof.spec.prove.prove_all", prove_and_tell)
    told = kvproof("report", "--json", "--out", tmp_path / "l.html").json()["ledger"]
    for key, column, results in (
        ("spec", "proved", seen[False]),
        ("text", "generated", seen[True]),
    ):
        proved = Counter(r.id for r in results if r.status == "proved")
        total = Counter(r.id for r in results)
        assert told[key]["overall"]["total"] == len(results)
        assert told[key]["unserving"]["total"] == total[""]
        assert {
            r["id"]: (r[column]["proved"], r[column]["total"]) for r in told["rows"] if r[column]
        } == {id: (proved[id], n) for id, n in total.items() if id}


def test_the_terminal_shows_one_line_for_each_id(
    kvproof: Kvproof, folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "l.html"
    ended = kvproof("report", "--no-prove", "--from", folder, "--out", out)
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert [line.split()[0] for line in lines[1 : 1 + len(CONTRACT)]] == list(CONTRACT)
    s3 = next(line for line in lines if line.startswith("S3 "))
    assert "41×" in s3 and "story (3 moves)" in s3
    assert lines[-1] == str(out)


def test_a_folder_given_twice_counts_once(folder: Path) -> None:
    once, twice = sources.gather([folder]), sources.gather([folder, folder.parent])
    assert len(twice.campaigns) == len(once.campaigns) == 1
    assert len(twice.traces) == len(once.traces) == 2


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("x.history.json", '{"target": "story"}', "x.history.json: not a history"),
        ("x.finding.json", "{", "x.finding.json: not a finding"),
        ("x.campaign.json", "[]", "x.campaign.json: not a campaign's result"),
        ("x.jsonl", "hello\n", "x.jsonl:1: not a kvproof trace"),
    ],
)
def test_broken_evidence_is_one_line(
    refuses: Refuses, tmp_path: Path, name: str, text: str, told: str
) -> None:
    (tmp_path / name).write_text(text)
    page = tmp_path / "l.html"
    assert told in refuses("report", "--no-prove", "--out", page, "--from", tmp_path)
    assert not page.exists()


def test_a_missing_folder_is_one_line(refuses: Refuses, tmp_path: Path) -> None:
    missing = tmp_path / "none"
    assert f"{missing}: there is no such folder" in refuses(
        "report", "--out", tmp_path / "l.html", "--from", missing
    )


def test_the_result_of_an_older_campaign_is_read(tmp_path: Path) -> None:
    (tmp_path / "old.campaign.json").write_text(
        '{"target": "story", "seed": 1, "examples": 2, "steps": 3, "events": 4, "seconds": 5,'
        ' "forgotten": true}'
    )
    (campaign,) = sources.gather([tmp_path]).campaigns
    assert (campaign.steps, campaign.coverage.reference) == (3, {})
