"""``kvproof report``: the ledger, one self-contained HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kvproof.conformance.cli.options import Json

if TYPE_CHECKING:
    from kvproof.conformance.report.evidence import Proofs


def report(
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the page goes.")],
    sources: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="DIR",
            help="A folder with campaigns, histories and traces; may be given again.",
        ),
    ] = None,
    no_proofs: Annotated[
        bool, typer.Option("--no-prove", help="Leave the proofs out; the page says so.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write the ledger: for every invariant its sentence and the evidence for it.

    Runs the proofs, and judges every trace below the --from folders anew. Exit code 0: the page is
    written, whatever it says; `prove`, `check-trace` and `fuzz` have the verdicts.
    """
    from kvproof.conformance.cli import console
    from kvproof.conformance.report import ledger, page, proofs, terminal
    from kvproof.conformance.report import sources as reading
    from kvproof.conformance.report.evidence import write_text

    with console.progress("judging") as advance:
        evidence = reading.gather(sources or [], advance)

    def prove(generated: bool) -> Proofs | None:
        if no_proofs:
            return None
        with console.progress("proving") as advance:
            name = "the generated text" if generated else "the spec"
            return proofs.run(generated, lambda done, total: advance(name, done, total))

    written = ledger.assemble(evidence, prove(generated=False), prove(generated=True))
    with console.progress("drawing") as advance:
        html = page.render(written, lambda done, total: advance("", done, total))
    write_text(out, html)
    if as_json:
        console.print_json({"file": str(out), "ledger": written})
    else:
        terminal.show(console.output(), written)
        print(out)
