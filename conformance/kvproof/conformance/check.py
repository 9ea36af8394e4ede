"""``check_scheduler``: monitor and fuzzer on a connector scheduler that is not ours.

The campaign runs in a process of its own, by way of the command line: vLLM reads its settings when
it is imported, and a history only replays under the string hashing that an interpreter was started
with. The class is therefore handed over by name.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from kvproof.conformance.engines.names import TargetName, place_and_name
from kvproof.conformance.errors import EXIT_FINDING, EXIT_HOLDS, UsageError
from kvproof.conformance.fuzz.campaign import CampaignResult, Found
from kvproof.conformance.releases import importable
from kvproof.conformance.releases.child import environment_at
from kvproof.conformance.releases.folders import locate

DEFAULT_SECONDS = 60.0
"""How long a campaign lasts that is given no budget."""


class ContractBroken(AssertionError):
    """The scheduler breaks the contract. ``findings`` says how, the message where to look."""

    def __init__(self, checked: Checked) -> None:
        super().__init__(str(checked))
        self.findings = checked.findings


class Checked(msgspec.Struct, frozen=True):
    """What a campaign on a scheduler came to. ``campaign`` has its counts and its coverage."""

    campaign: CampaignResult

    @property
    def findings(self) -> tuple[Found, ...]:
        """Each distinct finding: the verdict, the shrunk history, and the files of both."""
        return tuple(self.campaign.found)

    @property
    def holds(self) -> bool:
        """Whether nothing was found but what was allowed."""
        return not self.campaign.found

    def raise_for_findings(self) -> None:
        """Do nothing if it holds.

        Raises:
            ContractBroken: it does not; an ``AssertionError``, so that a test fails with it.
        """
        if not self.holds:
            raise ContractBroken(self)

    def __str__(self) -> str:
        run = self.campaign
        lines = [f"{run.target}, seed {run.seed}: {run.examples} runs, {len(run.found)} findings"]
        for found in run.found:
            finding, moves = found.finding, len(found.history.moves)
            lines.append(
                f"{finding.id} ({finding.culprit}, {moves} moves): "
                f"{' '.join(finding.sentence.split())}"
            )
            lines += [f"  {file}" for file in found.files]
        return "\n".join(lines)


def check_scheduler(
    scheduler: type | str,
    *,
    release: str | None = None,
    seconds: float | None = None,
    max_examples: int | None = None,
    seed: int = 0,
    severity: Literal["unsafe", "missed"] = "unsafe",
    allow: Path | str | None = None,
    stop_at: int | None = None,
    out: Path | str = "out/check",
) -> Checked:
    """Fuzz a connector scheduler inside vLLM, and judge all that it does by the contract.

    Args:
        scheduler: who is checked: a class that stands in for ``OffloadingConnectorScheduler``, a
            connector class that contains one, or an ``OffloadingSpec``. Either the class, if it
            lies at the top of a module, or its name: ``"package.module:Class"`` or
            ``"file.py:Class"``.
        release: the vLLM release around it, such as ``"0.32.0"``, as installed by ``kvproof
            releases add``. By default the vLLM that is importable here.
        seconds: when to stop. One minute if ``max_examples`` is not given either; what is found is
            shrunk on top of that.
        max_examples: stop after so many runs; the same number and seed give the same result.
        seed: decides what is drawn.
        severity: "unsafe" looks for what may harm a request; "missed" also for lost hits, and for
            work and room that are wasted.
        allow: a file of known findings to pass over, one ``ID ACTION [WHERE] [(KIND)]`` a line.
        stop_at: stop after so many distinct findings.
        out: folder for what is found; each finding comes with a history for ``kvproof replay`` and
            with a pytest file that needs nothing of this project.

    Raises:
        UsageError: the class cannot be had or cannot take part, the release is not there, or
            another argument does not fit; the message is one line.
    """
    name = scheduler if isinstance(scheduler, str) else name_of(scheduler)
    place_and_name(name)
    folder = locate(release) if release is not None else None
    around = release if release is not None else importable.version()
    if around is None:
        raise UsageError("vllm is not importable: install it, or name an installed release")
    if seconds is None and max_examples is None:
        seconds = DEFAULT_SECONDS
    options: Mapping[str, object] = {
        "--target": TargetName(around, name),
        "--seed": seed,
        "--time": seconds,
        "--max-examples": max_examples,
        "--severity": severity,
        "--allow": allow,
        "--stop-at": stop_at,
        "--out": out,
    }
    given = [f"{option}={value}" for option, value in options.items() if value is not None]
    return Checked(_fuzz(given, _environment(folder, around)))


def _environment(folder: Path | None, release: str) -> dict[str, str]:
    """The child imports what this process does, in the same order, but for the release."""
    environment = environment_at(folder, release)
    path = [str(folder)] if folder is not None else []
    path += [str(Path(entry).absolute()) for entry in sys.path]
    environment["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(path))
    return environment


def _fuzz(options: list[str], environment: dict[str, str]) -> CampaignResult:
    command = [sys.executable, "-P", "-m", "kvproof.conformance.cli", "fuzz", "--json", *options]
    # Its progress bar is for a terminal; its one line of error comes back as an exception.
    errors = None if sys.stderr.isatty() else subprocess.PIPE
    ended = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=errors)
    if ended.returncode in (EXIT_HOLDS, EXIT_FINDING):
        return msgspec.json.decode(ended.stdout, type=CampaignResult)
    try:
        told = json.loads(ended.stdout)["error"]
    except (ValueError, KeyError, TypeError):
        told = f"the campaign's process ended with exit code {ended.returncode}"
    raise UsageError(str(told))


def name_of(found: type) -> str:
    """The name under which another process finds a class.

    Raises:
        UsageError: it lies inside a function, or in no file.
    """
    if "<locals>" in found.__qualname__:
        raise UsageError(
            f"{found.__qualname__} lies inside a function, where no other process finds it: "
            "put it at the top of a module"
        )
    module = sys.modules[found.__module__]
    file = getattr(module, "__file__", None)
    if file is None:
        raise UsageError(f"{found.__module__} has no file that another process could read")
    path = Path(file).absolute()
    if found.__module__ == "__main__" or not _importable(found.__module__, path):
        here = Path.cwd()
        path = path.relative_to(here) if path.is_relative_to(here) else path
        return f"{path}:{found.__qualname__}"
    return f"{found.__module__}:{found.__qualname__}"


def _importable(module: str, file: Path) -> bool:
    """Whether the module's name leads to its file from a folder on the path."""
    parts = Path(*module.split("."))
    wanted = (parts.with_suffix(".py"), parts / "__init__.py")
    return any(Path(entry).absolute() / one == file for entry in sys.path for one in wanted)
