"""``kvproof bench scheduler``: CPU time and memory of two connector schedulers on the same work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kvproof.conformance.cli.options import Json
from kvproof.conformance.errors import UsageError
from kvproof.conformance.releases.child import active_release, home_of, run_in

if TYPE_CHECKING:
    from kvproof.conformance.bench.scheduler.rows import Row
    from kvproof.conformance.bench.scheduler.serving import Served

RELEASE = "0.32.0"
"""The release that kvproof's connector is written for."""


def scheduler(
    context: typer.Context,
    release: Annotated[
        str, typer.Option("--release", metavar="RELEASE", help="The release of vLLM.")
    ] = RELEASE,
    requests: Annotated[
        int, typer.Option("--requests", min=16, help="Running requests of a decode step.")
    ] = 1024,
    tokens: Annotated[
        int, typer.Option("--tokens", min=16, help="Tokens of each of these.")
    ] = 8192,
    prompt: Annotated[
        int, typer.Option("--prompt", min=16, help="Tokens of the prompt of a lookup.")
    ] = 131072,
    runs: Annotated[int, typer.Option("--runs", min=1, help="Lookups of each kind.")] = 9,
    growth: Annotated[
        bool, typer.Option(help="Also how costs grow: requests, prompt, groups, chunks.")
    ] = True,
    turns: Annotated[
        int,
        typer.Option("--turns", min=0, help="Turns of conversations to serve; 0: do without."),
    ] = 300,
    as_json: Json = False,
) -> None:
    """CPU time of the release's own connector scheduler and of kvproof's, on the same work.

    Both are in one process, see the same requests, step outputs and block tables, and have the
    release's CPU tier with the same contents; kvproof's is measured over its own tier, too. They
    take turns; a figure is the median of CPU time of the thread.
    The floor is what is left without a scheduler: one probe of each request, and the tier's own
    answers.
    """
    if active_release() != release:
        home_of(release)
        arguments: list[str] = context.find_root().obj
        raise typer.Exit(run_in(release, arguments))
    from kvproof.conformance.bench import settings
    from kvproof.conformance.bench.scheduler import goals, serving
    from kvproof.conformance.bench.scheduler import growth as grows
    from kvproof.conformance.bench.scheduler.scene import BLOCK
    from kvproof.conformance.cli import console

    before = settings.machine()
    try:
        with console.progress("measuring") as advance:
            rows = goals.measure(advance, requests, tokens, prompt, runs)
            tables = grows.tables(advance) if growth else []
            served = serving.tables(turns, advance) if turns else []
    except (ImportError, AttributeError) as error:
        raise UsageError(f"kvproof's connector does not fit vLLM {release}: {error}") from error
    asked = {
        "vLLM": release,
        "tokens of a block, a chunk and a hash": str(BLOCK),
        "lookups of a kind": str(runs),
        **before,
    }
    if as_json:
        console.print_json({"settings": asked, "rows": rows, "growth": tables, "served": served})
        return
    print("; ".join(f"{name}: {value}" for name, value in asked.items()) + "\n")
    _print(rows, "workload")
    for table in tables:
        print(f"\n{table.settings}\n")
        _print(table.rows, table.by)
    if served:
        print(f"\n{turns:,} turns of conversations, {serving.SETTINGS}\n")
        _print_served(served)


def _print(rows: list[Row], title: str) -> None:
    from rich.table import Column, Table

    from kvproof.conformance.cli import console

    numbers = ("vLLM", "kvproof", "own tier", "ratio", "goal", "floor")
    table = Table(
        title, *(Column(name, justify="right") for name in numbers), box=None, pad_edge=False
    )
    for row in rows:
        table.add_row(
            row.workload,
            f"{row.release:.4g} {row.unit}",
            f"{row.kvproof:.3g} {row.unit}",
            f"{row.own:.3g} {row.unit}",
            f"{row.ratio:.1f}x",
            "" if row.goal is None else f"{row.goal:g}x",
            "" if row.floor is None else f"{row.floor:.3g} {row.unit}",
        )
    console.output().print(table)


def _print_served(served: list[Served]) -> None:
    from rich.table import Column, Table

    from kvproof.conformance.cli import console

    numbers = ("hits / greatest", "tokens loaded", "computed", "stored / loaded", "blocks stored")
    table = Table(
        "slots",
        "scheduler",
        *(Column(name, justify="right") for name in numbers),
        box=None,
        pad_edge=False,
    )
    for one in served:
        table.add_row(
            f"{one.slots:,}",
            one.scheduler,
            f"{one.share:.3f}",
            f"{one.hits:,}",
            f"{one.computed:,}",
            f"{one.stored_per_loaded:.2f}",
            f"{one.stored:,}",
        )
    console.output().print(table)
