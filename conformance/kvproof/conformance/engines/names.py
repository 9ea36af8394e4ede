"""What a target is called.

``vllm:RELEASE`` is a release as it is; ``vllm:RELEASE+CLASS`` has somebody else's class in the
place of the release's own; ``kvproof-on-vllm:RELEASE`` is short for the latter with our own
connector. The name is all that a history keeps of its target, so it must be enough to build the
target again. CLASS is ``package.module:Class`` or ``path/to/file.py:Class``.
"""

from __future__ import annotations

import re

import msgspec

from kvproof.conformance.errors import UsageError

OURS = "kvproof.impl.connector:OffloadingConnector"
"""Our own connector; named, not imported, since a release must be there to import it."""

NAME = re.compile(
    r"vllm:(?P<release>[^+:]*)(\+(?P<given>.+))?|kvproof-on-vllm:(?P<around_ours>[^+:]*)"
)
"""``release`` and, for somebody else's class, ``given``; or ``around_ours``, a release."""

_GIVEN = re.compile(r"(?P<place>[^:]+\.py|[^\W\d]\w*(\.[^\W\d]\w*)*):(?P<name>[^\W\d][\w.]*)")


class TargetName(msgspec.Struct, frozen=True):
    """A parsed target name. ``given`` is the class that takes the place of the release's own."""

    release: str
    given: str | None = None

    def __str__(self) -> str:
        if self.given == OURS:
            return f"kvproof-on-vllm:{self.release}"
        return f"vllm:{self.release}" + (f"+{self.given}" if self.given else "")


def parse(name: str) -> TargetName:
    """Take a target's name apart.

    Raises:
        UsageError: it is not written like one.
    """
    found = NAME.fullmatch(name)
    if found is None:
        raise UsageError(
            f"unknown target {name!r}: expected vllm:RELEASE or kvproof-on-vllm:RELEASE,"
            " say vllm:0.32.0"
        )
    if found["around_ours"] is not None:
        return TargetName(found["around_ours"], OURS)
    if found["given"] is not None:
        place_and_name(found["given"])
    return TargetName(found["release"], found["given"])


def given_in(name: str) -> str | None:
    """The class that a target's name gives; None for a release as it is, or any other name."""
    return parse(name).given if NAME.fullmatch(name) else None


def place_and_name(given: str) -> tuple[str, str]:
    """Where a class lies (a module, or a file that ends in ``.py``), and its name there.

    Raises:
        UsageError: ``given`` is not written so.
    """
    found = _GIVEN.fullmatch(given)
    if found is None:
        raise UsageError(
            f"{given!r} names no class: expected package.module:Class or file.py:Class"
        )
    return found["place"], found["name"]
