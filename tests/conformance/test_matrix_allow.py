"""The allow files that are kept: each entry rests on a stored history of its release."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from kvproof.conformance.fuzz.allowed import read_allowed
from kvproof.conformance.monitor.finding import Finding, parse_signature

CONFORMANCE = Path(__file__).parents[2] / "conformance"
FILES = sorted((CONFORMANCE / "allow").glob("*.allow"))


def entries(file: Path) -> list[tuple[str, str]]:
    """Each entry and its remark."""
    lines = (line.partition("#") for line in file.read_text().splitlines())
    return [(entry.strip(), remark.strip()) for entry, _, remark in lines if entry.strip()]


def test_there_are_some() -> None:
    assert {"0.21.0.allow", "0.26.0.allow", "0.32.0.allow"} <= {file.name for file in FILES}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_entry_names_a_history_with_its_signature_and_where_it_shows(file: Path) -> None:
    histories = CONFORMANCE / "histories" / file.stem
    assert entries(file)
    for entry, remark in entries(file):
        name, _, where = remark.partition(": ")
        assert (histories / f"{name}.history.json").is_file(), entry
        recorded = (histories / f"{name}.finding.json").read_bytes()
        finding = msgspec.json.decode(recorded, type=Finding)
        allowed = parse_signature(entry)
        assert allowed is not None and allowed.covers(finding.signature()), name
        assert where, entry


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_allow_file_is_one_for_the_command_line(file: Path) -> None:
    read = {str(signature) for signature in read_allowed(file)}
    assert read == {entry for entry, _ in entries(file)}
