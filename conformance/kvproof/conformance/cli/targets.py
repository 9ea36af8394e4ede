"""From ``--target vllm:RELEASE`` to a target in the right process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from kvproof.conformance.errors import UsageError
from kvproof.conformance.releases.child import active_release, run_in
from kvproof.conformance.releases.folders import locate

if TYPE_CHECKING:
    from kvproof.conformance.engines.base import Target

_VLLM = "vllm:"


def open_target(name: str, context: typer.Context) -> Target:
    """The target called ``name``, ready in this process.

    When the target's release is not active here, the whole command is run again in a child process
    of that release, and this one ends with the child's exit code.

    Raises:
        UsageError: no such target, or its release is not installed.
        typer.Exit: the command was carried out by a child process.
    """
    if not name.startswith(_VLLM):
        raise UsageError(f"unknown target {name!r}: expected vllm:RELEASE, say vllm:0.32.0")
    release = name.removeprefix(_VLLM)
    locate(release)
    if active_release() != release:
        arguments: list[str] = context.find_root().obj
        raise typer.Exit(run_in(release, arguments))
    from kvproof.conformance.engines.vllm import VllmTarget

    target = VllmTarget()
    if target.name != name:
        raise UsageError(f"{name} was asked for, but {target.name} is imported here")
    return target
