"""Keeping what a matrix found: a folder of histories for each release, under names that stay.

A name is made of the known case, the id and the circumstances, so that the same fault found again,
by another seed, has the same name. What a folder has already is left as it is: its history may be
explained elsewhere, and a shorter one is no reason to explain it again.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import msgspec

from kvproof.conformance.errors import UsageError
from kvproof.conformance.matrix.document import Distinct, Matrix
from kvproof.conformance.monitor.finding import Finding, Signature, parse_signature
from kvproof.conformance.report.evidence import FINDING, HISTORY


def keep(matrix: Matrix, folder: Path) -> list[Path]:
    """Copy history, verdict and stand-alone test of each finding to ``<folder>/<release>/``.

    Returns the histories that are new there. Findings whose signature is kept already, or is more
    specific than one that is, are left out.

    Raises:
        UsageError: what is kept already cannot be read, or a finding's files are gone.
    """
    kept = []
    for row in matrix.releases:
        place = folder / row.release
        known = _signatures(place)
        for one in row.findings:
            signature = parse_signature(one.signatures[0])
            # Without an action: the trace contradicts itself, which breaks no release's promise.
            if signature is None or any(other.covers(signature) for other in known):
                continue
            known.append(signature)
            kept.append(_copy(one, place, _free(place, slug(one.cases, signature))))
    return kept


def slug(cases: list[str], signature: Signature) -> str:
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


def _copy(one: Distinct, place: Path, name: str) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    for file in map(Path, one.files):
        if file.name.endswith((HISTORY, FINDING)):
            new = place / f"{name}{HISTORY if file.name.endswith(HISTORY) else FINDING}"
        elif file.suffix == ".py":
            new = place / f"test_{name.replace('-', '_')}.py"
        else:
            continue
        if not file.is_file():
            raise UsageError(f"{file}: gone; --fresh runs its release again")
        shutil.copyfile(file, new)
    return place / f"{name}{HISTORY}"


def _signatures(place: Path) -> list[Signature]:
    """The signatures of the findings that are kept in a folder."""
    found = []
    for path in sorted(place.glob(f"*{FINDING}")):
        try:
            finding = msgspec.json.decode(path.read_bytes(), type=Finding)
        except msgspec.DecodeError as error:
            raise UsageError(f"{path}: not a finding: {error}") from None
        found.append(finding.signature())
    return found
