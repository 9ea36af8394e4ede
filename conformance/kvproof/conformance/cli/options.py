"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
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


class Class(StrEnum):
    """Which findings count."""

    UNSAFE = "unsafe"
    MISSED = "missed"


Severity = Annotated[
    Class,
    typer.Option(
        "--severity",
        help="The least class that is judged: `unsafe` leaves out work, room and hits missed.",
    ),
]
