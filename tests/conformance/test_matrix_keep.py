"""Keeping histories: names that stay, nothing twice, nothing overwritten."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from kvproof.conformance.errors import UsageError
from kvproof.conformance.fuzz.campaign import Found
from kvproof.conformance.matrix import budgets, document, schedule, store
from kvproof.conformance.matrix.budgets import Bounds
from kvproof.conformance.matrix.keep import keep, slug
from kvproof.conformance.monitor.finding import Signature

from .matrix_stub import found, result


@pytest.mark.parametrize(
    ("cases", "signature", "name"),
    [
        (["K1"], Signature("S1", "plan_store", "", "window, slid"), "k1-s1-plan-store-window-slid"),
        ([], Signature("P11", "crash", "vllm/a/scheduler.py:12"), "p11-crash-scheduler-12"),
        ([], Signature("S3", "compute", "P13"), "s3-compute-p13"),
    ],
)
def test_a_name_tells_case_id_and_circumstances(
    cases: list[str], signature: Signature, name: str
) -> None:
    assert slug(cases, signature) == name


def with_files(folder: Path, one: Found, number: int) -> Found:
    """The finding, with its files on disk."""
    folder.mkdir(exist_ok=True)
    texts = {
        f"X-{number}.history.json": f"history {number}",
        f"X-{number}.finding.json": msgspec.json.encode(one.finding).decode(),
        f"X-{number}.jsonl": "trace",
        f"test_X_{number}.py": f"test {number}",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    return msgspec.structs.replace(one, files=[str(folder / name) for name in texts])


def matrix(out: Path, *findings: Found) -> document.Matrix:
    asked = budgets.first(1, Bounds(1.0, None))
    files = [with_files(out, one, number) for number, one in enumerate(findings)]
    finished = [store.save(out, 1, asked, result(1, *files))]
    order = schedule.Order(["1.2.3"], 1, Bounds(1.0, None), out)
    outcome = schedule.Outcome("1.2.3", finished)
    return document.assemble(order, [outcome], out / "matrix.md", "kvproof")


STALE = found("S1", "plan_store", 1.0, kind="window, slid")
LATE = found("S1", "plan_store", 2.0, kind="window, slid, at the end")
RAISED = found("P11", "crash", 3.0, where="a/scheduler.py:7")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_history_verdict_and_test_are_copied_under_names_that_stay(tmp_path: Path) -> None:
    kept = keep(matrix(tmp_path / "out", RAISED), tmp_path / "kept")
    assert kept == [tmp_path / "kept" / "1.2.3" / "p11-crash-scheduler-7.history.json"]
    assert names(tmp_path / "kept" / "1.2.3") == [
        "p11-crash-scheduler-7.finding.json",
        "p11-crash-scheduler-7.history.json",
        "test_p11_crash_scheduler_7.py",
    ]
    assert kept[0].read_text() == "history 0"


def test_what_is_kept_already_is_left_as_it_is(tmp_path: Path) -> None:
    keep(matrix(tmp_path / "a", STALE), tmp_path / "kept")
    before = {path: path.read_text() for path in (tmp_path / "kept" / "1.2.3").iterdir()}
    kept = keep(matrix(tmp_path / "b", RAISED, STALE, LATE), tmp_path / "kept")
    # What is more specific than something that is kept is known too.
    assert [path.name for path in kept] == ["p11-crash-scheduler-7.history.json"]
    assert {path: path.read_text() for path in before} == before


def test_two_faults_of_one_name_get_numbers(tmp_path: Path) -> None:
    elsewhere = found("P11", "crash", 4.0, where="b/scheduler.py:7", culprit="worker")
    for folder, one in (("a", RAISED), ("b", elsewhere)):
        keep(matrix(tmp_path / folder, one), tmp_path / "kept")
    histories = sorted((tmp_path / "kept" / "1.2.3").glob("*.history.json"))
    assert [path.name for path in histories] == [
        "p11-crash-scheduler-7-2.history.json",
        "p11-crash-scheduler-7.history.json",
    ]


def test_files_that_are_gone_are_named(tmp_path: Path) -> None:
    made = matrix(tmp_path / "out", STALE)
    (tmp_path / "out" / "X-0.history.json").unlink()
    with pytest.raises(UsageError, match=r"X-0\.history\.json: gone: only a run anew"):
        keep(made, tmp_path / "kept")
