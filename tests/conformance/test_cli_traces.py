"""``check-trace`` judges both classes, and refuses what is no trace, with file and line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kvproof.conformance.trace import codec

from .story import Story, tokens

HEADER = (
    '{"event":"header","schema":1,"target":"vllm:0.32.0",'
    '"groups":[{"kind":"full","tokens_per_block":4}],"blocks_per_chunk":1,"tokens_per_hash":4,'
    '"num_gpu_blocks":8,"num_slots":8,"num_workers":1,"lanes":"direction",'
    '"features":{},"options":{}}\n'
)
LAUNCH = '{"event":"launch","step":1,"rank":0}\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "t.jsonl:1: the file is empty"),
        ("not json\n", "t.jsonl:1: not a kvproof trace"),
        ('{"timestamp": 1, "message": "log"}\n', "t.jsonl:1: not a kvproof trace"),
        (LAUNCH, "t.jsonl:1: not a kvproof trace"),
        (HEADER.replace('"schema":1', '"schema":99'), "t.jsonl:1: trace schema 99"),
        (HEADER.replace('"lanes":"direction",', ""), "t.jsonl:1: broken header"),
        (HEADER + LAUNCH + LAUNCH[:-8], "t.jsonl:3: the last line breaks off"),
        (HEADER + LAUNCH.replace("launch", "teleport"), "t.jsonl:2: not an event"),
        (HEADER + LAUNCH + LAUNCH.replace("rank", "rang"), "t.jsonl:3: not an event"),
    ],
)
def test_what_is_no_trace_is_refused(
    refuses: Callable[..., str], tmp_path: Path, text: str, told: str
) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(text)
    assert told in refuses("check-trace", path)


def test_a_missing_trace_and_a_folder_are_refused(
    refuses: Callable[..., str], tmp_path: Path
) -> None:
    assert "none.jsonl: cannot be read" in refuses("check-trace", tmp_path / "none.jsonl")
    assert f"{tmp_path}: cannot be read" in refuses("check-trace", tmp_path)


def wasteful(path: Path) -> Path:
    """A trace in which a store is flushed although nobody is about to change what it reads."""
    s = Story()
    blocks = s.compute_prompt("a#0", tokens(0, 8), first_block=1)
    s.offer(1, "a#0", blocks)
    s.idle()
    s.flush(1)
    s.run(("a#0", 8, 9, [300]))
    codec.write(path, s.header, s.events)
    return path


def test_a_missed_finding_is_a_finding_unless_only_unsafe_ones_are_judged(
    kvproof: Any, tmp_path: Path
) -> None:
    path = wasteful(tmp_path / "t.jsonl")
    ended = kvproof("check-trace", path)
    assert ended.code == 1
    assert "broken by the scheduler (missed)" in ended.out
    told = kvproof("check-trace", path, "--json").json()
    assert (told["verdict"], told["finding"]) == ("finding", None)
    assert [one["id"] for one in told["missed"]] == ["L6"]
    ended = kvproof("check-trace", path, "--severity", "unsafe")
    assert (ended.code, ended.out.splitlines()[0][:6]) == (0, "holds:")
    told = kvproof("check-trace", path, "--severity", "unsafe", "--json").json()
    assert (told["verdict"], told["missed"]) == ("holds", [])
