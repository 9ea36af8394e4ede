"""The vLLM that this Python environment imports by itself, if it does: no release of ours.

Whoever maintains a connector has vLLM installed next to it and needs no second one.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
from pathlib import Path

_DISTRIBUTION = re.compile(r"vllm(?:_cpu)?-(\d+\.\d+\.\d+\w*)(?:\+[\w.]+)?")


def folder() -> Path | None:
    """The folder that holds the importable ``vllm``; None when there is none. Imports nothing."""
    spec = importlib.util.find_spec("vllm")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent.parent


def version() -> str | None:
    """Its own version number, whatever the wheel that carries it is called; None without one."""
    place = folder()
    if place is None:
        return None
    # The wheels of one release differ in name and local suffix; the folder says what is imported.
    for candidate in sorted(place.glob("vllm*.dist-info")):
        found = _DISTRIBUTION.fullmatch(candidate.stem)
        if found:
            return found.group(1)
    try:
        return importlib.metadata.version("vllm").partition("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return None
