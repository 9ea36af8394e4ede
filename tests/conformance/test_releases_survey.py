"""What releases have: the table of features, made up and real."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvproof.conformance.errors import UsageError
from kvproof.conformance.releases import folders, survey
from kvproof.conformance.releases.survey import Surveyed

DOCUMENT = Path(__file__).parents[2] / "docs" / "releases.md"

OLD = Surveyed("1.9.0", {"resets": False, "loads": "early", "sparse": "", "slots": 1}, None)
NEW = Surveyed("1.10.0", {"resets": True, "loads": "late", "sparse": "config", "slots": 1}, None)


def test_a_feature_is_a_row_and_each_of_its_forms_is_one() -> None:
    assert survey.matrix([OLD, NEW]) == [
        ("resets", [False, True]),
        ("loads: early", [True, False]),
        ("loads: late", [False, True]),
        ("sparse: config", [False, True]),
        ("slots: 1", [True, True]),
    ]


def test_the_table_is_markdown_with_aligned_columns() -> None:
    assert survey.markdown([OLD, NEW])[:4] == [
        "| feature        | 1.9.0 | 1.10.0 |",
        "| -------------- | ----- | ------ |",
        "| resets         |       | yes    |",
        "| loads: early   | yes   |        |",
    ]
    assert survey.markdown([]) == ["| feature |", "| ------- |"]


def test_a_release_that_cannot_be_looked_at_says_why(tmp_path: Path) -> None:
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm" / "__init__.py").write_text("__version__ = '1.2.3'\n")
    found = survey.survey("1.2.3", tmp_path)
    assert found.features == {}
    assert found.problem is not None
    assert found.problem.startswith("vLLM 1.2.3 cannot be driven by this kvproof: ")


def test_an_environment_without_the_shared_packages_says_how_they_are_brought(
    tmp_path: Path,
) -> None:
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm" / "__init__.py").write_text("__version__ = '1.2.3'\n")
    (tmp_path / "vllm" / "config.py").write_text("import a_shared_package\n")
    assert survey.survey("1.2.3", tmp_path).problem == (
        "this environment lacks a_shared_package, which vLLM 1.2.3 needs:"
        " kvproof releases add 1.2.3"
    )


def documented() -> list[list[str]]:
    """The cells of the document's table of features."""
    lines = DOCUMENT.read_text(encoding="utf-8").splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("| feature "))
    end = next(n for n in range(start, len(lines)) if not lines[n].startswith("|"))
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[start:end]]


@pytest.mark.vllm
@pytest.mark.parametrize("release", documented()[0][1:])
def test_the_document_says_what_the_release_has(release: str) -> None:
    try:
        found = survey.survey(release, folders.locate(release))
    except UsageError as missing:
        pytest.skip(str(missing))
    head, _, *rows = documented()
    column = head.index(release)
    assert {row[0] for row in rows if row[column]} == {title for title, _ in survey.matrix([found])}
