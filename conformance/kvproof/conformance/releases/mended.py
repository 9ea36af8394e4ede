"""A release without some of its faults: lines that are to blame, replaced when they are imported.

A finding that goes away with a mend has its cause in the lines that the mend replaces; a campaign
on a release that has all mends shows what nobody has explained. Nothing on disk is changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

import msgspec

from kvproof.conformance.errors import UsageError


class Edit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Lines ``first`` to ``last`` of a module, from 1, become ``text``; none when last < first."""

    module: str
    first: int
    last: int
    text: str


class Mend(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one fault takes; ``why`` is how it ought to be."""

    name: str
    why: str
    edit: list[Edit]


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    mend: list[Mend]


def read(path: Path) -> dict[str, Mend]:
    """The mends of a release, by name, in the file's order.

    Raises:
        UsageError: the file cannot be read or holds no mends.
    """
    try:
        return {mend.name: mend for mend in msgspec.toml.decode(path.read_bytes(), type=_File).mend}
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from None
    except msgspec.DecodeError as error:
        raise UsageError(f"{path}: no mends: {error}") from None


def install(mends: Sequence[Mend]) -> None:
    """Mend every module that this process imports from now on. Once a process."""
    edits = [edit for mend in mends for edit in mend.edit]
    get_code = SourceFileLoader.get_code

    def mended(loader: Any, fullname: str) -> CodeType | None:
        own = [edit for edit in edits if edit.module == fullname]
        if not own or not isinstance(loader, SourceFileLoader):
            return get_code(loader, fullname)
        path = loader.get_filename(fullname)
        return compile(edited(Path(path).read_text(), own), path, "exec", dont_inherit=True)

    SourceFileLoader.get_code = mended  # type: ignore[method-assign, assignment]


def edited(source: str, edits: Sequence[Edit]) -> str:
    """The source with all edits in it, of which no two overlap."""
    lines = source.splitlines()
    for edit in sorted(edits, key=lambda edit: (-edit.first, -edit.last)):
        lines[edit.first - 1 : edit.last] = edit.text.splitlines()
    return "\n".join(lines) + "\n"
