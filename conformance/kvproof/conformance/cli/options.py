"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]

TargetName = Annotated[
    str,
    typer.Option("--target", "-t", metavar="TARGET", help="The scheduler to run: vllm:RELEASE."),
]
