"""``kvproof report``: the ledger, one self-contained HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kvproof.conformance.cli.options import Json


def report(
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the page goes.")],
    as_json: Json = False,
) -> None:
    """Write the ledger: for every invariant its sentence and the evidence for it."""
    from kvproof.conformance.cli import console
    from kvproof.conformance.report import ledger

    ledger.write(out)
    if as_json:
        console.print_json({"file": str(out)})
    else:
        print(out)
