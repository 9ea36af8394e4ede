"""``kvproof generate``: write the executable reference, or check the committed one."""

from __future__ import annotations

from importlib import resources
from itertools import zip_longest
from pathlib import Path
from typing import Annotated

import typer

from kvproof.conformance.cli.options import Json
from kvproof.conformance.errors import EXIT_FINDING, EXIT_HOLDS, UsageError


def generate(
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit with 1 when the file is stale.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Generate the executable reference from the spec: contract, mechanism and functions."""
    from kvproof.conformance.cli import console
    from kvproof.spec.contract import contract
    from kvproof.spec.functions.emit import render_functions
    from kvproof.spec.generate import render, render_on_top
    from kvproof.spec.mechanism import mechanism

    folder = _model()
    wanted = {
        folder / "contract.py": render(),
        folder / "mechanism.py": render_on_top(contract(), mechanism()),
        folder / "functions.py": render_functions(),
    }
    found = {p: p.read_text(encoding="utf-8") if p.exists() else "" for p in wanted}
    stale = [path for path in wanted if found[path] != wanted[path]]
    if not check:
        for path in stale:
            _write(path, wanted[path])
    if as_json:
        console.print_json(
            {
                "files": [
                    {"file": str(p), "stale": p in stale, "written": p in stale and not check}
                    for p in wanted
                ],
                "stale": bool(stale),
                "written": bool(stale) and not check,
            }
        )
    else:
        for path in wanted:
            if path not in stale:
                print(f"{path}: fresh")
            elif not check:
                print(f"{path}: written")
            else:
                line = _first(found[path], wanted[path])
                print(f"{path}: stale, run `kvproof generate`; it differs from line {line}")
    raise typer.Exit(EXIT_FINDING if stale and check else EXIT_HOLDS)


def _model() -> Path:
    folder = resources.files("kvproof.model")
    if not isinstance(folder, Path):
        raise UsageError("the reference can only be generated in a checkout, not in an archive")
    return folder


def _first(found: str, wanted: str) -> int:
    """The number of the first line in which they differ."""
    pairs = zip_longest(found.splitlines(), wanted.splitlines())
    return next((number for number, (a, b) in enumerate(pairs, start=1) if a != b), 0)


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(path.name + ".part")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
