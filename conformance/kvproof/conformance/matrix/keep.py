"""Keeping what a matrix found: a folder of histories for each release, under names that stay.

A name is made of the known case, the id and the circumstances, so that the same fault found again,
by another seed, has the same name. What a folder has already is left as it is: its history may be
explained elsewhere, and a shorter one is no reason to explain it again.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kvproof.conformance.errors import UsageError
from kvproof.conformance.matrix.document import Matrix
from kvproof.conformance.monitor.finding import Finding, Signature, parse_signature
from kvproof.conformance.report.evidence import FINDING, HISTORY


def keep(matrix: Matrix, folder: Path) -> list[Path]:
    """Copy history, verdict and stand-alone test of each finding to ``<folder>/<release>/``.

    Returns the histories that are new there. Findings whose signature is kept already, or is more
    specific than one that is, are left out.

    Raises:
        UsageError: what is kept already cannot be read, or a finding's files are gone.
    """
    return [
        path
        for row in matrix.releases
        for one in row.findings
        # Without an action: the trace contradicts itself, which breaks no release's promise.
        if (signature := parse_signature(one.signatures[0])) is not None
        and (path := keep_one(folder / row.release, signature, one.cases, one.files)) is not None
    ]


def keep_one(
    place: Path, signature: Signature, cases: Sequence[str], files: Sequence[str]
) -> Path | None:
    """Copy the files of one finding into ``place``; None when a fault like it is kept there.

    Raises:
        UsageError: what is kept already cannot be read, or the finding's files are gone.
    """
    if any(known.covers(signature) for known in kept(place).values()):
        return None
    return _copy(files, place, _free(place, slug(cases, signature)))


def kept(place: Path) -> dict[str, Signature]:
    """The signatures of the findings that are kept in a folder, by name.

    Raises:
        UsageError: a file there is no finding.
    """
    found = {}
    for path in sorted(place.glob(f"*{FINDING}")):
        try:
            finding = msgspec.json.decode(path.read_bytes(), type=Finding)
        except msgspec.DecodeError as error:
            raise UsageError(f"{path}: not a finding: {error}") from None
        found[path.name.removesuffix(FINDING)] = finding.signature()
    return found


def slug(cases: Sequence[str], signature: Signature) -> str:
    """A name such as ``k1-s1-plan-store-window-slid``."""
    where = re.sub(r"\.py\b", "", signature.where.rpartition("/")[2])
    words = [*cases, *signature._replace(where=where)]
    return re.sub(r"[^a-z0-9]+", "-", " ".join(words).lower()).strip("-")


def _free(place: Path, name: str) -> str:
    """The name, with a number where a fault of another signature has it."""
    number, free = 1, name
    while (place / f"{free}{HISTORY}").exists():
        number += 1
        free = f"{name}-{number}"
    return free


def _copy(files: Sequence[str], place: Path, name: str) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    for file in map(Path, files):
        if file.name.endswith((HISTORY, FINDING)):
            new = place / f"{name}{HISTORY if file.name.endswith(HISTORY) else FINDING}"
        elif file.suffix == ".py":
            new = place / f"test_{name.replace('-', '_')}.py"
        else:
            continue
        if not file.is_file():
            raise UsageError(f"{file}: gone: only a run anew can bring it back")
        shutil.copyfile(file, new)
    return place / f"{name}{HISTORY}"
