"""``kvproof releases``: the vLLM releases that targets can name."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from kvproof.conformance.cli.options import Json
from kvproof.conformance.errors import UsageError

if TYPE_CHECKING:
    from kvproof.conformance.releases.drive import Driven
    from kvproof.conformance.releases.survey import Surveyed

_T = TypeVar("_T")

app = typer.Typer(help="Install vLLM releases side by side, list them, and run commands in them.")


@app.callback(invoke_without_command=True)
def _releases(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        raise UsageError(
            "name what to do: `kvproof releases add RELEASE`, `kvproof releases list` or "
            "`kvproof releases run RELEASE COMMAND...`"
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
def list_(
    features: Annotated[
        bool,
        typer.Option("--features", help="Show what each of them has, as a Markdown table."),
    ] = False,
    as_json: Json = False,
) -> None:
    """List the installed releases, and whether each can be driven here."""
    from kvproof.conformance.cli import console
    from kvproof.conformance.releases import drive, folders, survey

    releases = {release: folders.locate(release) for release in folders.installed()}
    if features:
        surveyed = _of_each("looking", survey.survey, releases)
        if as_json:
            console.print_json({"root": str(folders.releases_root()), "releases": surveyed})
        elif surveyed:
            _print_features(surveyed)
    else:
        driven = _of_each("importing", drive.check, releases)
        if as_json:
            console.print_json({"root": str(folders.releases_root()), "releases": driven})
        elif driven:
            _print_driven(driven)
    if not releases and not as_json:
        print(f"none in {folders.releases_root()}: `kvproof releases add RELEASE` installs one")


@app.command(
    "run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
def run(
    release: Annotated[
        str, typer.Argument(metavar="RELEASE", help="An installed version of vLLM.")
    ],
    command: Annotated[
        list[str],
        typer.Argument(
            metavar="COMMAND...",
            help="What to run: `vllm serve MODEL`, `python FILE`, any command.",
        ),
    ],
) -> None:
    """Run a command with a release as the vLLM that it imports; the exit code is the command's.

    `python` is the Python of this environment, `vllm` the release's own command.
    """
    from kvproof.conformance.releases.child import run_command_in

    raise typer.Exit(run_command_in(release, command))


def _of_each(title: str, look: Callable[[str, Path], _T], releases: dict[str, Path]) -> list[_T]:
    """What ``look`` says of each release; several processes at a time."""
    from kvproof.conformance.cli import console

    seen: list[_T] = []
    with console.progress(title) as advance, ThreadPoolExecutor(os.cpu_count()) as pool:
        for one in pool.map(look, releases, releases.values()):
            seen.append(one)
            advance("", len(seen), len(releases))
    return seen


def _print_driven(driven: list[Driven]) -> None:
    from rich.table import Table

    from kvproof.conformance.cli import console

    table = Table("release", "drives", "folder", box=None, pad_edge=False)
    for verdict in driven:
        table.add_row(verdict.release, verdict.problem or "yes", verdict.folder)
    console.output().print(table)


def _print_features(surveyed: list[Surveyed]) -> None:
    from kvproof.conformance.releases import survey

    print("\n".join(survey.markdown([one for one in surveyed if one.problem is None])))
    for one in surveyed:
        if one.problem is not None:
            print(f"vLLM {one.release} cannot be driven: {one.problem}")
