"""Playing a stored history again."""

from __future__ import annotations

from pathlib import Path

import msgspec

from kvproof.conformance.engines.base import History, Target
from kvproof.conformance.errors import UsageError
from kvproof.conformance.fuzz.session import MakeJudge, Session, monitor, play
from kvproof.conformance.monitor.finding import Finding


def load(path: Path) -> History:
    """Read a history file.

    Raises:
        UsageError: the file cannot be read or holds no history.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=History)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from None
    except msgspec.DecodeError as error:
        raise UsageError(f"{path}: not a history: {error}") from None


def run(history: History, target: Target, make_judge: MakeJudge = monitor) -> Session:
    """Play ``history`` on ``target``, which need not be the one that it was found on.

    Raises:
        UsageError: the target cannot run the history's setup.
    """
    refusal = target.supports(history.setup)
    if refusal is not None:
        raise UsageError(f"{target.name} cannot run this history: {refusal}")
    return play(target, history.setup, history.moves, make_judge)


def replay(path: Path, target: Target, make_judge: MakeJudge = monitor) -> list[Finding]:
    """Play the history stored at ``path``; what it breaks, if it does (still), unsafe first.

    Raises:
        UsageError: the file is no history, or the target cannot run it.
    """
    return run(load(path), target, make_judge).findings()
