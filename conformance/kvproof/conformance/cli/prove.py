"""``kvproof prove``: prove what the spec states, or the same on the generated reference."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kvproof.conformance.cli.options import Json
from kvproof.conformance.errors import EXIT_FINDING, EXIT_HOLDS, EXIT_UNDECIDED, UsageError

if TYPE_CHECKING:
    from kvproof.spec.prove import ObligationResult

_EXIT = {"proved": EXIT_HOLDS, "failed": EXIT_FINDING, "unknown": EXIT_UNDECIDED}


def prove(
    generated: Annotated[
        bool, typer.Option("--generated", help="Prove the committed reference's own text.")
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, help="Solver processes [default: one for each core]"),
    ] = None,
    timeout_ms: Annotated[
        int, typer.Option("--timeout-ms", min=1, help="Solver time for each obligation.")
    ] = 60_000,
    mutants: Annotated[
        bool,
        typer.Option("--mutants", help="Delete every statement and condition; tell who notices."),
    ] = False,
    actions: Annotated[
        list[str] | None,
        typer.Option("--action", metavar="ACTION", help="With --mutants: of this action alone."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Prove every obligation of the spec, for any number of requests, jobs, blocks and workers.

    Exit code 0: all are proved. 1: one has a counterexample, which is printed. 3: the solver left
    one undecided, which counts as a failure.

    With --mutants, 0: each deletion is noticed by a proof or a history, or listed with the reason
    why it is not. 1: one is neither, or the list names one that is noticed.
    """
    if actions and not mutants:
        raise UsageError("--action belongs to --mutants")
    if mutants:
        if generated:
            raise UsageError("a mutant is one of the spec and the reference: leave out --generated")
        from kvproof.conformance.cli.mutants import prove_mutants

        code = prove_mutants(actions or [], jobs or os.cpu_count() or 1, timeout_ms, as_json)
        raise typer.Exit(code)
    from kvproof.conformance.cli import console
    from kvproof.spec.parse import ParseError
    from kvproof.spec.prove import prove_all

    began = time.monotonic()
    try:
        with console.progress("proving") as advance:
            results = prove_all(
                generated=generated,
                jobs=jobs or os.cpu_count() or 1,
                timeout_ms=timeout_ms,
                progress=lambda done, total: advance("", done, total),
            )
    except ParseError as error:
        raise UsageError(f"the reference cannot be read back: {error}") from None
    seconds = time.monotonic() - began
    verdict = _verdict(results)
    if as_json:
        console.print_json(
            {
                "verdict": verdict,
                "generated": generated,
                "seconds": round(seconds, 3),
                **_counts(results),
                "obligations": [_as_dict(result) for result in results],
            }
        )
    else:
        _print(results, seconds)
    raise typer.Exit(_EXIT[verdict])


def _verdict(results: Sequence[ObligationResult]) -> str:
    """The worst status; nothing to prove is undecided, never proved."""
    found = {result.status for result in results} or {"unknown"}
    return next(status for status in ("failed", "unknown", "proved") if status in found)


def _counts(results: Sequence[ObligationResult]) -> dict[str, int]:
    statuses = Counter(result.status for result in results)
    return {"total": len(results), **{status: statuses[status] for status in _EXIT}}


def _as_dict(result: ObligationResult) -> dict[str, object]:
    return {
        "name": result.name,
        "kind": result.kind,
        "action": result.action,
        "id": result.id,
        "status": result.status,
        "seconds": round(result.seconds, 3),
        "model": result.model,
    }


def _print(results: Sequence[ObligationResult], seconds: float) -> None:
    from rich.table import Table

    from kvproof.conformance.cli import console

    out = console.output()
    table = Table("kind", "proved", "failed", "unknown", "seconds", box=None, pad_edge=False)
    for kind in dict.fromkeys(result.kind for result in results):
        of_kind = [result for result in results if result.kind == kind]
        statuses = Counter(result.status for result in of_kind)
        spent = sum(result.seconds for result in of_kind)
        counts = (str(statuses[status]) for status in _EXIT)
        table.add_row(kind, *counts, f"{spent:.1f}")
    out.print(table)
    failed = [result for result in results if result.status != "proved"]
    for result in failed:
        if result.model:
            out.print(f"\na counterexample to {result.name}:", style="bold")
            out.print(result.model, highlight=False)
    proved = sum(1 for result in results if result.status == "proved")
    print(f"{proved} of {len(results)} obligations proved in {seconds:.1f} s")
    # Last, so that nobody has to scroll for it.
    for result in failed:
        what = "function" if result.kind == "function" else "action"
        where = f"{what} {result.action}" if result.action else "the initial state"
        out.print(
            f"{result.status}: {result.id or '-'} in {where} ({result.name})", style="bold red"
        )
