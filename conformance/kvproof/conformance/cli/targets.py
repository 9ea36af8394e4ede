"""From ``--target`` to a target in the right process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import typer

from kvproof.conformance.engines import names
from kvproof.conformance.errors import UsageError
from kvproof.conformance.releases.child import active_release, home_of, run_in

if TYPE_CHECKING:
    from kvproof.conformance.engines.base import Target
    from kvproof.conformance.engines.vllm import VllmTarget


def open_target(name: str, context: typer.Context, scheduler: str | None = None) -> VllmTarget:
    """The target called ``name``, ready in this process.

    When the target's release is not active here, the whole command is run again in a child process
    of that release, and this one ends with the child's exit code.

    Args:
        name: ``vllm:RELEASE``, ``kvproof-on-vllm:RELEASE``, or another name that histories have.
        context: the command's.
        scheduler: the class that takes the place of the release's own, as ``--scheduler`` has it.

    Raises:
        UsageError: no such target, or its release is not there, or no such class.
        typer.Exit: the command was carried out by a child process.
    """
    wanted = names.parse(name)
    if scheduler is not None:
        if wanted.given is not None:
            raise UsageError(f"{name} names a class already: leave --scheduler out")
        names.place_and_name(scheduler)
        wanted = names.TargetName(wanted.release, scheduler)
    if active_release() != wanted.release:
        home_of(wanted.release)
        arguments: list[str] = context.find_root().obj
        raise typer.Exit(run_in(wanted.release, arguments))
    from kvproof.conformance.engines.vllm import VllmTarget

    target = VllmTarget(wanted.given, tells_caught=True)
    if target.name != str(wanted):
        raise UsageError(f"{wanted} was asked for, but {target.name} is imported here")
    return target


def check_behind(target: Target, behind: Mapping[str, str]) -> None:
    """See that a target can be set up with such a tier, device and fault.

    Raises:
        UsageError: it cannot.
    """
    import msgspec

    from kvproof.conformance.engines.base import GroupSetup, Setup

    plain = Setup(groups=(GroupSetup("full", 4),))
    objection = target.supports(msgspec.structs.replace(plain, **behind))
    if objection is not None:
        wanted = ", ".join(f"{name} {value}" for name, value in behind.items() if value)
        raise UsageError(f"{target.name} cannot be set up with {wanted}: {objection}")
