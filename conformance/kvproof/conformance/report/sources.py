"""Reads what campaigns, recordings and people left below some folders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from kvproof.conformance.engines.base import History
from kvproof.conformance.errors import UsageError
from kvproof.conformance.monitor.finding import Finding
from kvproof.conformance.monitor.monitor import Monitor
from kvproof.conformance.report.evidence import (
    CAMPAIGN,
    FINDING,
    HISTORY,
    TRACE,
    Campaign,
    Case,
    Evidence,
    Judged,
)
from kvproof.conformance.trace import codec

T = TypeVar("T")
Progress = Callable[[str, int, int], None]


def gather(folders: Sequence[Path], progress: Progress | None = None) -> Evidence:
    """Read the folders, their subfolders included, and judge every trace in them anew.

    Args:
        folders: where to look; a file that two of them hold is read once.
        progress: called with (the trace's name, events done, events in all).

    Raises:
        UsageError: a folder is missing, or a file of a kind that is read here cannot be.
    """
    found: dict[Path, Path] = {}
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"{folder}: there is no such folder to read evidence from")
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                found.setdefault(path.resolve(), path)
    stems: dict[Path, dict[str, Path]] = {}
    campaigns = []
    for path in found.values():
        if path.name.endswith(CAMPAIGN):
            campaigns.append(_decoded(path, Campaign, "a campaign's result"))
        for kind in (HISTORY, FINDING, TRACE):
            if path.name.endswith(kind):
                stems.setdefault(path.with_name(path.name.removesuffix(kind)), {})[kind] = path
    read = [_read(stem.name, files, progress) for stem, files in stems.items()]
    return Evidence(
        folders=[str(folder) for folder in folders],
        campaigns=sorted(campaigns, key=lambda c: (c.target, c.seed)),
        traces=[case.judged for case in read if case.judged is not None],
        cases=[case for case in read if case.history or case.finding or case.stored],
    )


def _read(name: str, files: dict[str, Path], progress: Progress | None) -> Case:
    history = _decoded(files[HISTORY], History, "a history") if HISTORY in files else None
    stored = _decoded(files[FINDING], Finding, "a finding") if FINDING in files else None
    judged = judge(files[TRACE], progress) if TRACE in files else None
    target = judged.target if judged else history.target if history else "unknown target"
    kinds = {HISTORY: "history", TRACE: "trace", FINDING: "finding"}
    return Case(
        name=name,
        target=target,
        files={kinds[kind]: str(path) for kind, path in files.items()},
        history=history,
        judged=judged,
        stored=stored,
    )


def judge(path: Path, progress: Progress | None = None) -> Judged:
    """Judge a trace as `check-trace` does.

    Raises:
        UsageError: the file is no trace.
    """
    header, events = codec.read(path)
    monitor = Monitor(header)
    for number, event in enumerate(events, start=1):
        if monitor.feed(event) is not None:
            break
        if progress and number % 1000 == 0:
            progress(path.name, number, len(events))
    return Judged(
        file=str(path),
        target=header.target,
        recorded=len(events),
        events=monitor.events,
        coverage=dict(monitor.coverage()),
        finding=monitor.finding,
        missed=monitor.missed,
    )


def _decoded(path: Path, type_: type[T], what: str) -> T:
    try:
        return msgspec.json.decode(path.read_bytes(), type=type_)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from None
    except msgspec.DecodeError as error:
        raise UsageError(f"{path}: not {what}: {error}") from None
