"""The workload that two schedulers serve, and what is counted of it."""

from __future__ import annotations

import pytest

from kvproof.conformance.bench.scheduler import serving, timing
from kvproof.conformance.engines.base import Add, Drain, Step
from kvproof.conformance.trace import events as ev
from kvproof.conformance.trace.events import SCHEDULER_RANK as S


def test_clients_say_the_same_each_time_and_conversations_grow() -> None:
    moves = list(serving.moves(60))
    assert moves == list(serving.moves(60))
    assert moves != list(serving.moves(60, seed=1))
    prompts = [move.tokens for move in moves if isinstance(move, Add)]
    assert len(prompts) == 60
    assert {len(prompt) > serving.LONGEST + serving.SPOKEN[1] for prompt in prompts} == {False}
    assert {prompt[: 6 * serving.BLOCK] for prompt in prompts} == {prompts[0][: 6 * serving.BLOCK]}
    # Somebody says more after what was said before.
    assert any(
        later[: len(earlier)] == earlier
        for number, earlier in enumerate(prompts)
        for later in prompts[number + 1 :]
    )
    assert isinstance(moves[-1], Drain)
    assert {type(move) for move in moves} == {Add, Step, Drain}


def test_what_is_counted() -> None:
    tally = serving.Tally()
    tokens = list(range(3 * serving.BLOCK + 1))
    hashes = ["x", "y", "z"]
    piece = ev.Piece(0, 1, 0, 0)
    for event in (
        ev.Arrive(0, S, "a#0", tokens),
        ev.Hashed(0, S, "a#0", 0, hashes),
        ev.Ask(0, S, "a#0", 0),
        ev.Allocated(0, S, "a#0", 0),
        ev.Scheduled(0, S, [ev.Computing("a#0", 0, 2 * serving.BLOCK + 3, [])]),
        ev.Issue(0, S, 0, "store", "a#0", [piece, piece, piece]),
        # Another has the same three blocks, one of them on the GPU; two were ever computed.
        ev.Arrive(1, S, "b#0", tokens),
        ev.Hashed(1, S, "b#0", 0, hashes),
        ev.Ask(1, S, "b#0", serving.BLOCK),
        ev.Issue(1, S, 1, "load", "b#0", [piece]),
        ev.Allocated(1, S, "b#0", serving.BLOCK // 2),
        # No question, no answer.
        ev.Allocated(2, S, "b#0", 99),
    ):
        tally.see(event)
    assert (tally.prompts, tally.computed) == (2 * len(tokens), 2 * serving.BLOCK + 3)
    assert (tally.hits, tally.greatest) == (serving.BLOCK // 2, serving.BLOCK)
    assert (tally.stored, tally.loaded) == (3, 1)


def test_the_share_of_what_could_be_loaded_and_the_price_of_a_block() -> None:
    one = serving.Served(600, "x", 1000, 30, 40, 12, 3, 500)
    assert (one.share, one.stored_per_loaded) == (0.75, 4.0)
    none = serving.Served(600, "x", 1000, 0, 0, 12, 0, 500)
    assert (none.share, none.stored_per_loaded) == (0.0, float("inf"))


def test_one_in_a_hundred_is_slower_than_that() -> None:
    assert timing.p99([float(number) for number in range(101)]) == pytest.approx(99.0)
    assert timing.medians({"a": [3.0, 1.0, 2.0]}) == {"a": 2.0}
