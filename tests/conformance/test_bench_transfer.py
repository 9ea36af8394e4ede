"""Both sides plan the same copies, and every figure is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kvproof.conformance.bench.transfer import host
from kvproof.conformance.releases.folders import installed


@pytest.mark.parametrize("order", host.ORDERS)
def test_a_copy_in_host_memory_is_measured_against_a_large_one(order: str) -> None:
    row = host.measure(4096, 2, order, 1 << 20, 3)
    assert (row.case, row.page, row.chunk) == (f"chunks of 2, {order}", 4096, 8192)
    assert row.share == pytest.approx(min(row.store, row.load) / row.large)
    assert min(row.store, row.load, row.large) > 0


AGREE = """
from kvproof.conformance.bench.transfer.planning import Case, Planning
for per in (1, 3):
    for strewn in (True, False):
        for groups in (1, 3):
            assert Planning(Case(70, 5, per, strewn, groups)).agree(), (per, strewn, groups)
print("agree")
"""


@pytest.mark.vllm
@pytest.mark.skipif("0.32.0" not in installed(), reason="vLLM 0.32.0 is not installed")
def test_both_sides_plan_the_same_copies() -> None:
    import subprocess
    import sys

    from kvproof.conformance.releases.child import child_environment

    done = subprocess.run(
        [sys.executable, "-c", AGREE],
        env=child_environment("0.32.0"),
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines()[-1:] == ["agree"], done.stderr


@pytest.mark.vllm
@pytest.mark.skipif("0.32.0" not in installed(), reason="vLLM 0.32.0 is not installed")
def test_transfers_are_measured(kvproof: Callable[..., Any]) -> None:
    small = ("--chunks", 64, "--tensors", 4, "--runs", 3, "--megabytes", 2)
    ended = kvproof("bench", "transfer", *small, "--no-growth", "--json")
    assert ended.code == 0, ended.err
    told = ended.json()
    assert told["settings"]["vLLM"] == "0.32.0"
    assert told["growth"] == []
    assert [(row["case"], row["copies"], row["ours"], row["goal"]) for row in told["plans"]] == [
        ("64 chunks of 1 x 4 tensors, strewn", 256, 256, 5),
        ("64 chunks of 1 x 4 tensors, in order", 256, 4, 5),
        ("64 chunks of 4 x 4 tensors, strewn", 1024, 1016, 5),
        ("64 chunks of 4 x 4 tensors, in order", 1024, 4, 5),
    ]
    for row in told["plans"]:
        assert row["ratio"] == pytest.approx(row["release"] / row["kvproof"])
    assert len(told["host"]) == 20
    assert (told["gpu"] == []) == (told["settings"]["GPU"] != "cuda:0")
