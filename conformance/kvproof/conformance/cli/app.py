"""The commands, one file each, put together. What a command needs it imports when it is called."""

from __future__ import annotations

from importlib import metadata
from typing import Annotated

import typer

from kvproof.conformance.cli import (
    bench,
    check_trace,
    fuzz,
    generate,
    matrix,
    prove,
    record,
    releases,
    replay,
    report,
    soak,
)
from kvproof.conformance.errors import EXIT_HOLDS, UsageError

_app = typer.Typer(
    name="kvproof",
    help="Prove, check and fuzz the schedulers that offload KV-cache blocks.",
    epilog="Exit codes: 0 holds, 1 a finding, 2 wrong use or a missing component, 3 undecided.",
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_app.command("prove")(prove.prove)
_app.command("generate")(generate.generate)
_app.add_typer(releases.app, name="releases")
_app.command("record")(record.record)
_app.command("fuzz")(fuzz.fuzz)
_app.command("replay")(replay.replay)
_app.command("soak")(soak.soak)
_app.command("check-trace")(check_trace.check_trace)
_app.command("matrix")(matrix.matrix)
_app.add_typer(bench.app, name="bench")
_app.command("report")(report.report)


@_app.callback(invoke_without_command=True)
def _kvproof(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        print(f"kvproof {metadata.version('kvproof')}")
        raise typer.Exit(EXIT_HOLDS)
    if context.invoked_subcommand is None:
        raise UsageError("name a command: `kvproof --help` lists them")


def run(arguments: list[str]) -> int:
    """Parse ``arguments`` and run the command that they name; returns its exit code.

    Raises:
        UsageError: the arguments do not fit, or what the command raised.
    """
    command = typer.main.get_command(_app)
    try:
        # Not typer's own entry point: it ends a broken pipe with exit code 1, here a finding.
        with command.make_context("kvproof", list(arguments), obj=arguments) as context:
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except typer.Abort:
        raise KeyboardInterrupt from None
    except typer.TyperException as error:
        raise UsageError(_message(error)) from None
    return EXIT_HOLDS


def _message(error: typer.TyperException) -> str:
    told = error.format_message()
    return (told[:1].lower() + told[1:]).rstrip(".")
