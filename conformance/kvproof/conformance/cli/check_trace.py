"""``kvproof check-trace``: judge a recorded trace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kvproof.conformance.cli.options import Class, Json, Severity
from kvproof.conformance.errors import EXIT_FINDING, EXIT_HOLDS


def check_trace(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A trace, as `record` writes it.")],
    severity: Severity = Class.MISSED,
    as_json: Json = False,
) -> None:
    """Check a recorded trace against the contract.

    Exit code 0: every obligation holds. 1: one is broken. The first unsafe finding is printed, for
    it ends the judging, and all of class missed before it, one for each signature.
    """
    from kvproof.conformance.cli import console, verdict
    from kvproof.conformance.trace import codec

    header, events = codec.read(file)

    from kvproof.conformance.monitor.monitor import Monitor

    monitor = Monitor(header)
    finding = None
    with console.progress("checking") as advance:
        for number, event in enumerate(events, start=1):
            finding = monitor.feed(event)
            if finding is not None:
                break
            if number % 1000 == 0:
                advance("", number, len(events))
    coverage = dict(monitor.coverage())
    missed = monitor.missed if severity is Class.MISSED else []
    findings = [*([finding] if finding else []), *missed]
    if as_json:
        console.print_json(
            {
                "verdict": "finding" if findings else "holds",
                "file": str(file),
                "target": header.target,
                "events": len(events),
                "coverage": coverage,
                "finding": finding,
                "missed": missed,
            }
        )
    elif not findings:
        print(f"holds: {len(events)} events of {header.target}")
        console.print_counts("action or guard", {k: n for k, n in coverage.items() if n})
    else:
        out = console.output()
        out.print(f"{file} ({header.target}, {len(events)} events)")
        verdict.show_all(out, findings)
    raise typer.Exit(EXIT_FINDING if findings else EXIT_HOLDS)
