"""A folder of evidence: a history that breaks S3, one that breaks nothing, and a campaign."""

from __future__ import annotations

from pathlib import Path

import msgspec

from kvproof.conformance.engines.base import Add, GroupSetup, History, Setup, Step
from kvproof.conformance.fuzz.campaign import CampaignResult, Coverage
from kvproof.conformance.report.evidence import write_campaign
from kvproof.conformance.trace import codec
from tests.conformance.story import Story, tokens


def innocent() -> Story:
    """A prompt that is stored; nothing is wrong with it."""
    s = Story()
    s.stored("a#0", tokens(0, 8))
    s.finish("a#0", 1, 2)
    return s


def overtaken(first: str = "a#0", second: str = "b#0") -> Story:
    """A block is computed for ``second`` while a store that reads it for ``first`` is running."""
    s = Story()
    blocks = s.compute_prompt(first, tokens(0, 8), 1)
    s.offer(1, first, blocks)
    s.finish(first, *blocks)
    s.idle()
    s.submit(1)
    s.compute_prompt(second, tokens(50, 4), 1)
    return s


HISTORY = History("story", Setup((GroupSetup("full", 4),)), (Add("a", (1, 2), 1), Step(), Step()))

RESULT = CampaignResult(
    target="story",
    seed=7,
    examples=12,
    steps=345,
    events=6789,
    seconds=1.5,
    found=[],
    allowed={},
    again={},
    coverage=Coverage(rules={}, events={}, reference={"guard S3": 41, "guard S5": 0}, never=["x"]),
    passed=[],
)


def write(folder: Path, story: Story, name: str, history: History | None = None) -> None:
    """Leave a story as a campaign would."""
    codec.write(folder / f"{name}.jsonl", story.header, story.events)
    if history is not None:
        (folder / f"{name}.history.json").write_bytes(msgspec.json.encode(history))
        finding = story.finding()
        assert finding is not None
        (folder / f"{name}.finding.json").write_bytes(msgspec.json.encode(finding))


def fill(folder: Path) -> Path:
    """The whole folder."""
    write(folder, overtaken(), "S3-12345678", HISTORY)
    write(folder, innocent(), "innocent")
    write_campaign(folder, RESULT)
    return folder
