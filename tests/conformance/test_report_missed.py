"""The ledger of histories that break several promises, or only waste something."""

from __future__ import annotations

from pathlib import Path

import msgspec

from kvproof.conformance.monitor.finding import Finding
from kvproof.conformance.report import ledger, sources
from kvproof.conformance.report.evidence import Case
from kvproof.conformance.trace import codec

from .story import Story, tokens


def story() -> Story:
    """A needless flush, and then a request that ends twice."""
    s = Story()
    blocks = s.compute_prompt("a#0", tokens(0, 8), first_block=1)
    s.offer(1, "a#0", blocks)
    s.idle()
    s.flush(1)
    s.run(("a#0", 8, 9, [300]))
    s.finish("a#0")
    s.finish("a#0")
    return s


def case(folder: Path, stored: Finding | None = None) -> Case:
    s = story()
    codec.write(folder / "x.jsonl", s.header, s.events)
    if stored is not None:
        (folder / "x.finding.json").write_bytes(msgspec.json.encode(stored))
    (found,) = sources.gather([folder]).cases
    return found


def test_what_is_unsafe_is_the_chief_verdict(tmp_path: Path) -> None:
    assert [finding.id for finding in case(tmp_path).findings] == ["A-finish", "L6"]


def test_what_a_history_was_stored_for_is_its_chief_verdict(tmp_path: Path) -> None:
    _, wasted = case(tmp_path).findings
    again = case(tmp_path, wasted)
    assert [finding.id for finding in again.findings] == ["L6", "A-finish"]
    assert again.finding == wasted


def test_every_verdict_counts_in_the_row_of_its_id(tmp_path: Path) -> None:
    case(tmp_path)
    written = ledger.assemble(sources.gather([tmp_path]), None, None)
    broken = {row.id: [one.target for one in row.broken] for row in written.broken}
    assert broken == {"L6": ["story"], "A-finish": ["story"]}
