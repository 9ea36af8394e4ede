"""The rules of ``kvproof soak``: what counts as growth, and what a point of rest must show."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kvproof.conformance.soak.life import Leak, grown
from kvproof.conformance.soak.run import ENOUGH_SAMPLES, growth_of


def test_a_table_that_only_grows_leaks() -> None:
    series = [{"jobs": n, "ticks": 2} for n in range(16)]
    assert grown("table", series) == [Leak("table jobs", 15, 7)]


def test_a_table_that_is_tidied_late_does_not_leak() -> None:
    series = [{"ticks": n % 5} for n in range(16)]
    assert grown("table", series) == []


def test_a_table_that_appears_late_and_stays_leaks() -> None:
    series: list[dict[str, int]] = [{}] * 10 + [{"jobs": 1}] * 6
    assert grown("table", series) == [Leak("table jobs", 1, 0)]


def test_growth_is_between_the_second_quarter_and_the_last() -> None:
    # The first quarter is warming up, and a single peak is no growth.
    rss = [100, 200, 300, 400] + [500] * 4 + [900] + [500] * 3 + [507] * 4
    assert growth_of(rss) == 7


def test_nothing_is_said_of_memory_after_few_points_of_rest() -> None:
    assert growth_of([1] * (ENOUGH_SAMPLES - 1)) is None


def test_a_soak_needs_a_known_target(refuses: Callable[..., str]) -> None:
    told = refuses("soak", "--target", "kvproof-on-vllm", "--steps", 1)
    assert told.startswith("unknown target 'kvproof-on-vllm': expected vllm:RELEASE")


@pytest.mark.parametrize("steps", [0, -1])
def test_a_soak_needs_steps(refuses: Callable[..., str], steps: int) -> None:
    assert "--steps" in refuses("soak", "--target", "vllm:0.32.0", "--steps", steps)
