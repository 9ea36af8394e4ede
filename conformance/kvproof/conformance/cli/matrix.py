"""``kvproof matrix``: fuzz many releases, and tell in one table what each of them breaks."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kvproof.conformance.cli.options import Class, Json, Severity
from kvproof.conformance.errors import EXIT_FINDING, EXIT_HOLDS, UsageError
from kvproof.conformance.releases.folders import locate

if TYPE_CHECKING:
    from kvproof.conformance.fuzz.campaign import CampaignProgress
    from kvproof.conformance.matrix.schedule import Outcome, Report
    from kvproof.conformance.monitor.finding import Signature


def matrix(
    context: typer.Context,
    releases: Annotated[
        str, typer.Option("--releases", metavar="A,B,...", help="Releases of vLLM, with commas.")
    ],
    seconds: Annotated[
        float | None,
        typer.Option(
            "--time-per-release", min=0.0, help="Seconds for each release; shrinking comes on top."
        ),
    ] = None,
    max_examples: Annotated[
        int | None, typer.Option("--max-examples", min=2, help="Runs for each release, at most.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Same seed, same runs.")] = 0,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Releases at a time.")] = 1,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for everything.")] = Path(
        "out/matrix"
    ),
    allow_dir: Annotated[
        Path | None,
        typer.Option(
            "--allow-dir",
            metavar="DIR",
            help="Where RELEASE.allow lists what its second budget passes over.",
        ),
    ] = None,
    severity: Severity = Class.MISSED,
    markdown: Annotated[
        Path | None,
        typer.Option("--markdown", metavar="FILE", help="Write the text to this file as well."),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            "--keep",
            metavar="DIR",
            help="Copy histories, verdicts and tests of what is new to DIR/RELEASE/.",
        ),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Run again what is finished in --out.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Fuzz releases, each in child processes, and write the table of what they break.

    Half of a release's budget goes into a campaign that passes over nothing, half into another one
    that passes over what the first found and keeps away from what its loud findings need. Finished
    campaigns stay in --out, so that the same command goes on where it was interrupted. Exit code 0:
    nothing found. 1: a finding.
    """
    names = _releases(releases)
    if seconds is None and max_examples is None:
        raise UsageError("say when to stop: --time-per-release SECONDS, --max-examples N, or both")
    known = _known(allow_dir, names)
    out.mkdir(parents=True, exist_ok=True)  # should fail now, not when there is a result to write

    from kvproof.conformance.cli import console
    from kvproof.conformance.matrix import document, process, schedule, store, table
    from kvproof.conformance.matrix import keep as keeping
    from kvproof.conformance.matrix.budgets import Bounds
    from kvproof.conformance.report.evidence import write_text

    bounds = Bounds(seconds, max_examples)
    order = schedule.Order(names, seed, bounds, out, known, jobs, severity)
    if fresh:
        for release in names:
            store.forget(order.folder(release))
    with _bars(names, seconds, max_examples) as report:
        outcomes = asyncio.run(schedule.run(order, process.run, report))
    made = document.assemble(order, outcomes, out / "matrix.md", _command(context))
    text = table.render(made)
    for file in (out / "matrix.md", markdown):
        if file is not None:
            write_text(file, text)
    kept = keeping.keep(made, keep) if keep is not None else []
    if not as_json:
        print(text, end="")
        for path in kept:
            print(f"kept: {path}")
    _refuse_problems(outcomes)
    if as_json:
        console.print_json(made)
    broken = any(row.findings for row in made.releases)
    raise typer.Exit(EXIT_FINDING if broken else EXIT_HOLDS)


def _command(context: typer.Context) -> str:
    """The command line, less what only changes how its outcome is told."""
    arguments: list[str] = context.find_root().obj
    return shlex.join(["kvproof", *(one for one in arguments if one not in ("--json", "--fresh"))])


def _releases(listed: str) -> list[str]:
    """The releases that are named, each once.

    Raises:
        UsageError: there is none, or one is not installed.
    """
    names = list(dict.fromkeys(name.strip() for name in listed.split(",") if name.strip()))
    if not names:
        raise UsageError("--releases names no release: expected A,B,... such as 0.21.0,0.32.0")
    for name in names:
        locate(name)
    return names


def _known(folder: Path | None, releases: Sequence[str]) -> dict[str, frozenset[Signature]]:
    """What is known of each release that has an allow file in ``folder``.

    Raises:
        UsageError: there is no such folder, or a file in it is none.
    """
    from kvproof.conformance.fuzz.allowed import read_allowed

    if folder is None:
        return {}
    if not folder.is_dir():
        raise UsageError(f"{folder}: there is no such folder of allow files")
    files = {release: folder / f"{release}.allow" for release in releases}
    return {release: read_allowed(file) for release, file in files.items() if file.exists()}


def _refuse_problems(outcomes: Sequence[Outcome]) -> None:
    problems = [f"vLLM {one.release}: {one.problem}" for one in outcomes if one.problem is not None]
    if problems:
        raise UsageError(f"not everything was carried out: {'; '.join(problems)}")


@contextmanager
def _bars(
    releases: Sequence[str], seconds: float | None, max_examples: int | None
) -> Iterator[Report]:
    """A progress bar for each release on standard error; nothing when that is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        tasks = {name: bars.add_task(name, total=2.0, start=False) for name in releases}

        def report(release: str, number: int, now: CampaignProgress) -> None:
            bars.start_task(tasks[release])
            bars.update(
                tasks[release],
                description=f"{release} budget {number}: {now.phase}, {now.examples} runs",
                completed=number - 1 + _part(now, seconds, max_examples),
            )

        yield report


def _part(now: CampaignProgress, seconds: float | None, max_examples: int | None) -> float:
    """How much of its half of the budget a campaign has used, from 0 to 1."""
    if now.phase == "done":
        return 1.0
    parts = [0.0]
    if seconds:
        parts.append(2 * now.seconds / seconds)
    if max_examples:
        parts.append(2 * now.examples / max_examples)
    return min(1.0, max(parts))
