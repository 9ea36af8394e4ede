"""Plays models, each in a child process of its own, and prints what was seen as a table.

``python -m kvproof.conformance.e2e.run [--tier ours] [MODEL...]``, or ``--workers [MODEL...]`` for
two workers that share our own tier, ends with 0 when our connector held for every model, with 1
when it did not, and with 2 after a wrong argument or without the release.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec

from kvproof.conformance.e2e.models import MODELS
from kvproof.conformance.e2e.seen import EVERY, TIERS, WORKERS, Seen, SeenWorkers
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

_COLUMNS_OF_WORKERS = (
    "model",
    "groups",
    "workers",
    "equal, loaded",
    "external tokens",
    "changed by one worker's zeros",
    "equal, put back",
    "failed loads of one worker",
    "equal, failing",
)


def played(name: str, connectors: Sequence[str] = ("ours", "stock")) -> list[Seen]:
    """What connectors did with a model.

    Raises:
        UsageError: there is no such model, or the release is not installed.
        RuntimeError: the child process did not get to its end; the message has its last lines.
    """
    return msgspec.json.decode(_child("play", name, connectors), type=list[Seen])


def played_by_workers(name: str) -> SeenWorkers:
    """What our connector did with a model and several workers.

    Raises:
        UsageError: there is no such model, or none of several workers, or no such release.
        RuntimeError: the child process did not get to its end; the message has its last lines.
    """
    if name in MODELS and not MODELS[name].splits:
        raise UsageError(f"{name} has a single head of a kind: two workers cannot share it")
    # They may have fewer cores than each would like to have for itself.
    seen = _child("workers", name, environment={"VLLM_CPU_OMP_THREADS_BIND": "nobind"})
    return msgspec.json.decode(seen, type=SeenWorkers)


def _child(
    module: str,
    name: str,
    arguments: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> bytes:
    """What a module of this package writes about a model, in a process inside the release."""
    if name not in MODELS:
        raise UsageError(f"no model is called {name!r}: there are {', '.join(MODELS)}")
    command = [sys.executable, "-P", "-m", f"kvproof.conformance.e2e.{module}", name]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "seen.json"
        ended = subprocess.run(
            [*command, str(file), *arguments],
            env={**child_environment(RELEASE), **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if ended.returncode:
            last = "\n".join(ended.stdout.splitlines()[-20:])
            raise RuntimeError(
                f"{name}: the engine's process ended with {ended.returncode}\n{last}"
            )
        return file.read_bytes()


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


def row_of_workers(name: str, seen: SeenWorkers) -> Sequence[str]:
    """One line of the table of several workers."""
    of = f"/{seen.requests}"
    return (
        name,
        MODELS[name].groups,
        str(WORKERS),
        f"{seen.loaded}{of}",
        str(seen.external),
        ", ".join(f"{changed}{of}" for changed in seen.changed),
        ", ".join(f"{equal}{of}" for equal in seen.put_back),
        str(seen.failed),
        f"{seen.failing}{of}",
    )


def line(cells: Iterable[str]) -> str:
    """Cells as a line of Markdown."""
    return f"| {' | '.join(cells)} |"


def main(names: Sequence[str]) -> int:
    """Play the named models, all by default; the exit code."""
    columns: Sequence[str]
    rows: Callable[[str], Iterator[tuple[Sequence[str], bool]]]
    if names[:1] == ["--workers"]:
        names = names[1:] or [name for name, model in MODELS.items() if model.splits]
        columns, rows = _COLUMNS_OF_WORKERS, _of_workers
    else:
        connectors = ["ours", "stock"]
        if names[:1] == ["--tier"]:
            tier, names = "".join(names[1:2]), names[2:]
            if tier not in TIERS:
                print(f"kvproof: no tier is called {tier!r}: {', '.join(TIERS)}", file=sys.stderr)
                return 2
            connectors = [name if tier == "cpu" else f"{name}:{tier}" for name in connectors]
        columns, rows = _COLUMNS, partial(_of_connectors, connectors)
        print(f"vLLM {RELEASE} on the CPU; {EVERY - 1} of {EVERY} loads succeed when some fail")
    print(line(columns), line(["---"] * len(columns)), sep="\n", flush=True)
    held = True
    try:
        for name in names or MODELS:
            for cells, holds in rows(name):
                print(line(cells), flush=True)
                held = held and holds
    except UsageError as error:
        print(f"kvproof: {error}", file=sys.stderr)
        return 2
    except RuntimeError as error:
        print(f"kvproof: {error}", file=sys.stderr)
        return 1
    return 0 if held else 1


def _of_connectors(connectors: Sequence[str], name: str) -> Iterator[tuple[Sequence[str], bool]]:
    for seen in played(name, connectors):
        # The stock one is there to compare with, and may do as it does.
        yield row(name, seen), not seen.connector.startswith("ours") or seen.holds()


def _of_workers(name: str) -> Iterator[tuple[Sequence[str], bool]]:
    seen = played_by_workers(name)
    yield row_of_workers(name, seen), seen.holds()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
