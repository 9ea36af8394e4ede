"""Plays models, each in a child process of its own, and prints what was seen as a table.

``python -m kvproof.conformance.e2e.run [--tier ours] [MODEL...]`` ends with 0 when our connector
held for every model, with 1 when it did not, and with 2 after a wrong argument or without the
release.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from kvproof.conformance.e2e.models import MODELS
from kvproof.conformance.e2e.seen import EVERY, TIERS, Seen
from kvproof.conformance.errors import UsageError
from kvproof.conformance.releases import child_environment

RELEASE = "0.32.0"
"""The release that the drop-in connector is for."""

_COLUMNS = (
    "model",
    "groups",
    "connector",
    "equal, computed",
    "equal, loaded",
    "external tokens",
    "changed by zeros",
    "failed loads",
    "equal, failing",
    "preempted",
    "seconds",
)


def played(name: str, connectors: Sequence[str] = ("ours", "stock")) -> list[Seen]:
    """What connectors did with a model.

    Raises:
        UsageError: there is no such model, or the release is not installed.
        RuntimeError: the child process did not get to its end; the message has its last lines.
    """
    if name not in MODELS:
        raise UsageError(f"no model is called {name!r}: there are {', '.join(MODELS)}")
    command = [sys.executable, "-P", "-m", "kvproof.conformance.e2e.play", name]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "seen.json"
        ended = subprocess.run(
            [*command, str(file), *connectors],
            env=child_environment(RELEASE),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if ended.returncode:
            last = "\n".join(ended.stdout.splitlines()[-20:])
            raise RuntimeError(
                f"{name}: the engine's process ended with {ended.returncode}\n{last}"
            )
        return msgspec.json.decode(file.read_bytes(), type=list[Seen])


def row(name: str, seen: Seen) -> Sequence[str]:
    """One line of the table."""
    of = f"/{seen.requests}"
    failing = f"{seen.failing_equal}/{seen.failing}"
    return (
        name,
        MODELS[name].groups,
        seen.connector,
        f"{seen.equal[0]}{of}",
        f"{seen.equal[1]}{of}",
        f"{seen.external} in {seen.loads} loads",
        f"{seen.changed}{of}",
        str(sum(seen.failed.values())),
        f"engine ended: {seen.ended}" if seen.ended else failing,
        str(seen.preempted),
        f"{seen.seconds:.0f}",
    )


def line(cells: Iterable[str]) -> str:
    """Cells as a line of Markdown."""
    return f"| {' | '.join(cells)} |"


def main(names: Sequence[str]) -> int:
    """Play the named models, all by default; the exit code."""
    connectors = ["ours", "stock"]
    if names[:1] == ["--tier"]:
        tier, names = "".join(names[1:2]), names[2:]
        if tier not in TIERS:
            print(f"kvproof: no tier is called {tier!r}: {', '.join(TIERS)}", file=sys.stderr)
            return 2
        connectors = [name if tier == "cpu" else f"{name}:{tier}" for name in connectors]
    print(
        f"vLLM {RELEASE} on the CPU; {EVERY - 1} of {EVERY} loads succeed in the failing rounds",
        line(_COLUMNS),
        line(["---"] * len(_COLUMNS)),
        sep="\n",
        flush=True,
    )
    held = True
    try:
        for name in names or MODELS:
            for seen in played(name, connectors):
                print(line(row(name, seen)), flush=True)
                held = held and (not seen.connector.startswith("ours") or seen.holds())
    except UsageError as error:
        print(f"kvproof: {error}", file=sys.stderr)
        return 2
    except RuntimeError as error:
        print(f"kvproof: {error}", file=sys.stderr)
        return 1
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
