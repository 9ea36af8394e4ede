"""Traces survive the codec; what is no whole trace is refused with file and line."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvproof.conformance.errors import UsageError
from kvproof.conformance.trace import codec
from kvproof.conformance.trace.events import (
    SCHEMA_VERSION,
    AnyEvent,
    Arrive,
    Computing,
    GroupGeometry,
    Header,
    Launch,
    Piece,
)

EVENT_TYPES: tuple[type[msgspec.Struct], ...] = get_args(AnyEvent)

# JSON numbers are exact this far everywhere; counters stay far below.
_INTEGERS = st.integers(-(2**53), 2**53)
st.register_type_strategy(int, _INTEGERS)


def structs(kind: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    fields = msgspec.structs.fields(kind)
    return st.builds(kind, **{field.name: st.from_type(field.type) for field in fields})


for nested in (Computing, Piece, GroupGeometry):
    st.register_type_strategy(nested, structs(nested))

HEADERS = structs(Header).map(lambda header: msgspec.structs.replace(header, schema=SCHEMA_VERSION))
EVENTS = st.one_of([structs(kind) for kind in EVENT_TYPES])

HEADER = Header(
    schema=SCHEMA_VERSION,
    target="vllm:0.32.0",
    groups=[GroupGeometry(kind="full", tokens_per_block=4)],
    blocks_per_chunk=1,
    tokens_per_hash=4,
    num_gpu_blocks=8,
    num_slots=8,
    num_workers=1,
    lanes="direction",
    features={},
    options={},
)
TWO_EVENTS: list[AnyEvent] = [Arrive(step=0, rank=-1, req="a#0", tokens=[1, 2]), Launch(1, 0)]


def read_bytes(data: bytes) -> tuple[Header, list[AnyEvent]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.jsonl"
        path.write_bytes(data)
        return codec.read(path)


@pytest.mark.parametrize("kind", EVENT_TYPES, ids=lambda kind: kind.__name__)
def test_every_kind_of_event_survives_the_codec(kind: type[msgspec.Struct]) -> None:
    @settings(max_examples=25)
    @given(HEADERS, structs(kind))
    def survives(header: Header, event: AnyEvent) -> None:
        assert read_bytes(codec.dumps(header, [event])) == (header, [event])

    survives()


@given(HEADERS, st.lists(EVENTS, max_size=8))
def test_a_trace_reads_back_as_it_was_written(header: Header, events: list[AnyEvent]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "new" / "t.jsonl"
        codec.write(path, header, events)
        assert codec.read(path) == (header, events)
        assert [entry.name for entry in path.parent.iterdir()] == ["t.jsonl"]


def test_event_tags_are_distinct() -> None:
    kinds: list[type[msgspec.Struct]] = [Header, *EVENT_TYPES]
    tags = [kind.__struct_config__.tag for kind in kinds]
    assert len(set(tags)) == len(tags)


@given(st.data())
def test_a_trace_cut_inside_a_line_is_refused_at_that_line(data: st.DataObject) -> None:
    whole = codec.dumps(HEADER, TWO_EVENTS)
    cut = whole[: data.draw(st.integers(1, len(whole) - 1))]
    if cut.endswith(b"\n"):
        read_bytes(cut)  # cut between lines: a shorter trace, not a broken one
    else:
        line = cut.count(b"\n") + 1
        with pytest.raises(UsageError, match=rf"t\.jsonl:{line}: .*truncated"):
            read_bytes(cut)


@pytest.mark.parametrize(
    ("line", "text", "told"),
    [
        (1, b"", "empty"),
        (1, b"garbage\n", "not a kvproof trace"),
        (1, b'{"event": "launch", "schema": 1}\n', "no header"),
        (1, b'{"some": "json"}\n', "not a kvproof trace"),
        (1, b"\xff\xfe\n", "not a kvproof trace"),
        (1, b'{"event": "header", "schema": 1}\n', "broken header"),
        (2, codec.dumps(HEADER, []) + b"\n", "not an event"),
        (2, codec.dumps(HEADER, []) + b'{"event": "teleport", "step": 1, "rank": 0}\n', "teleport"),
        (2, codec.dumps(HEADER, []) + b'{"event": "launch", "step": 1}\n', "rank"),
        (2, codec.dumps(HEADER, []) + b'{"event": "launch", "step": 1, "rank": "0"}\n', "rank"),
        (2, codec.dumps(HEADER, []) + b'{"event": "launch", "step": 1, "rank": 0, "x": 1}\n', "x"),
        (3, codec.dumps(HEADER, [Launch(1, 0)]) + b'"\xff"\n', "not an event"),
        (4, codec.dumps(HEADER, TWO_EVENTS) + codec.dumps(HEADER, []), "header"),
    ],
)
def test_what_is_no_trace_is_refused_with_file_and_line(line: int, text: bytes, told: str) -> None:
    with pytest.raises(UsageError, match=rf"t\.jsonl:{line}: ") as refused:
        read_bytes(text)
    assert told in str(refused.value)


def test_another_schema_version_is_refused_by_its_number() -> None:
    first = json.loads(codec.dumps(HEADER, []))
    first["schema"] = SCHEMA_VERSION + 1
    first["field_of_the_future"] = True
    with pytest.raises(UsageError, match=f"trace schema {SCHEMA_VERSION + 1}"):
        read_bytes(json.dumps(first).encode() + b"\n")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=re.escape(str(tmp_path / "none.jsonl"))):
        codec.read(tmp_path / "none.jsonl")
