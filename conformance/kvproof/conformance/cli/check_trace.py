"""``kvproof check-trace``: judge a recorded trace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kvproof.conformance.cli.options import Json
from kvproof.conformance.errors import EXIT_FINDING, EXIT_HOLDS


def check_trace(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A trace, as `record` writes it.")],
    as_json: Json = False,
) -> None:
    """Check a recorded trace against the contract.

    Exit code 0: every obligation holds. 1: one is broken, and the first such is printed.
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
    if as_json:
        console.print_json(
            {
                "verdict": "holds" if finding is None else "finding",
                "file": str(file),
                "target": header.target,
                "events": len(events),
                "coverage": coverage,
                "finding": finding,
            }
        )
    elif finding is None:
        print(f"holds: {len(events)} events of {header.target}")
        console.print_counts("action or guard", {k: n for k, n in coverage.items() if n})
    else:
        out = console.output()
        out.print(f"{file} ({header.target}, {len(events)} events)")
        verdict.show(out, finding)
    raise typer.Exit(EXIT_HOLDS if finding is None else EXIT_FINDING)
