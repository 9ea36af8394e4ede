"""A matrix with a stub in place of the child processes: budgets, resuming, deduplication."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from kvproof.conformance.engines.base import ResetCache, Step
from kvproof.conformance.errors import UsageError
from kvproof.conformance.fuzz.campaign import CampaignProgress
from kvproof.conformance.matrix import budgets, document, schedule, store
from kvproof.conformance.matrix.budgets import Bounds
from kvproof.conformance.matrix.document import Cell, Row
from kvproof.conformance.monitor.finding import Signature
from kvproof.conformance.report import sources
from kvproof.spec.ids import CONTRACT

from .matrix_stub import StubRunner, found, result

PHASES = ("starting", "fuzzing", "done")
STALE = found("S1", "plan_store", 2.0)
RAISED = found("P11", "crash", 3.0, where="scheduler.py:7", explained_by="M1")


def order(out: Path, *releases: str, seed: int = 1, jobs: int = 1) -> schedule.Order:
    known = {"1.2.3": frozenset({Signature("S4", "plan_load")})}
    return schedule.Order(list(releases), seed, Bounds(10.0, 25), out, known, jobs)


def run(order: schedule.Order, runner: StubRunner) -> list[schedule.Outcome]:
    return asyncio.run(schedule.run(order, runner, lambda release, number, now: None))


def test_the_first_half_passes_over_nothing_the_second_what_is_known(tmp_path: Path) -> None:
    runner = StubRunner({"1.2.3": [STALE, RAISED]})
    run(order(tmp_path, "1.2.3"), runner)
    first, second = (task.asked for task in runner.tasks)
    assert first == budgets.Asked(1, 5.0, 13, [])
    assert second == budgets.Asked(
        budgets.derived(1),
        5.0,
        12,
        [
            Signature("P11", "crash", "scheduler.py:7"),
            Signature("S1", "plan_store"),
            Signature("S4", "plan_load"),
        ],
    )
    assert {task.out for task in runner.tasks} == {str(tmp_path / "1.2.3")}


def test_the_second_half_avoids_what_the_loud_findings_of_the_first_need(tmp_path: Path) -> None:
    loud = msgspec.structs.replace(
        STALE, history=msgspec.structs.replace(STALE.history, moves=(Step("none"), ResetCache()))
    )
    wasted = found("E6", "offer", 1.0, severity="missed")
    outcome = result(1, loud, RAISED, wasted, again={"S1 plan_store": 9})
    assert budgets.loud(outcome) == [["copies in flight", "reset"]]
    many = msgspec.structs.replace(outcome, examples=501)
    assert budgets.loud(many) == []
    runner = StubRunner({"1.2.3": [loud]})
    run(order(tmp_path, "1.2.3"), runner)
    assert [task.asked.avoid for task in runner.tasks] == [[], [["copies in flight", "reset"]]]


def test_derived_seeds_repeat_and_differ() -> None:
    assert budgets.derived(1) == budgets.derived(1)
    assert len({*range(100), *(budgets.derived(seed) for seed in range(100))}) == 200


def test_what_is_finished_is_not_run_again(tmp_path: Path) -> None:
    runner = StubRunner({"1.2.3": [STALE]})
    outcomes = run(order(tmp_path, "1.2.3", "1.2.4"), runner)
    assert len(runner.tasks) == 4
    assert run(order(tmp_path, "1.2.3", "1.2.4"), runner) == outcomes
    assert len(runner.tasks) == 4
    assert (tmp_path / "1.2.3" / "budget1.campaign.json").is_file()


def test_an_interrupt_loses_nothing_that_is_finished(tmp_path: Path) -> None:
    runner = StubRunner({"1.2.3": [STALE]}, interrupted_at=4)
    with pytest.raises(KeyboardInterrupt):
        run(order(tmp_path, "1.2.3", "1.2.4"), runner)
    run(order(tmp_path, "1.2.3", "1.2.4"), runner)
    assert runner.tasks[3:] == [runner.tasks[3]] * 2
    assert [task.release for task in runner.tasks[:4]] == ["1.2.3", "1.2.3", "1.2.4", "1.2.4"]


def test_what_is_forgotten_runs_again(tmp_path: Path) -> None:
    runner = StubRunner()
    run(order(tmp_path, "1.2.3"), runner)
    store.forget(tmp_path / "1.2.3")
    run(order(tmp_path, "1.2.3"), runner)
    assert len(runner.tasks) == 4


def test_a_result_of_another_question_is_refused_before_anything_runs(tmp_path: Path) -> None:
    runner = StubRunner()
    run(order(tmp_path, "1.2.3"), runner)
    with pytest.raises(UsageError, match=r"budget1\.campaign\.json: finished with another seed"):
        run(order(tmp_path, "1.2.5", "1.2.3", seed=2), runner)
    other = order(tmp_path, "1.2.3")
    with pytest.raises(UsageError, match=r"budget2\.campaign\.json: finished with another allow"):
        run(msgspec.structs.replace(other, known={}), runner)
    assert len(runner.tasks) == 2


def test_a_file_that_is_no_result_is_refused(tmp_path: Path) -> None:
    (tmp_path / "1.2.3").mkdir()
    (tmp_path / "1.2.3" / "budget1.campaign.json").write_text("{")
    with pytest.raises(UsageError, match=r"not a finished campaign: .*--fresh"):
        run(order(tmp_path, "1.2.3"), StubRunner())


def test_a_release_that_cannot_be_driven_keeps_no_other_from_its_turn(tmp_path: Path) -> None:
    runner = StubRunner({"1.2.4": [STALE]}, broken=("1.2.3",))
    first, second = run(order(tmp_path, "1.2.3", "1.2.4"), runner)
    assert (first.finished, first.problem) == ([], "it does not import")
    assert (len(second.finished), second.problem) == (2, None)


@pytest.mark.parametrize(("jobs", "most"), [(1, 1), (2, 2)])
def test_no_more_releases_at_a_time_than_jobs(tmp_path: Path, jobs: int, most: int) -> None:
    running = seen = 0

    async def slow(task: object, report: object) -> object:
        nonlocal running, seen
        running += 1
        seen = max(seen, running)
        await asyncio.sleep(0.01)
        running -= 1
        return result(1)

    asked = order(tmp_path, "1.2.3", "1.2.4", "1.2.5", jobs=jobs)
    asyncio.run(schedule.run(asked, slow, lambda *_: None))  # type: ignore[arg-type]
    assert seen == most


def test_progress_tells_the_release_and_its_budget(tmp_path: Path) -> None:
    told: list[tuple[str, int, str]] = []

    def report(release: str, number: int, now: CampaignProgress) -> None:
        told.append((release, number, now.phase))

    for _ in range(2):
        asyncio.run(schedule.run(order(tmp_path, "1.2.3"), StubRunner(), report))
    first, second = ([("1.2.3", number, phase) for phase in PHASES] for number in (1, 2))
    assert told == [*first, *second, first[-1], second[-1]]


def test_the_ledger_reads_what_is_stored(tmp_path: Path) -> None:
    run(order(tmp_path, "1.2.3"), StubRunner())
    evidence = sources.gather([tmp_path])
    assert [campaign.seed for campaign in evidence.campaigns] == [1, budgets.derived(1)]


def row(tmp_path: Path, *campaigns: object) -> Row:
    """The row of a release whose campaigns ended so."""
    asked = budgets.first(1, Bounds(1.0, None))
    finished = [
        store.save(tmp_path, number, asked, one)  # type: ignore[arg-type]
        for number, one in enumerate(campaigns, start=1)
    ]
    outcome = schedule.Outcome("1.2.3", finished)
    made = document.assemble(order(tmp_path, "1.2.3"), [outcome], tmp_path / "matrix.md", "kvproof")
    return made.releases[0]


def test_a_cell_is_the_earliest_finding_and_the_clock_runs_on(tmp_path: Path) -> None:
    later = found("S1", "other", 0.5, moves=1)
    made = row(tmp_path, result(1, STALE, RAISED), result(2, later, found("A-stall", "stall", 1.0)))
    assert made.cells == {"P11": Cell(3, 3.0), "S1": Cell(3, 2.0), "A-stall": Cell(3, 5.0)}
    assert (made.steps, made.examples, made.events, made.seconds) == (400, 20, 6000, 8.0)
    assert [(one.id, one.budget, one.seconds) for one in made.findings] == [
        ("S1", 1, 2.0),
        ("P11", 1, 3.0),
        ("S1", 2, 4.5),
        ("A-stall", 2, 5.0),
    ]
    assert made.first == 2.0


def test_one_signature_counts_once_and_calls_that_raise_alike_are_one_finding(
    tmp_path: Path,
) -> None:
    elsewhere = found("P11", "crash", 3.5, where="scheduler.py:9", explained_by="M1")
    unlike = found("P11", "crash", 3.6, where="scheduler.py:11", explained_by="P7")
    first = result(1, RAISED, elsewhere, unlike, again={"P11 crash scheduler.py:9": 4})
    second = result(2, RAISED, allowed={"P11 crash scheduler.py:7": 2, "S4 plan_load": 6})
    made = row(tmp_path, first, second)
    assert [(one.signatures, one.explained_by, one.times) for one in made.findings] == [
        (["P11 crash scheduler.py:7", "P11 crash scheduler.py:9"], "M1", 1 + 2 + 1 + 4),
        (["P11 crash scheduler.py:11"], "P7", 1),
    ]
    assert made.passed_over == {"S4 plan_load": 6}


def test_what_is_known_and_passed_over_is_in_the_table_nonetheless(tmp_path: Path) -> None:
    again, known = found("S1", "plan_store", 1.0), found("S4", "plan_load", 0.5)
    first = result(1, found("S1", "plan_store", 2.0))
    second = result(2, allowed={"S1 plan_store": 3, "S4 plan_load": 6}, passed=[again, known])
    made = row(tmp_path, first, second)
    assert made.cells == {"S1": Cell(3, 2.0), "S4": Cell(3, 4.5, known=True)}
    assert [(one.id, one.times, one.known) for one in made.findings] == [
        ("S1", 1 + 3, False),
        ("S4", 6, True),
    ]


def test_the_columns_are_the_contract_s_and_the_broken_promises_of_engines(tmp_path: Path) -> None:
    finished = [
        store.save(
            tmp_path,
            1,
            budgets.first(1, Bounds(1.0, None)),
            result(1, found("A-stall", "stall", 1.0), found("A-lease", "lease", 2.0)),
        )
    ]
    outcomes = [schedule.Outcome("1.2.3", finished), schedule.Outcome("1.2.4", [])]
    made = document.assemble(order(tmp_path, "1.2.3"), outcomes, tmp_path / "matrix.md", "kvproof")
    assert made.ids == [*CONTRACT, "A-lease", "A-stall"]
