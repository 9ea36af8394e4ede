"""Reading and writing traces: JSON lines, the header first, one event a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from kvproof.conformance.errors import UsageError
from kvproof.conformance.trace.events import SCHEMA_VERSION, AnyEvent, Header

_decode_header = msgspec.json.Decoder(Header)
_decode_event = msgspec.json.Decoder(AnyEvent)
_encode = msgspec.json.Encoder()


class _SchemaOnly(msgspec.Struct):
    """Just enough of a first line to tell a foreign file from another schema version."""

    event: str
    schema: int


def dumps(header: Header, events: Iterable[AnyEvent]) -> bytes:
    """The whole trace as JSON lines."""
    return b"".join(_encode.encode(line) + b"\n" for line in (header, *events))


def write(path: Path, header: Header, events: Iterable[AnyEvent]) -> None:
    """Write a trace, whole or not at all (through a temporary neighbour)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".part")
    temporary.write_bytes(dumps(header, events))
    temporary.replace(path)


def read(path: Path) -> tuple[Header, list[AnyEvent]]:
    """Read a trace.

    Raises:
        UsageError: the file cannot be read, is not a trace, has another schema version, or breaks
            off; the message names the file and the line.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from None
    lines = data.split(b"\n")
    if lines[-1] != b"":
        raise UsageError(f"{path}:{len(lines)}: the last line breaks off: the trace is truncated")
    lines.pop()
    if not lines:
        raise UsageError(f"{path}:1: the file is empty, not a trace")
    header = _header(path, lines[0])
    return header, list(_events(path, lines))


def _header(path: Path, line: bytes) -> Header:
    try:
        first = msgspec.json.decode(line, type=_SchemaOnly)
    except msgspec.DecodeError as error:
        raise UsageError(f"{path}:1: not a kvproof trace: {error}") from None
    if first.event != "header":
        raise UsageError(f"{path}:1: not a kvproof trace: the first line is no header")
    if first.schema != SCHEMA_VERSION:
        raise UsageError(
            f"{path}:1: trace schema {first.schema}, but this kvproof reads schema {SCHEMA_VERSION}"
        )
    try:
        return _decode_header.decode(line)
    except msgspec.DecodeError as error:
        raise UsageError(f"{path}:1: broken header: {error}") from None


def _events(path: Path, lines: list[bytes]) -> Iterator[AnyEvent]:
    for number, line in enumerate(lines[1:], start=2):
        try:
            yield _decode_event.decode(line)
        except msgspec.DecodeError as error:
            raise UsageError(
                f"{path}:{number}: not an event that this kvproof knows: {error}"
            ) from None
