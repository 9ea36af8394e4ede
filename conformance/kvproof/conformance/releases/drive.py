"""Whether a release can be driven here: its scheduler and its offloading connector import."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import msgspec

from kvproof.conformance.releases.child import environment_at

_SECONDS = 180.0

# Runs in the child. A package that is missing and a module that this release does not have both
# show as an import error here; the last line of output is the verdict.
_PROBE = """
import json
try:
    import vllm
    import vllm.v1.core.sched.scheduler
    import vllm.distributed.kv_transfer.kv_connector.v1.offloading_connector
    # Earlier connectors are one file, and keep to one group from end to end.
    import vllm.distributed.kv_transfer.kv_connector.v1.offloading.scheduler
    verdict = {"version": vllm.__version__, "file": vllm.__file__}
except BaseException as error:
    verdict = {"error": f"{type(error).__name__}: {error}"}
print(json.dumps(verdict))
"""


class Driven(msgspec.Struct, frozen=True):
    """The verdict on one release. ``problem`` is None when it drives, else one line."""

    release: str
    folder: str
    problem: str | None


def check(release: str, folder: Path) -> Driven:
    """Import ``release`` from ``folder``, installed or not yet, in a child process."""
    return Driven(release, str(folder), _problem(release, folder))


def _problem(release: str, folder: Path) -> str | None:
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
    except subprocess.TimeoutExpired:
        return f"its import does not end within {_SECONDS:.0f} s"
    try:
        verdict = json.loads(probe.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return f"its import ends the process (exit code {probe.returncode})"
    if "error" in verdict:
        return f"it does not import: {' '.join(verdict['error'].split())}"
    if not Path(verdict["file"]).is_relative_to(folder):
        return f"another vLLM is imported in its place: {verdict['file']}"
    if verdict["version"].partition("+")[0] != release:
        return f"it calls itself {verdict['version']}"
    return None
