"""Shrinking, on an engine whose shortest failing history is known."""

from __future__ import annotations

import msgspec
import pytest

from kvproof.conformance.engines.base import (
    Abort,
    Add,
    Drain,
    GroupSetup,
    Move,
    ResetCache,
    Setup,
    Step,
)
from kvproof.conformance.fuzz import simpler
from kvproof.conformance.fuzz.session import Session, play
from kvproof.conformance.fuzz.shrink import Shrunk, shrink

from .fuzz_toy import ONE_GROUP, RaisedIsWrong, ToyTarget

LONG_SETUP = Setup(
    groups=(GroupSetup("full", 8), GroupSetup("window", 4, 9), GroupSetup("window", 2, 3)),
    blocks_per_chunk=4,
    num_gpu_blocks=23,
    num_slots=3,
    max_batch_tokens=17,
    max_running=2,
    num_workers=2,
    asynchronous=True,
    prompt_only=True,
    retention_interval=0,
    kv_role="kv_producer",
)

LONG_MOVES: tuple[Move, ...] = (
    Add("x", tuple(range(40)), 9),
    Step("oldest"),
    ResetCache(connector=False, running=True),
    Add("q", (7, 7, 7, 7, 1, 2), 12),
    Step("none"),
    Abort("x"),
    ResetCache(connector=True, running=True),
    Drain(),
    Step("all"),
    Add("m", (5, 6, 7, 8, 9, 10, 11), 4),
    Step("loads"),
    Add("n", (1, 2, 3), 1),
    ResetCache(connector=False, running=False),
    Add("k", (5, 6, 7, 1, 1, 1, 1), 8),
    Step("rank0"),
    Step("stores"),
    Step("none"),
    Step("none"),
    Drain(),
)


def failing() -> Session:
    session = play(ToyTarget(), LONG_SETUP, LONG_MOVES, RaisedIsWrong)
    assert session.finding is not None
    return session


def shrunk(max_replays: int = 2000) -> Shrunk:
    return shrink(ToyTarget(), failing(), make_judge=RaisedIsWrong, max_replays=max_replays)


def test_the_shortest_history_of_the_planted_fault_is_found_exactly() -> None:
    result = shrunk()
    adds = [move for move in result.history.moves if isinstance(move, Add)]
    others = [move for move in result.history.moves if not isinstance(move, Add)]
    assert others == [ResetCache(connector=True, running=False), Step("none")]
    assert [(move.req, len(move.tokens), move.max_tokens) for move in adds] == [
        ("a", 3, 1),
        ("b", 3, 1),
    ]
    assert adds[0].tokens == adds[1].tokens
    assert result.history.setup == ONE_GROUP
    assert result.complete


def test_the_signature_is_kept_and_the_result_replays() -> None:
    result = shrunk()
    again = play(ToyTarget(), result.history.setup, result.history.moves, RaisedIsWrong)
    assert again.finding == result.finding
    assert again.history() == result.history
    before = failing().finding
    assert before is not None
    assert result.finding.signature() == before.signature()


def test_shrinking_twice_gives_the_same_result() -> None:
    assert shrunk() == shrunk()


@pytest.mark.parametrize("bound", [0, 1, 5, 30])
def test_the_bound_on_replays_holds_and_leaves_a_failing_history(bound: int) -> None:
    result = shrunk(max_replays=bound)
    assert result.replays <= bound
    assert not result.complete
    again = play(ToyTarget(), result.history.setup, result.history.moves, RaisedIsWrong)
    assert again.finding == result.finding


def test_a_session_without_a_finding_cannot_be_shrunk() -> None:
    session = play(ToyTarget(), ONE_GROUP, (Step("all"),), RaisedIsWrong)
    with pytest.raises(ValueError, match="no finding"):
        shrink(ToyTarget(), session, make_judge=RaisedIsWrong)


def test_moves_that_were_not_taken_are_not_recorded() -> None:
    session = play(ToyTarget(), ONE_GROUP, (Abort("x"), Add("x", (1,), 1), Abort("y")))
    assert session.moves == [Add("x", (1,), 1)]


@pytest.mark.parametrize("move", LONG_MOVES)
def test_plainer_moves_differ_from_the_move_they_replace(move: Move) -> None:
    assert move not in list(simpler.moves(move))


def test_every_plainer_setup_changes_something_and_the_plainest_has_none_left_but_sizes() -> None:
    assert all(setup != LONG_SETUP for setup in simpler.setups(LONG_SETUP))
    assert list(simpler.setups(ONE_GROUP)) == []
    assert list(simpler.setups(msgspec.structs.replace(ONE_GROUP, asynchronous=True))) == [
        ONE_GROUP
    ]
