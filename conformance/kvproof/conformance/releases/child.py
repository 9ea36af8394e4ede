"""Running something inside one release: a child process with the release first on its path.

Two releases cannot share a process, since both are called ``vllm``; so whatever touches a release
runs in a child. ``run_in`` starts this very command line again, there; ``run_command_in`` starts
any other.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from kvproof.conformance.errors import UsageError
from kvproof.conformance.releases import importable
from kvproof.conformance.releases.folders import cache_root, locate

ACTIVE = "KVPROOF_RELEASE"
"""The environment variable that tells a child which release it runs in."""

_SETTINGS = {
    "HF_HUB_OFFLINE": "1",  # model configurations are built here, never fetched
    "OMP_NUM_THREADS": "1",  # no arithmetic worth threads; they would only fight over the cores
    "PYTHONHASHSEED": "0",  # set order reaches the schedulers: without it a history does not replay
    "TOKENIZERS_PARALLELISM": "false",
    "TORCH_LOGS": "-all",  # errors only: standard error belongs to the command
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # the engine core must run in the child itself
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_TARGET_DEVICE": "cpu",
}

_PATIENCE = ((2.0, signal.SIGINT), (8.0, signal.SIGTERM))
"""After an interrupt: how many seconds the child gets before each of these is sent to it."""


def active_release() -> str | None:
    """The release that this process was started for, if any."""
    return os.environ.get(ACTIVE)


def home_of(release: str) -> Path | None:
    """Where ``release`` lies; None when it is what this environment imports by itself.

    An installed release comes before the environment's own vLLM of the same version.

    Raises:
        UsageError: the release is neither installed nor importable here.
    """
    try:
        return locate(release)
    except UsageError:
        if importable.version() == release:
            return None
        raise


def child_environment(release: str) -> dict[str, str]:
    """The environment of a process that imports ``release`` as ``vllm``.

    Raises:
        UsageError: the release is neither installed nor importable here.
    """
    return environment_at(home_of(release), release)


def environment_at(folder: Path | None, release: str) -> dict[str, str]:
    """The same for a release that lies in ``folder``, installed or not yet.

    Without a folder, the child finds vLLM where this process does.
    """
    return _importing(folder, release) | _SETTINGS


def run_in(release: str, args: Sequence[str]) -> int:
    """Run ``kvproof`` with ``args`` inside ``release``; input and output are this process's own.

    Returns the child's exit code (128 + n when signal n ended it). An interrupt from the keyboard
    reaches the child by itself and is left to it; a termination is passed on.

    Raises:
        UsageError: the release is not installed.
    """
    # -P: the folder that the user happens to stand in must not shadow a package.
    command = [sys.executable, "-P", "-m", "kvproof.conformance.cli", *args]
    return _run(command, child_environment(release))


def run_command_in(release: str, command: Sequence[str]) -> int:
    """Run any command, as ``run_in`` does, with ``release`` as the vLLM that it imports.

    ``python`` is this environment's, and ``vllm`` the release's own. How an engine runs is left to
    the user: unlike in the children that kvproof starts for itself, nothing is set for that.

    Raises:
        UsageError: the release is not installed, or there is no such command.
    """
    folder = home_of(release)
    environment = _importing(folder, release)
    environment.setdefault("VLLM_NO_USAGE_STATS", "1")
    here = str(Path(sys.executable).parent)
    environment["PATH"] = os.pathsep.join(filter(None, (here, environment.get("PATH"))))
    name, *args = command
    script = None if folder is None else folder / "bin" / name
    if script is not None and os.sep not in name and script.is_file():
        # Its first line names the environment that installed the release, which may be gone.
        return _run([sys.executable, "-P", str(script), *args], environment)
    found = shutil.which(name, path=environment["PATH"])
    if found is None:
        raise UsageError(f"there is no command {name!r} to run")
    return _run([found, *args], environment)


def _importing(folder: Path | None, release: str) -> dict[str, str]:
    """This process's environment, but for where vLLM is imported from and which one it is."""
    environment = dict(os.environ)
    first = None if folder is None else str(folder)
    inherited = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (first, inherited)))
    environment["VLLM_CACHE_ROOT"] = str(cache_root() / "vllm" / release)
    environment[ACTIVE] = release
    return environment


def _run(command: Sequence[str], environment: dict[str, str]) -> int:
    """Run a child to its end, its input and output this process's own; its exit code."""
    sys.stdout.flush()
    sys.stderr.flush()
    with subprocess.Popen(command, env=environment) as child, _forwarding(child):
        try:
            code = child.wait()
        except KeyboardInterrupt:
            code = _wait_after_interrupt(child)
    return code if code >= 0 else 128 - code


def _wait_after_interrupt(child: subprocess.Popen[bytes]) -> int:
    """The terminal interrupts the child as well, so it is only pressed when it does not end."""
    for seconds, pressure in _PATIENCE:
        try:
            return child.wait(seconds)
        except subprocess.TimeoutExpired:
            child.send_signal(pressure)
    return child.wait()


@contextmanager
def _forwarding(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Hand a termination of this process to the child, and wait for its end as before."""

    def terminated(_signal: int, _frame: FrameType | None) -> None:
        child.terminate()

    before = signal.signal(signal.SIGTERM, terminated)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
