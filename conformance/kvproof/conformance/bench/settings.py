"""What a figure depends on beside what it measures."""

from __future__ import annotations

import os
import platform
from importlib import metadata


def machine() -> dict[str, str]:
    """The machine and the versions, as one would ask for them when a figure is doubted."""
    return {
        "kvproof": metadata.version("kvproof"),
        "Python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "load": f"{os.getloadavg()[0]:.1f} at the start",
    }
