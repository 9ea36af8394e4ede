"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]

TargetName = Annotated[
    str,
    typer.Option(
        "--target",
        "-t",
        metavar="TARGET",
        help="The scheduler to run: vllm:RELEASE, or kvproof-on-vllm:RELEASE for ours inside it.",
    ),
]

Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="CLASS",
        help="A class in the place of the release's own: package.module:Class or file.py:Class.",
    ),
]


class TierName(StrEnum):
    """What is behind the scheduler."""

    CPU = "cpu"
    TIERING = "tiering"
    OURS = "ours"


Tier = Annotated[
    TierName,
    typer.Option(
        "--tier",
        help="The tier that is stored to: the release's `cpu` tier, its `tiering`, with a second"
        " tier of files behind that one, or kvproof's own (`ours`).",
    ),
]


class DeviceName(StrEnum):
    """What carries copies out."""

    NONE = ""
    SIMULATED = "simulated"


Device = Annotated[
    DeviceName,
    typer.Option(
        "--device",
        help="`simulated`: copies move bytes, by kvproof's own transfers on a simulated device that"
        " tells races; without it, copies only take their time.",
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
