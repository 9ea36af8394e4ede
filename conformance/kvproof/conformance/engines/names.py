"""What a target is called: ``vllm:RELEASE``, or ``vllm:RELEASE+CLASS`` for somebody else's class.

The name is all that a history keeps of its target, so it must be enough to build the target again.
CLASS is ``package.module:Class`` or ``path/to/file.py:Class``.
"""

from __future__ import annotations

import re

import msgspec

from kvproof.conformance.errors import UsageError

NAME = re.compile(r"vllm:(?P<release>[^+:]*)(\+(?P<given>.+))?")
"""``release`` and, for somebody else's class, ``given``."""

_GIVEN = re.compile(r"(?P<place>[^:]+\.py|[^\W\d]\w*(\.[^\W\d]\w*)*):(?P<name>[^\W\d][\w.]*)")


class TargetName(msgspec.Struct, frozen=True):
    """A parsed target name. ``given`` is the class that takes the place of the release's own."""

    release: str
    given: str | None = None

    def __str__(self) -> str:
        return f"vllm:{self.release}" + (f"+{self.given}" if self.given else "")


def parse(name: str) -> TargetName:
    """Take a target's name apart.

    Raises:
        UsageError: it is not written like one.
    """
    found = NAME.fullmatch(name)
    if found is None:
        raise UsageError(f"unknown target {name!r}: expected vllm:RELEASE, say vllm:0.32.0")
    if found["given"] is not None:
        place_and_name(found["given"])
    return TargetName(found["release"], found["given"])


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
