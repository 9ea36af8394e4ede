"""Allow files: the signatures of known findings."""

from __future__ import annotations

from pathlib import Path

from kvproof.conformance.errors import UsageError
from kvproof.conformance.monitor.finding import Signature, parse_signature


def read_allowed(path: Path) -> frozenset[Signature]:
    """What an allow file lists: ``ID ACTION [WHERE] ["(" KIND ")"]`` a line, ``#`` for remarks.

    An entry covers every finding that is more specific in its kind.

    Raises:
        UsageError: the file cannot be read, or a line is not written so.
    """
    signatures = set()
    for number, entry, _ in entries(path):
        signature = parse_signature(entry)
        if signature is None:
            raise UsageError(f"{path}:{number}: expected `ID ACTION [WHERE] [(KIND)]`: {entry!r}")
        signatures.add(signature)
    return frozenset(signatures)


def entries(path: Path) -> list[tuple[int, str, str]]:
    """Line number, entry and remark of each line that has an entry.

    Raises:
        UsageError: the file cannot be read.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from None
    parted = (
        (number, line.partition("#")) for number, line in enumerate(lines, start=1) if line.strip()
    )
    return [
        (number, entry.strip(), remark.strip())
        for number, (entry, _, remark) in parted
        if entry.strip()
    ]
