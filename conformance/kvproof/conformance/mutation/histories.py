"""The corpus: histories of the test suite, each with the findings that it must give.

A *trace* is a header and events, judged by the monitor. A *play* is a list of moves made on the
reference itself, for what no trace can say. Both are recorded from the tests that make them
(``scripts/corpus``), so each names the test that fails when its findings change.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from kvproof.conformance.errors import UsageError
from kvproof.conformance.monitor.monitor import Monitor
from kvproof.conformance.trace.events import AnyEvent, Header
from kvproof.model.broken import Broken
from kvproof.model.contract import Contract, Worker

Findings = list[tuple[str, int]]
"""(id, index of the event or move), the missed ones first; a clean history has none.

The ids are the monitor's; of a play, those of a conclusion read ``"conclude S10"``.
"""

CORPUS = Path(__file__).parent / "corpus" / "histories.json"
"""Where the committed corpus lies."""

UNDEFINED = "undefined"
"""The id for a move that reads a map where it is not defined."""


class Trace(msgspec.Struct, frozen=True):
    """A history as it is seen: what the monitor says of it."""

    test: str
    header: Header
    events: list[AnyEvent]
    findings: Findings

    def judged(self) -> tuple[Findings, set[str]]:
        """What is found now, and the actions that were tried."""
        monitor = Monitor(self.header)
        for event in self.events:
            if monitor.feed(event) is not None:
                break
        found = [(f.id, f.index) for f in monitor.missed]
        if monitor.finding is not None:
            found.append((monitor.finding.id, monitor.finding.index))
        return found, {name for name, times in monitor.coverage().items() if times}


class Play(msgspec.Struct, frozen=True):
    """A history as it is made: moves of the reference; a broken guard ends none of the rest.

    ``attributes`` gives, per field, the rows ``[element, value]`` that the moves refer to. A move
    called ``"<field>.<change>"`` is none of the contract's: see ``alter``.
    """

    test: str
    workers: int
    attributes: dict[str, list[tuple[int, int]]]
    moves: list[tuple[str, list[int]]]
    findings: Findings

    def judged(self) -> tuple[Findings, set[str]]:
        """What is found now, and the actions that were tried."""
        reference = Contract([Worker(rank) for rank in range(self.workers)])
        for name, rows in self.attributes.items():
            getattr(reference, name).update(rows)
        found: Findings = []
        for index, (action, params) in enumerate(self.moves):
            try:
                if "." in action:
                    alter(reference, action, *params)
                else:
                    getattr(reference, action)(*params)
            except Broken as broken:
                prefix = "conclude " if broken.kind == "conclude" else ""
                found.append((prefix + (broken.id or f"A-{broken.action}"), index))
            except KeyError:
                found.append((UNDEFINED, index))
        return found, {action for action, _ in self.moves}


History = Trace | Play


def alter(reference: Contract, change: str, *row: int) -> None:
    """Change a field by hand, as no action would: ``placed.discard``, ``owner.pop``, ``owner.put``.

    What is concluded follows from what was promised, so no history of moves breaks a conclusion. It
    is there for the day on which what was proved is not what runs, and this is such a day.
    """
    field, _, how = change.partition(".")
    table = getattr(reference, field)
    if how == "pop":
        del table[row if len(row) > 1 else row[0]]
    elif how == "put":
        *key, value = row
        table[tuple(key) if len(key) > 1 else key[0]] = value
    else:
        getattr(table, how)(*row)


class TraceIndex(msgspec.Struct, frozen=True):
    """A trace in the file: its header and events by their numbers."""

    test: str
    header: int
    events: list[int]
    findings: Findings


class Corpus(msgspec.Struct, frozen=True):
    """The file. Histories share most of their events, so each event stands in it once."""

    headers: list[Header]
    events: list[AnyEvent]
    traces: list[TraceIndex]
    plays: list[Play]

    def histories(self) -> list[History]:
        """All histories, with their events."""
        traces = [
            Trace(t.test, self.headers[t.header], [self.events[i] for i in t.events], t.findings)
            for t in self.traces
        ]
        return [*traces, *self.plays]


def pack(traces: list[Trace], plays: list[Play]) -> Corpus:
    """The corpus of these histories, each header and event once."""
    headers: dict[bytes, int] = {}
    events: dict[bytes, int] = {}

    def number(table: dict[bytes, int], item: Header | AnyEvent) -> int:
        return table.setdefault(msgspec.json.encode(item), len(table))

    indexed = [
        TraceIndex(
            t.test, number(headers, t.header), [number(events, e) for e in t.events], t.findings
        )
        for t in traces
    ]
    decode_event = msgspec.json.Decoder(AnyEvent).decode
    return Corpus(
        [msgspec.json.decode(h, type=Header) for h in headers],
        [decode_event(e) for e in events],
        indexed,
        plays,
    )


def dumps(corpus: Corpus) -> bytes:
    """The corpus as JSON, one header, event or history a line."""
    parts = []
    for name in corpus.__struct_fields__:
        lines = b",\n".join(map(msgspec.json.encode, getattr(corpus, name)))
        parts.append(b'"' + name.encode() + b'": [\n' + lines + b"\n]")
    return b"{\n" + b",\n".join(parts) + b"\n}\n"


def loads(data: bytes) -> Corpus:
    """A corpus from JSON.

    Raises:
        UsageError: the data is no corpus; the message says what is wrong.
    """
    try:
        return msgspec.json.decode(data, type=Corpus)
    except msgspec.DecodeError as error:
        raise UsageError(f"the corpus of histories cannot be read: {error}") from None


@cache
def committed() -> list[History]:
    """The histories of the committed corpus."""
    return loads(CORPUS.read_bytes()).histories()
