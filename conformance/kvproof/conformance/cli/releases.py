"""``kvproof releases``: the vLLM releases that targets can name."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Annotated

import typer

from kvproof.conformance.cli.options import Json
from kvproof.conformance.errors import UsageError

app = typer.Typer(help="Install vLLM releases side by side, and list them.")


@app.callback(invoke_without_command=True)
def _releases(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        raise UsageError(
            "name what to do: `kvproof releases add RELEASE` or `kvproof releases list`"
        )


@app.command("add")
def add(
    releases: Annotated[
        list[str], typer.Argument(metavar="RELEASE...", help="Versions of vLLM, such as 0.32.0.")
    ],
    as_json: Json = False,
) -> None:
    """Install releases, each in a folder of its own; those that are there stay as they are."""
    from kvproof.conformance.cli import console
    from kvproof.conformance.releases import folders, install, shared

    for release in releases:
        folders.folder_of(release)  # refuse a misspelt one before minutes go into the others
    outcome: dict[str, dict[str, object]] = {}
    for release in releases:
        with console.progress(f"vLLM {release}", in_bytes=True) as advance:
            added = install.add(release, advance)
        folder = folders.locate(release)
        outcome[release] = {"folder": str(folder), "added": added}
        if not as_json:
            print(f"vLLM {release} {'installed in' if added else 'is there:'} {folder}", flush=True)
    differing = shared.differing()
    if as_json:
        console.print_json({"releases": outcome, "differing": differing})
    elif differing:
        told = ", ".join(f"{name} {here} ({pin})" for name, (here, pin) in differing.items())
        print(f"left as they are, though other versions are pinned: {told}")


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List the installed releases, and whether each can be driven here."""
    from rich.table import Table

    from kvproof.conformance.cli import console
    from kvproof.conformance.releases import drive, folders

    releases = folders.installed()
    verdicts = []
    with console.progress("importing") as advance, ThreadPoolExecutor() as pool:
        checks = pool.map(lambda release: drive.check(release, folders.locate(release)), releases)
        for number, verdict in enumerate(checks, start=1):
            verdicts.append(verdict)
            advance("", number, len(releases))
    if as_json:
        console.print_json({"root": str(folders.releases_root()), "releases": verdicts})
        return
    if not verdicts:
        print(f"none in {folders.releases_root()}: `kvproof releases add RELEASE` installs one")
        return
    table = Table("release", "drives", "folder", box=None, pad_edge=False)
    for verdict in verdicts:
        table.add_row(verdict.release, verdict.problem or "yes", verdict.folder)
    console.output().print(table)
