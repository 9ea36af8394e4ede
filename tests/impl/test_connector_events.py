"""Events that describe themselves, beside the stock connector's; and what a reset leaves to say.

This file runs itself once inside the release and prints what it saw; the tests read that.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from typing import Any

import pytest

from kvproof.conformance.engines.base import Add, Drain, GroupSetup, Move, ResetCache, Setup, Step
from kvproof.conformance.errors import UsageError
from kvproof.conformance.releases import child_environment

pytestmark = pytest.mark.vllm

RELEASE = "0.32.0"
OURS = "kvproof.impl.connector:OffloadingConnector"
A, B = tuple(range(64)), tuple(range(100, 170))
MOVES: tuple[Move, ...] = (
    *(Add("a", A, 1), Step(finish="none"), Add("b", (*A, *B), 20), Drain()),
    *(ResetCache(connector=False), Add("c", (*A, 7), 1), Drain()),
)


@functools.cache
def seen() -> dict[str, Any]:
    """Events by run, each with all that it says."""
    try:
        environment = child_environment(RELEASE)
    except UsageError as missing:
        pytest.skip(str(missing))
    command = [sys.executable, "-P", __file__]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("setup", ["full", "full, chunks of two blocks", "full and window"])
def test_events_describe_what_the_stock_connector_s_describe(setup: str) -> None:
    ours, stock = seen()[f"ours, {setup}"], seen()[f"stock, {setup}"]
    assert sorted(ours) == sorted(stock)
    described = [json.loads(event) for event in ours if json.loads(event)["token_ids"]]
    assert described
    for event in described:
        assert len(event["token_ids"]) == len(event["block_hashes"]) * event["block_size"]


def test_a_reset_takes_back_every_hash_that_was_announced() -> None:
    stored: dict[str, int] = {}
    for text in seen()["ours, reset"]:
        event = json.loads(text)
        for one in event["block_hashes"]:
            stored[one] = stored.get(one, 0) + (1 if event["type"] == "BlockStored" else -1)
    assert stored
    assert set(stored.values()) == {0}


# --- inside the release ---


def look() -> dict[str, Any]:
    import msgspec

    from kvproof.conformance.engines.vllm import VllmTarget, configs

    where: Any = configs
    transfer = where._transfer

    def describing(config: Any, setup: Any, features: Any) -> None:
        transfer(config, setup, features)
        config.kv_connector_extra_config["self_describing_kv_events"] = True

    where._transfer = describing
    targets = {"stock": VllmTarget(), "ours": VllmTarget(OURS)}

    def run(name: str, moves: tuple[Move, ...], setup: Setup) -> list[str]:
        engine: Any = targets[name].start(setup, lambda _event: None)
        connector = engine._scheduler.connector
        take, events = connector.take_events, []

        def taken() -> list[Any]:
            found = list(take())
            for event in found:
                said = {"token_ids": [], **msgspec.to_builtins(event)}
                said["block_hashes"] = [str(one) for one in said["block_hashes"]]
                said["type"] = type(event).__name__
                events.append(json.dumps(said, sort_keys=True))
            return found

        connector.take_events = taken
        for move in moves:
            assert engine.play(move), move
        assert not engine.crashed
        engine.close()
        return events

    full, window = GroupSetup("full", 16), GroupSetup("window", 16, 32)
    setups = {
        "full": Setup(groups=(full,)),
        "full, chunks of two blocks": Setup(groups=(full,), blocks_per_chunk=2),
        "full and window": Setup(groups=(full, window), num_gpu_blocks=96),
    }
    found = {
        f"{name}, {setup}": run(name, MOVES, setups[setup]) for name in targets for setup in setups
    }
    moves = (*MOVES, ResetCache(), Drain())
    return {**found, "ours, reset": run("ours", moves, setups["full, chunks of two blocks"])}


if __name__ == "__main__":
    print(json.dumps(look()))
