"""``kvproof bench``: figures, each table with the settings that it was made with."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kvproof.conformance.cli.bench_scheduler import scheduler
from kvproof.conformance.cli.bench_transfer import transfer
from kvproof.conformance.cli.options import Json
from kvproof.conformance.errors import UsageError
from kvproof.conformance.releases.folders import installed, locate

if TYPE_CHECKING:
    from rich.table import Table

    from kvproof.conformance.bench.fuzz import Figures
    from kvproof.conformance.cli.console import Advance
    from kvproof.conformance.fuzz.campaign import CampaignResult

app = typer.Typer(
    help="Measure fuzzer, monitor, proofs, schedulers and transfers.", no_args_is_help=True
)
app.command("scheduler")(scheduler)
app.command("transfer")(transfer)

Releases = Annotated[
    str | None,
    typer.Option(
        "--releases", metavar="A,B,...", help="Releases of vLLM [default: all that are installed]"
    ),
]


@app.command("fuzz")
def fuzz(
    releases: Releases = None,
    runs: Annotated[int, typer.Option("--runs", min=1, help="Seeds: 1, 2, ... N.")] = 3,
    seconds: Annotated[
        float, typer.Option("--time", min=0.1, help="Seconds for each campaign.")
    ] = 30.0,
    as_json: Json = False,
) -> None:
    """Moves and events a second, and the time from nothing to each known case.

    Releases take turns, one campaign at a time, each from an empty example database and under the
    whole monitor; nothing is shrunk. A case's time is the median over the seeds, where a seed that
    did not find it took longer than any that did. Beside it: the monitor alone on a recorded trace.
    """
    names = _releases(releases)
    from kvproof.conformance.bench import fuzz as bench
    from kvproof.conformance.bench import monitor, settings
    from kvproof.conformance.cli import console

    before = settings.machine()
    with tempfile.TemporaryDirectory() as folder, console.progress("measuring") as advance:
        out = Path(folder)
        results = asyncio.run(_campaigns(names, runs, seconds, out, advance))
        figures = [
            bench.figures(name, results[name], monitor.judge(monitor.record(name, out), 2.0))
            for name in names
        ]
    asked = {"seeds": f"1 to {runs}", "seconds a campaign": f"{seconds:g}", **before}
    if as_json:
        console.print_json({"settings": asked, "releases": figures})
        return
    _say(asked)
    _print_speed(figures)
    _print_cases(figures)


@app.command("monitor")
def monitor_(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE]...", help="Traces to judge.")
    ] = None,
    releases: Releases = None,
    seconds: Annotated[
        float, typer.Option("--time", min=0.0, help="Seconds for each trace.")
    ] = 5.0,
    as_json: Json = False,
) -> None:
    """Events a second that the monitor judges: of traces, or of releases' scripted workload."""
    if files and releases:
        raise UsageError("name traces or --releases, not both")
    names = [] if files else _releases(releases)
    from kvproof.conformance.bench import monitor, settings
    from kvproof.conformance.cli import console

    before = {"seconds a trace": f"{seconds:g}", **settings.machine()}
    with tempfile.TemporaryDirectory() as folder, console.progress("measuring") as advance:
        paths = files or [monitor.record(name, Path(folder)) for name in names]
        judged = []
        for number, path in enumerate(paths):
            advance(path.name, number, len(paths))
            judged.append(monitor.judge(path, seconds))
    if as_json:
        console.print_json({"settings": before, "traces": judged})
        return
    table = _table("trace", "target", numbers=("events", "times", "events/s"))
    for one in judged:
        rate = f"{one.events_per_second:.0f}"
        table.add_row(one.trace, one.target, str(one.events), str(one.times), rate)
    _say(before)
    console.output().print(table)


@app.command("prove")
def prove_(
    runs: Annotated[int, typer.Option("--runs", min=1, help="Times that all is proved.")] = 3,
    as_json: Json = False,
) -> None:
    """Seconds to prove everything, on the spec and on the generated text in turns."""
    from kvproof.conformance.bench import prove, settings
    from kvproof.conformance.cli import console

    before = {"runs": str(runs), **settings.machine()}
    with console.progress("proving") as advance:
        sides = prove.prove(runs, advance)
    if as_json:
        console.print_json({"settings": before, "sides": sides})
        return
    table = _table("side", "worst", numbers=("proved", "median s", "fastest s", "worst s"))
    for one in sides:
        table.add_row(
            one.side,
            one.slowest_obligation,
            f"{one.proved}/{one.total}",
            f"{one.median:.2f}",
            f"{one.fastest:.2f}",
            f"{one.worst_seconds:.2f}",
        )
    _say(before)
    console.output().print(table)


def _releases(listed: str | None) -> list[str]:
    """The releases that are named, or all that are installed.

    Raises:
        UsageError: one is not installed, or none is.
    """
    asked = installed() if listed is None else listed.split(",")
    names = list(dict.fromkeys(name.strip() for name in asked if name.strip()))
    if not names:
        raise UsageError("there is no release to measure: see `kvproof releases add`")
    for name in names:
        locate(name)
    return names


async def _campaigns(
    releases: list[str], runs: int, seconds: float, out: Path, advance: Advance
) -> dict[str, list[CampaignResult]]:
    from kvproof.conformance.bench import fuzz as bench
    from kvproof.conformance.matrix import process
    from kvproof.conformance.matrix.messages import CampaignFailed

    seeds = range(1, runs + 1)
    try:
        return await bench.campaigns(releases, seeds, seconds, out, process.run, advance)
    except CampaignFailed as error:
        raise UsageError(f"a campaign was not carried out: {error}") from None


def _say(settings: dict[str, str]) -> None:
    print("; ".join(f"{name}: {value}" for name, value in settings.items()) + "\n")


def _print_speed(figures: list[Figures]) -> None:
    from kvproof.conformance.cli import console

    table = _table("release", numbers=("runs", "steps/s", "events/s", "monitor alone, events/s"))
    for one in figures:
        rates = (one.steps_per_second, one.events_per_second, one.monitor.events_per_second)
        table.add_row(one.release, str(one.examples), *(f"{rate:.0f}" for rate in rates))
    console.output().print(table)


def _print_cases(figures: list[Figures]) -> None:
    from kvproof.conformance.cli import console
    from kvproof.conformance.matrix.cases import CASES

    table = _table("seconds to", numbers=tuple(one.release for one in figures))
    for case in CASES:
        cells = []
        for one in figures:
            time = one.cases.get(case.id)
            if time is None:
                cells.append("–")
                continue
            median = "not by most" if time.median is None else f"{time.median:.1f}"
            cells.append(f"{median} ({len(time.found)}/{time.runs})")
        table.add_row(f"{case.id} {case.title}", *cells)
    print()
    console.output().print(table)


def _table(*titles: str, numbers: tuple[str, ...]) -> Table:
    """A table whose columns of numbers come last, flush right."""
    from rich.table import Column, Table

    columns = [Column(title, justify="right") for title in numbers]
    return Table(*titles, *columns, box=None, pad_edge=False)
