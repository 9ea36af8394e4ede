"""Each guard of the reference, and each part of one, broken by the smallest history that does.

Most of what a trace can break stands in ``test_monitor``. Here are the promises of engine, workers
and tier, and the parts of conditions that hide behind others: a guard that no history needs is one
that nobody would miss. ``kvproof prove --mutants`` and ``scripts/guards`` look for such.
"""

from __future__ import annotations

import pytest

from kvproof.model.broken import Broken
from tests.conformance.promises import (  # noqa: F401
    blocks,
    conclusions,
    copies,
    economy,
    engine,
    loads,
    lookups,
    stores,
    tier,
)
from tests.conformance.promises.table import BAD, GOOD
from tests.model.scene import Scene


@pytest.mark.parametrize("name", BAD)
def test_the_last_move_breaks_its_promise(name: str) -> None:
    id, history = BAD[name]
    move, *params = history(Scene())
    with pytest.raises(Broken) as broken:
        move(*params)
    called = broken.value.id or f"A-{broken.value.action}"
    kind = {"A": "assume", "c": "conclude"}.get(id[0], "oblige")
    assert (broken.value.kind, called) == (kind, id.removeprefix("conclude "))


@pytest.mark.parametrize("name", GOOD)
def test_every_move_holds(name: str) -> None:
    GOOD[name](Scene())
