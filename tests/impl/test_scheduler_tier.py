"""The CPU manager as a tier: what is read off its table is what its own lookups answer.

This file runs itself once inside the release and prints what was seen; the tests read that.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from typing import Any

import pytest

from kvproof.conformance.errors import UsageError
from kvproof.conformance.releases import child_environment

pytestmark = pytest.mark.vllm

RELEASE = "0.32.0"


@functools.cache
def seen() -> dict[str, Any]:
    try:
        environment = child_environment(RELEASE)
    except UsageError as missing:
        pytest.skip(str(missing))
    ended = subprocess.run(
        [sys.executable, "-P", __file__], env=environment, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    told: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return told


@pytest.mark.parametrize("policy", ["lru", "arc"])
def test_hits_ahead_are_those_that_lookups_answer(policy: str) -> None:
    told = seen()[policy]
    # Two are stored, one is being stored, one is missing, one is stored.
    assert told["lookups"] == [3, 3, 2, 0, 3]
    assert told["ahead"] == [2, 1, 0, 0, 1]


@pytest.mark.parametrize("how", ["wrapped", "wrapped in its class", "inherited"])
def test_who_watches_lookups_sees_every_one_of_them(how: str) -> None:
    assert seen()[how] == [0, 0, 0, 0, 0]


def test_only_the_cpu_manager_itself_is_closed() -> None:
    assert (seen()["lru"]["closed"], seen()["inherited closed"]) == (True, False)


# --- inside the release ---


def look() -> dict[str, Any]:
    import importlib

    from kvproof.conformance.engines.vllm.release import load, module

    context = load().offload.ReqContext(req_id="r")
    kind: Any = module("vllm.v1.kv_offload.cpu.manager").CPUOffloadingManager
    tier_of: Any = importlib.import_module("kvproof.impl.connector.tier").ManagerTier
    keys = [name.encode() + bytes(4) for name in "abcde"]

    def filled(manager: Any) -> Any:
        stored = [keys[0], keys[1], keys[4]]
        manager.prepare_store(stored, context)
        manager.complete_store(stored, context)
        manager.prepare_store([keys[2]], context)
        return tier_of(manager)

    def ahead(tier: Any) -> list[int]:
        return [tier.hits_ahead(keys[first:]) for first in range(5)]

    told: dict[str, Any] = {}
    for policy in ("lru", "arc"):
        tier = filled(kind(8, cache_policy=policy))
        told[policy] = {
            "lookups": [int(tier.lookup(key, context)) for key in keys],
            "ahead": ahead(tier),
            "closed": tier.closed,
        }
    wrapped = kind(8)
    original = wrapped.lookup
    wrapped.lookup = lambda *asked: original(*asked)
    told["wrapped"] = ahead(filled(wrapped))
    inherited = filled(type("Inherited", (kind,), {})(8))
    told["inherited"], told["inherited closed"] = ahead(inherited), inherited.closed
    lookup = kind.lookup
    kind.lookup = lambda *asked: lookup(*asked)
    told["wrapped in its class"] = ahead(filled(kind(8)))
    return told


if __name__ == "__main__":
    print(json.dumps(look()))
