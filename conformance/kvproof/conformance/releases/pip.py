"""Running pip in this environment, its downloads reported, its failures in one sentence."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

from kvproof.conformance.errors import UsageError

Report = Callable[[str, int, int], None]
"""``(what is being done, bytes done, bytes in all)``; both 0 while nothing can be counted."""

_DOWNLOADED = re.compile(r"Progress (\d+) of (\d+)")
_STARTED = re.compile(r"(Downloading|Using cached|Processing|Collecting) (\S+)")
_FIRST_WITH_RAW_PROGRESS = (24, 1)


class PipError(Exception):
    """pip ended with an error; ``log`` is all that it printed."""

    def __init__(self, log: str) -> None:
        super().__init__(_reason(log))
        self.log = log


def install(arguments: Sequence[str], report: Report) -> None:
    """``pip install`` with these arguments.

    Raises:
        PipError: pip failed.
        UsageError: there is no pip here.
    """
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    command += ["--progress-bar", _progress_style(), *arguments]
    log: list[str] = []
    with _process(command) as pip:
        for line in pip.stdout or ():
            log.append(line)
            counted = _DOWNLOADED.search(line)
            started = _STARTED.search(line)
            if counted:
                report("downloading", int(counted[1]), int(counted[2]))
            elif started:
                report(f"{started[1].lower()} {Path(started[2]).name}", 0, 0)
            elif line.startswith("Installing"):
                report("unpacking", 0, 0)
        if pip.wait() != 0:
            raise PipError("".join(log))


@contextmanager
def requirements_file(requirements: Sequence[str]) -> Iterator[str]:
    """A temporary requirements file."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        file.write("\n".join(requirements) + "\n")
        file.flush()
        yield file.name


@contextmanager
def _process(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """A child that does not outlive an interrupt of this process."""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as child:
        try:
            yield child
        finally:
            if child.poll() is None:
                child.terminate()


def _progress_style() -> str:
    try:
        version = metadata.version("pip")
    except metadata.PackageNotFoundError:
        raise UsageError("pip is missing in this environment: run `python -m ensurepip`") from None
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    return "raw" if numbers >= _FIRST_WITH_RAW_PROGRESS else "off"


def _reason(log: str) -> str:
    errors = [line for line in log.splitlines() if line.startswith("ERROR: ")]
    lines = errors or log.splitlines() or ["no output"]
    return lines[-1].removeprefix("ERROR: ").strip()
