"""What a release has and what it lacks, found by looking at it from inside."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kvproof.conformance.releases.child import environment_at

_SECONDS = 180.0

# Runs in the child. The last line of output is the table.
_PROBE = """
import json
from kvproof.conformance.engines.vllm.features import detect
from kvproof.conformance.engines.vllm.release import load
print(json.dumps(detect(load()).header()))
"""

Value = bool | int | str | None


class Surveyed(msgspec.Struct, frozen=True):
    """One release. ``features`` is empty when there is a ``problem`` (one line)."""

    release: str
    features: dict[str, Value]
    problem: str | None


def survey(release: str, folder: Path) -> Surveyed:
    """Look at ``release``, which lies in ``folder``, in a child process."""
    try:
        probe = subprocess.run(
            [sys.executable, "-P", "-c", _PROBE],
            env=environment_at(folder, release),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
        )
        return Surveyed(release, json.loads(probe.stdout.splitlines()[-1]), None)
    except subprocess.TimeoutExpired:
        return Surveyed(release, {}, f"its import does not end within {_SECONDS:.0f} s")
    except (IndexError, ValueError):
        told = (probe.stderr.strip().splitlines() or ["its import ends the process"])[-1]
        return Surveyed(release, {}, told.partition("UsageError: ")[2] or told)


def matrix(surveyed: Sequence[Surveyed]) -> list[tuple[str, list[bool]]]:
    """Rows of a table with a column for each release: what it is about, and who has it.

    A feature that is either there or not is one row; one that comes in several forms is a row for
    each of them, called ``feature: form``.
    """
    rows: list[tuple[str, list[bool]]] = []
    for name in dict.fromkeys(name for one in surveyed for name in one.features):
        values = [one.features.get(name) for one in surveyed]
        for form in _forms(values):
            title = name if form is True else f"{name}: {form}"
            rows.append((title, [value == form for value in values]))
    return rows


def _forms(values: Sequence[Value]) -> list[Value]:
    """The distinct values that say something, in the order in which releases took them up."""
    return [value for value in dict.fromkeys(values) if value not in (None, False, "")]


def markdown(surveyed: Sequence[Surveyed]) -> list[str]:
    """``matrix`` as the lines of a Markdown table, columns aligned."""
    head = ["feature", *(one.release for one in surveyed)]
    body = [[title, *("yes" if has else "" for has in marks)] for title, marks in matrix(surveyed)]
    widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
    return [
        f"| {' | '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))} |"
        for row in (head, ["-" * width for width in widths], *body)
    ]
