"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]

TargetName = Annotated[
    str,
    typer.Option("--target", "-t", metavar="TARGET", help="The scheduler to run: vllm:RELEASE."),
]

Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="CLASS",
        help="A class in the place of the release's own: package.module:Class or file.py:Class.",
    ),
]
