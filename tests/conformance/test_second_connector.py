"""Another connector beside the offloading one: what it writes, and when it may (case K8)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kvproof.conformance.releases.child import child_environment
from kvproof.conformance.releases.folders import installed
from kvproof.conformance.trace import events as ev
from kvproof.conformance.trace.events import SCHEDULER_RANK as S
from tests.conformance.story import Story, tokens

K8 = (
    Path(__file__).parents[2] / "conformance" / "histories" / "0.32.0" / "k8-filled-without-a-flush"
)


def filled(s: Story, req: str, end: int, rank: int = 0) -> None:
    """Another connector writes the first ``end`` tokens' KV in the step just launched."""
    s.emit(ev.Filled(s.step - 1, rank, req, 0, end))


def ended_with_a_store_in_flight() -> Story:
    """a has ended while a store reads its block 1; b is given this block and waits."""
    s = Story()
    (block,) = s.compute_prompt("a#0", tokens(0, 4), 1)
    s.offer(1, "a#0", [block])
    s.idle()
    s.submit(1)
    s.finish("a#0", block)
    s.arrive("b#0", tokens(50, 6))
    s.ask("b#0")
    s.lease("b#0", 0, block)
    return s


def test_filling_a_block_that_a_store_still_reads_breaks_s3() -> None:
    s = ended_with_a_store_in_flight()
    s.idle()
    filled(s, "b#0", 4)
    finding = s.finding()
    assert finding is not None
    assert (finding.id, finding.culprit, finding.event) == ("S3", "scheduler", "filled")
    assert finding.index == s.last()


def test_after_a_flush_it_is_right_and_what_was_filled_is_read_like_computed() -> None:
    s = ended_with_a_store_in_flight()
    s.flush(1)
    s.schedule()
    s.launch()
    s.done(1)
    s.wait(1)
    filled(s, "b#0", 4)
    s.received("b#0")
    s.lease("b#0", 1, 2)
    s.run(("b#0", 4, 6, [300]))
    assert s.verdict() is None


def test_what_was_filled_may_be_offered_once_the_engine_was_told() -> None:
    s = Story()
    s.arrive("a#0", tokens(0, 6))
    s.ask("a#0")
    s.lease("a#0", 0, 1)
    s.idle()
    filled(s, "a#0", 4)
    told = len(s.events)
    s.received("a#0")
    s.emit(ev.PrepareStore(s.step, S, "a#0", [s.key("a#0", 0)], False, [], []))
    s.schedule()
    assert s.verdict() is None
    del s.events[told]
    assert s.verdict() == ("P7", s.last())


def test_a_forward_may_not_read_what_nobody_filled() -> None:
    s = Story()
    s.arrive("a#0", tokens(0, 6))
    s.lease("a#0", 0, 1)
    s.lease("a#0", 1, 2)
    s.idle()
    s.run(("a#0", 4, 6, [300]))
    assert s.verdict() == ("A-attend", s.last())


# Runs in the child: replays the history, then says what happens when all copies end in time.
REPLAY = """
import json, sys
from collections import Counter
from pathlib import Path
import msgspec
from kvproof.conformance.engines.base import Drain
from kvproof.conformance.engines.vllm import VllmTarget
from kvproof.conformance.fuzz import replay
from kvproof.conformance.fuzz.session import play
target = VllmTarget()
history = replay.load(Path(sys.argv[1]))
session = play(target, history.setup, [*history.moves, Drain()])
refused = target.supports(msgspec.structs.replace(history.setup, groups=tuple(
    msgspec.structs.replace(group, draft=True) for group in history.setup.groups)))
print(json.dumps({
    "finding": session.finding and [session.finding.id, session.finding.event],
    "events": Counter(type(event).__name__ for event in session.events),
    "option": session.engine.header.options["second_connector"],
    "refused": refused,
}))
"""


def replayed(release: str) -> Any:
    if release not in installed():
        pytest.skip(f"vLLM {release} is not installed: kvproof releases add {release}")
    ended = subprocess.run(
        [sys.executable, "-c", REPLAY, f"{K8}.history.json"],
        env=child_environment(release),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])


@pytest.mark.vllm
@pytest.mark.parametrize(
    ("release", "finding"),
    [("0.21.0", ["S3", "filled"]), ("0.32.0", ["S3", "filled"]), ("0.33.0", None)],
)
def test_k8_breaks_releases_that_do_not_flush_and_one_that_does_holds(
    release: str, finding: list[str] | None
) -> None:
    seen = replayed(release)
    events = Counter(seen["events"])
    assert seen["finding"] == finding
    assert seen["option"] is True
    assert events["Filled"] == 1
    # Told to wait for the store of b, whose block c is given; the stores of a are flushed for b.
    assert events["Flush"] == (1 if finding else 2)
    assert events["Drained"] == (0 if finding else 1)
    assert "second connector" in seen["refused"] or "draft groups" in seen["refused"]
