"""Where releases lie: one folder per release below the user's cache folder.

A release is there when its folder is: folders are filled elsewhere and appear by one rename, so no
half release can be seen here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from kvproof.conformance.errors import UsageError

_RELEASE = re.compile(r"\d+(\.\d+)*((a|b|rc)\d+)?(\.(post|dev)\d+)?")


def cache_root() -> Path:
    """``$KVPROOF_CACHE``, else ``kvproof`` below ``$XDG_CACHE_HOME`` or ``~/.cache``."""
    own = os.environ.get("KVPROOF_CACHE")
    if own:
        return Path(own).expanduser().absolute()
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "kvproof"


def releases_root() -> Path:
    """The folder that holds one folder per release."""
    return cache_root() / "releases"


def folder_of(release: str) -> Path:
    """The folder of ``release``, there or not.

    Raises:
        UsageError: ``release`` is not written like a version (and so could name any folder).
    """
    if not _RELEASE.fullmatch(release):
        raise UsageError(f"{release!r} is not a release: expected a version such as 0.32.0")
    return releases_root() / release


def locate(release: str) -> Path:
    """The folder of an installed release; put it first on the path to import that vLLM.

    Raises:
        UsageError: it is not installed; the message names the command that installs it.
    """
    folder = folder_of(release)
    if not (folder / "vllm").is_dir():
        raise UsageError(f"vLLM {release} is not installed: run `kvproof releases add {release}`")
    return folder


def installed() -> list[str]:
    """The installed releases, oldest version first."""
    root = releases_root()
    if not root.is_dir():
        return []
    names = (entry.name for entry in root.iterdir() if (entry / "vllm").is_dir())
    return by_version(filter(_RELEASE.fullmatch, names))


def by_version(releases: Iterable[str]) -> list[str]:
    """These releases, oldest version first."""
    return sorted(releases, key=_numbers)


def _numbers(release: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", release)]
