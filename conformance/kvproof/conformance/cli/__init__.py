"""The command line. ``main`` is the console script; it imports the rest only when it runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``kvproof`` with ``arguments`` (by default the process's own) and return its exit code.

    0 holds, 1 a finding, 2 wrong use or a missing component, 3 undecided. With 2, standard error
    has exactly one line that says what to do; nothing escapes as a traceback.
    """
    from kvproof.conformance.cli.outcome import guarded

    return guarded(list(sys.argv[1:] if arguments is None else arguments))
