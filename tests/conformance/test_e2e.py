"""vLLM on the CPU with tiny models, through our connector: tokens, control, failing loads."""

from __future__ import annotations

import functools

import pytest

from kvproof.conformance.e2e.run import RELEASE, played, played_by_workers
from kvproof.conformance.e2e.seen import FAILING_ROUNDS, Seen, SeenWorkers
from kvproof.conformance.e2e.workload import prompts
from kvproof.conformance.errors import UsageError
from kvproof.conformance.releases import child_environment

pytestmark = [pytest.mark.e2e, pytest.mark.vllm]

REQUESTS = len(prompts())


def environment() -> dict[str, str]:
    """That of a process inside the release."""
    try:
        return child_environment(RELEASE)
    except UsageError as missing:
        pytest.skip(str(missing))


@functools.cache
def ours(model: str) -> Seen:
    """What our connector did with a model."""
    environment()
    (seen,) = played(model, ["ours"])
    return seen


@pytest.fixture(params=["llama", "mistral"])
def seen(request: pytest.FixtureRequest) -> Seen:
    """The quickest models: full attention in chunks of two blocks, and a window."""
    return ours(request.param)


def test_tokens_are_those_of_an_engine_without_connector(seen: Seen) -> None:
    assert seen.equal == (REQUESTS, REQUESTS)


def test_loads_took_the_place_of_computing(seen: Seen) -> None:
    shared = 300  # what the first prompts have in common; a part of it can lie on the GPU again
    assert seen.external > sum(map(len, prompts())) - 5 * shared
    assert seen.loads >= REQUESTS - 2


def test_with_zeroed_bytes_tokens_change(seen: Seen) -> None:
    # A request whose prompt is shorter than a chunk loads nothing.
    assert seen.changed >= REQUESTS - 1


def test_while_every_third_load_fails_tokens_are_the_same_and_the_engine_lives(seen: Seen) -> None:
    assert seen.ended == ""
    assert (seen.failing_equal, seen.failing) == (FAILING_ROUNDS * REQUESTS,) * 2
    assert set(seen.failed) == {"refused", "raised", "spoiled"}
    assert seen.holds()


def test_a_run_that_could_not_have_shown_a_fault_does_not_hold() -> None:
    good = Seen("ours", 8, (8, 8), 96, 3, 2, 24, 24, {"raised": 1})
    assert good.holds()
    for spoiled in (
        Seen("ours", 8, (8, 8), 0, 3, 2, 24, 24, {"raised": 1}),
        Seen("ours", 8, (8, 8), 96, 3, 0, 24, 24, {"raised": 1}),
        Seen("ours", 8, (8, 8), 96, 3, 2, 24, 24, {}),
        Seen("ours", 8, (8, 7), 96, 3, 2, 24, 24, {"raised": 1}),
        Seen("ours", 8, (7, 8), 96, 3, 2, 24, 24, {"raised": 1}),
        Seen("ours", 8, (8, 8), 96, 3, 2, 16, 16, {"raised": 1}),
        Seen("ours", 8, (8, 8), 96, 3, 2, 24, 23, {"raised": 1}),
        Seen("ours", 8, (8, 8), 96, 3, 2, 24, 24, {"raised": 1}, "AssertionError"),
    ):
        assert not spoiled.holds()


@functools.cache
def two_workers() -> SeenWorkers:
    """What our connector did with two workers over one shared file."""
    environment()
    return played_by_workers("llama")


def test_two_workers_have_the_tier_s_bytes_in_one_file_each_in_its_own_part() -> None:
    seen = two_workers()
    assert seen.loaded == seen.requests == REQUESTS
    # A request whose prompt is shorter than a chunk loads nothing.
    assert [changed >= REQUESTS - 1 for changed in seen.changed] == [True, True]
    assert seen.put_back == [REQUESTS, REQUESTS]
    assert seen.left == 0


def test_a_load_that_fails_on_one_of_two_workers_is_computed() -> None:
    seen = two_workers()
    assert seen.failed == 3
    assert seen.failing == REQUESTS
    assert seen.holds()


def test_a_run_of_workers_that_could_not_have_shown_a_fault_does_not_hold() -> None:
    good = SeenWorkers(8, 8, 96, [7, 7], [8, 8], 0, 3, 8)
    assert good.holds()
    for spoiled in (
        SeenWorkers(8, 7, 96, [7, 7], [8, 8], 0, 3, 8),
        SeenWorkers(8, 8, 0, [7, 7], [8, 8], 0, 3, 8),
        SeenWorkers(8, 8, 96, [7, 0], [8, 8], 0, 3, 8),
        SeenWorkers(8, 8, 96, [7], [8], 0, 3, 8),
        SeenWorkers(8, 8, 96, [7, 7], [8, 7], 0, 3, 8),
        SeenWorkers(8, 8, 96, [7, 7], [8, 8], 1, 3, 8),
        SeenWorkers(8, 8, 96, [7, 7], [8, 8], 0, 0, 8),
        SeenWorkers(8, 8, 96, [7, 7], [8, 8], 0, 3, 7),
    ):
        assert not spoiled.holds()


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(UsageError, match="no model is called 'gpt': there are llama, mistral, "):
        played("gpt")
    with pytest.raises(UsageError, match="no model is called 'gpt'"):
        played_by_workers("gpt")


def test_a_model_that_workers_cannot_share_is_refused() -> None:
    with pytest.raises(UsageError, match="qwen3-next has a single head of a kind: two workers ca"):
        played_by_workers("qwen3-next")
