"""Whether anything notices a slip: the command, the trials behind it, and the corpus."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kvproof.conformance.errors import UsageError
from kvproof.conformance.mutation import survivors
from kvproof.conformance.mutation import trial as trial_module
from kvproof.conformance.mutation.campaign import held_against, try_all
from kvproof.conformance.mutation.histories import (
    CORPUS,
    Play,
    Trace,
    alter,
    committed,
    dumps,
    loads,
    pack,
)
from kvproof.conformance.mutation.installed import installed
from kvproof.conformance.mutation.trial import disproved, equivalent, noticing, tried
from kvproof.conformance.trace import events as ev
from kvproof.model.broken import Broken
from kvproof.model.contract import Contract, Request, Worker
from kvproof.spec.contract import contract
from kvproof.spec.mutants import Mutant, mutants
from tests.conftest import Kvproof

TOLD_TWICE = "tier_new: no oblige P6 (not (r in announced))"
NOT_TOLD = "tier_new: no update of announced (announced.add(r))"
UNREAD = "hit: no oblige S6 (x in ready)"
ORDERED = "lease: no assume (not (l in handed_at))"


TAMPERING = (
    "tests/conformance/test_monitor.py::"
    "test_tampering_is_found_by_its_id_where_it_was_done[the_tier_is_told_twice_of_a_request]"
)


def named(name: str) -> Mutant:
    (found,) = [m for m in mutants(contract()) if m.name == name]
    return found


def test_a_mutant_is_installed_for_a_while() -> None:
    committed_move = Contract.tier_new
    reference = Contract([Worker(0)])
    reference.tier_new(Request(1))
    with installed(contract(), named(TOLD_TWICE)):
        reference.tier_new(Request(1))
    assert Contract.tier_new is committed_move
    with pytest.raises(Broken):
        reference.tier_new(Request(1))


def test_a_history_notices_what_it_was_told_for() -> None:
    noticed = {
        history.test: (history.findings, now) for history, now in noticing(named(TOLD_TWICE))
    }
    findings, now = noticed[TAMPERING]
    assert [id for id, _ in findings] == ["P6"]
    assert now == []


def test_a_machine_that_leads_the_monitor_astray_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    history = committed_trace()

    def astray(_: Trace) -> tuple[list[tuple[str, int]], set[str]]:
        raise ValueError

    monkeypatch.setattr(trial_module, "histories_of", lambda action: [history])
    monkeypatch.setattr(Trace, "judged", astray)
    assert list(noticing(named(TOLD_TWICE))) == [(history, [("ValueError", -1)])]


def test_a_proof_notices_what_no_history_needs() -> None:
    assert disproved(named(UNREAD), 10_000) == (
        "step/hit/answers_and_pins_name_readable_chunks",
        (),
    )
    assert disproved(named(TOLD_TWICE), 10_000) == ("", ())


def test_a_guard_that_another_implies_allows_the_same_without_it() -> None:
    assert equivalent(named(ORDERED), 10_000)
    assert not equivalent(named(TOLD_TWICE), 10_000)
    trial = tried(named(ORDERED), 10_000)
    assert (trial.killed_by, trial.killer, trial.undecided) == ("", "", ())
    assert trial.equivalent


def test_the_list_must_name_who_survives_and_nobody_else() -> None:
    trials = [tried(named(name), 10_000) for name in (TOLD_TWICE, ORDERED)]
    assert [t.killed_by for t in trials] == ["history", ""]
    good = held_against(trials, {ORDERED: "implied"})
    assert (good.killed, good.holds, good.explained) == (1, True, {ORDERED: "implied"})
    missing = held_against(trials, {})
    assert ([t.mutant.name for t in missing.unexplained], missing.holds) == ([ORDERED], False)
    stale = held_against(trials, {ORDERED: "implied", TOLD_TWICE: "?"})
    assert (stale.stale, stale.unexplained, stale.holds) == ([TOLD_TWICE], [], False)
    elsewhere = {ORDERED: "implied", "evict: gone": "?"}
    assert held_against(trials, elsewhere, ["lease", "tier_new"]).stale == []


def test_trials_come_in_order_whatever_the_number_of_processes() -> None:
    actions = ["tier_new", "tier_call", "tier_finished"]
    seen: list[tuple[int, int]] = []
    alone = try_all(actions, 1, 10_000, lambda done, total: seen.append((done, total)))
    names = [m.name for m in mutants(contract()) if m.action in actions]
    assert [t.mutant.name for t in alone] == names
    assert seen[-1] == (len(names), len(names))
    apart = try_all(actions, 2, 10_000)
    assert [(t.mutant, t.killed_by) for t in apart] == [(t.mutant, t.killed_by) for t in alone]


# --- the command ---------------------------------------------------------------------------------


def test_the_command_counts_and_names_every_mutant(kvproof: Kvproof) -> None:
    ended = kvproof("prove", "--mutants", "--action", "tier_new", "--jobs", 1, "--json")
    document = ended.json()
    assert ended.code == 0
    told = {key: document[key] for key in document if key not in ("seconds", "mutants")}
    assert told == {
        "verdict": "holds",
        "total": 2,
        "killed": 2,
        "survived": 0,
        "rate": 1.0,
        "killed_by": {"history": 2, "proof": 0},
        "unexplained": [],
        "stale": [],
    }
    first, second = document["mutants"]
    assert first.pop("seconds") >= 0
    assert first.pop("killer") in {history.test for history, _ in noticing(named(TOLD_TWICE))}
    assert first == {
        "name": TOLD_TWICE,
        "action": "tier_new",
        "kind": "oblige",
        "id": "P6",
        "what": "statement",
        "deleted": "not (r in announced)",
        "killed_by": "history",
        "undecided": [],
        "equivalent": False,
        "explanation": None,
    }
    assert (second["name"], second["kind"]) == (NOT_TOLD, "update")


def test_a_survivor_that_is_not_listed_and_an_entry_that_is_noticed_fail(
    kvproof: Kvproof, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = {TOLD_TWICE: "nobody would say it twice"}
    monkeypatch.setattr(survivors, "read", lambda: listed)
    ended = kvproof("prove", "--mutants", "--action", "tier_new", "--action", "lease", "--jobs", 1)
    assert ended.code == 1
    assert ended.out.splitlines()[-2:] == [
        f"stale: {TOLD_TWICE} no longer survives: take it off the list",
        f"nothing notices: {ORDERED}",
    ]


def test_explained_survivors_are_told_with_their_reasons(kvproof: Kvproof) -> None:
    ended = kvproof("prove", "--mutants", "--action", "lease", "--jobs", 1)
    assert ended.code == 0
    why = survivors.read()[ORDERED]
    told = f"{ORDERED}\n    {why} [proved: the action is allowed where it was]\n"
    assert told in ended.out


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--action", "evict"], "--action belongs to --mutants"),
        (["--mutants", "--action", "evacuate"], "the contract has no action evacuate"),
        (
            ["--mutants", "--generated"],
            "a mutant is one of the spec and the reference: leave out --generated",
        ),
    ],
)
def test_wrong_use_is_refused(refuses: Callable[..., str], arguments: list[str], line: str) -> None:
    assert refuses("prove", *arguments) == line


# --- the list ------------------------------------------------------------------------------------


def test_every_listed_survivor_is_a_mutant_of_the_contract_and_has_a_reason() -> None:
    names = {m.name for m in mutants(contract())}
    listed = survivors.read()
    assert set(listed) <= names
    assert all(why.strip() for why in listed.values())


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('"a" = ""\n', "no reason is given for 'a'"),
        ('"a" = 1\n', "no reason is given for 'a'"),
        ('"a"\n', "Expected '=' after a key in a key/value pair (at line 1, column 4)"),
    ],
)
def test_a_broken_list_is_refused(tmp_path: Path, text: str, error: str) -> None:
    path = tmp_path / "survivors.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as refused:
        survivors.read(path)
    assert str(refused.value) == f"{path}: {error}"


# --- the corpus ----------------------------------------------------------------------------------


def test_the_corpus_is_what_the_tests_judge_now() -> None:
    command = [sys.executable, "-m", "tests.conformance.corpus", "--check"]
    checked = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_every_history_of_the_corpus_gives_its_findings() -> None:
    assert [h.test for h in committed() if h.judged()[0] != h.findings] == []
    assert {type(h) for h in committed()} == {Trace, Play}


def test_histories_share_their_events_in_the_file() -> None:
    header = committed_trace().header
    first, second = (ev.Finish(1, -1, r, "stopped") for r in ("a#0", "b#0"))
    traces = [
        Trace("t", header, [first, second], []),
        Trace("u", header, [second, second], [("A-finish", 1)]),
    ]
    play = Play("v", 1, {}, [("reset", [])], [])
    corpus = pack(traces, [play])
    assert (len(corpus.headers), corpus.events) == (1, [first, second])
    assert [t.events for t in corpus.traces] == [[0, 1], [1, 1]]
    assert loads(dumps(corpus)).histories() == [*traces, play]


def committed_trace() -> Trace:
    return next(h for h in committed() if isinstance(h, Trace))


def test_a_file_that_is_no_corpus_is_refused() -> None:
    with pytest.raises(UsageError, match="the corpus of histories cannot be read"):
        loads(CORPUS.read_bytes()[:-10])


def test_a_play_goes_on_after_a_broken_guard() -> None:
    moves = [
        ("tier_new", [1]),
        ("tier_new", [1]),
        ("announced.discard", [1]),
        ("tier_new", [1]),
        ("lease", [1, 1]),
    ]
    findings, actions = Play("t", 1, {}, moves, []).judged()
    assert findings == [("P6", 1), ("undefined", 4)]
    assert actions == {"tier_new", "announced.discard", "lease"}


def test_fields_are_changed_by_hand() -> None:
    reference = Contract([Worker(0)])
    alter(reference, "owner.put", 1, 0, 5)
    assert reference.owner == {(1, 0): 5}
    alter(reference, "owner.put", 2, 0, 6)
    alter(reference, "owner.pop", 1, 0)
    assert reference.owner == {(2, 0): 6}
    alter(reference, "maker.put", 3, 4)
    assert reference.maker == {3: 4}
    alter(reference, "written.add", 1, 0, 7)
    assert set(reference.written) == {(1, 0, 7)}
