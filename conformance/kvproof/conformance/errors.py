"""The errors that a user sees, and the exit codes that they end a command with."""

from __future__ import annotations

EXIT_HOLDS = 0
EXIT_FINDING = 1
EXIT_USAGE = 2
EXIT_UNDECIDED = 3


class UsageError(Exception):
    """Wrong use or a missing component: one clear line, exit code 2, never a traceback."""
