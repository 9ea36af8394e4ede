"""The list of mutants that live, each with the reason why nothing can notice it."""

from __future__ import annotations

import tomllib
from pathlib import Path

from kvproof.conformance.errors import UsageError

SURVIVORS = Path(__file__).parent / "survivors.toml"
"""The committed list: a mutant's name = one line of explanation."""


def read(path: Path = SURVIVORS) -> dict[str, str]:
    """Names and reasons, in the file's order.

    Raises:
        UsageError: the file is no such list.
    """
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path}: {error}") from None
    for name, why in entries.items():
        if not isinstance(why, str) or not why.strip():
            raise UsageError(f"{path}: no reason is given for {name!r}")
    return entries
