"""Histories in which our scheduler once broke its contract, as the fuzzer shrank them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvproof.conformance.engines.base import History
from kvproof.conformance.fuzz.replay import load
from kvproof.conformance.trace import events as ev
from tests.conformance.on_ours import TARGET, Run, play

pytestmark = pytest.mark.vllm

_SUFFIX = ".history.json"
HISTORIES: dict[str, History] = {
    path.name.removesuffix(_SUFFIX): load(path)
    for path in sorted((Path(__file__).parent / "ours").glob(f"*{_SUFFIX}"))
}


@pytest.fixture(scope="module")
def runs() -> dict[str, Run]:
    return play(HISTORIES)


@pytest.mark.parametrize("name", HISTORIES)
def test_nothing_is_found_any_more(runs: dict[str, Run], name: str) -> None:
    assert HISTORIES[name].target == TARGET
    assert runs[name].played
    assert runs[name].findings == []
    # Each of them stored something, so that there was something to break.
    assert runs[name].of(ev.Issue)
