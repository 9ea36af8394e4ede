"""Our tier as a manager of vLLM's, beside vLLM's own.

This file runs itself once inside the release and prints what was seen; the tests read that.
"""

from __future__ import annotations

import functools
import importlib
import json
import random
import subprocess
import sys
from typing import Any

import pytest

from kvproof.conformance.errors import UsageError
from kvproof.conformance.releases import child_environment

pytestmark = pytest.mark.vllm

RELEASE = "0.32.0"
RUNS = 200
PROMPTS = [
    [bytes([prompt, number]) + bytes(3) + bytes([group]) for number in range(4) for group in (0, 1)]
    for prompt in range(3)
]
"""Keys of three prompts with two groups, heads first."""


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


def test_one_request_after_the_other_both_answer_alike() -> None:
    assert seen()["alike"]["differ"] is None
    # They were asked for room that was not there, and for keys that pushed out others.
    assert min(seen()["alike"][name] for name in ("evicted", "refused", "failed", "loaded")) > 100


def test_a_reset_is_told_by_ours_and_not_by_the_stock_manager() -> None:
    assert seen()["reset"] == {"stock": ["+ab"], "ours": ["+ab", "-ab"]}


def test_a_request_that_goes_on_loses_what_it_stored_first_with_the_stock_manager_only() -> None:
    assert seen()["going on"] == {"stock": "ay", "ours": "yx"}


def test_an_offer_that_was_refused_counts_for_the_stock_threshold_only() -> None:
    assert seen()["threshold"] == {"stock": "b", "ours": ""}


def test_what_listens_to_the_manager_hears_our_scheduler_too() -> None:
    assert seen()["heard"] == {
        "direct": [],
        "wrapped": ["lookup", "prepare_store", "complete_store"],
        "ahead": [2, 0],
        "remembers": False,
        "chained": ["00000000"],
    }


def test_metrics_have_the_names_that_the_stock_manager_uses() -> None:
    stock, ours = seen()["metrics"]["stock"], seen()["metrics"]["ours"]
    assert stock == ours
    assert len(ours) == 5


def test_slots_reach_a_worker_as_an_array_and_travel_between_processes() -> None:
    assert seen()["slots"] == {"ids": [3, 1], "kind": "int32", "travelled": [3, 1]}


def test_what_is_no_policy_is_refused_when_the_tier_is_made() -> None:
    assert seen()["policy"] == (
        "UnsupportedSetup: eviction_policy: unknown eviction policy 'fifo': built in are lru, arc;"
        " any other one needs the path of its module"
    )


# --- inside the release ---


def module(name: str) -> Any:
    return importlib.import_module(name)


def both(capacity: int, threshold: int = 0, events: bool = False) -> dict[str, Any]:
    own: Any = module("kvproof.impl.connector.own_manager")
    tier: Any = module("kvproof.impl.tier.tier").CpuTier
    stock: Any = module("vllm.v1.kv_offload.cpu.manager").CPUOffloadingManager
    return {
        "stock": stock(capacity, store_threshold=threshold, enable_events=events),
        "ours": own.KvproofManager(tier(capacity, threshold=threshold, tells=events)),
    }


def context(name: str) -> Any:
    return module("vllm.v1.kv_offload.base").ReqContext(req_id=name)


def keys(of: str) -> list[bytes]:
    return [letter.encode() + bytes(4) for letter in of]


def store(manager: Any, of: str, who: Any) -> str | None:
    room = manager.prepare_store(keys(of), who)
    if room is None:
        return None
    manager.complete_store(room.keys_to_store, who)
    return "".join(sorted(key[:1].decode() for key in room.evicted_keys))


def alike() -> dict[str, Any]:
    counts = dict.fromkeys(("evicted", "refused", "failed", "loaded"), 0)
    for seed in range(RUNS):
        chance = random.Random(seed)
        sides = both(chance.randint(1, 8), chance.choice((0, 0, 2)))
        for number in range(12):
            said = []
            # The chances are the same on both sides.
            state = chance.getrandbits(64)
            for side in sides.values():
                said.append(request(side, str(number), random.Random(state)))
            if said[0] != said[1]:
                return {"differ": [seed, number, *map(str, said)]}
            for name in counts:
                counts[name] += said[0][name]
    return {"differ": None, **counts}


def request(manager: Any, name: str, chance: random.Random) -> dict[str, Any]:
    """One request from its lookup to its end, with one offer, and all answers."""
    who = context(name)
    manager.on_new_request(who)
    prompt = chance.choice(PROMPTS)
    mine = prompt[: 2 * chance.randint(1, len(prompt) // 2)]
    for key in mine:
        who.set_offload_key_position(key, key[1])
    answers: dict[str, Any] = {"said": everything(manager, who)}
    answers |= dict.fromkeys(("evicted", "refused", "failed", "loaded"), 0)
    hits = [key for key in mine if manager.lookup(key, who).name == "HIT"]
    loads = hits[: chance.randint(0, len(hits))]
    if loads:
        answers["said"].append(len(manager.prepare_load(loads, who).block_ids))
        answers["loaded"] += len(loads)
    room = manager.prepare_store(mine, who)
    if room is None:
        answers["refused"] += 1
    else:
        answers["said"].append([room.keys_to_store, room.evicted_keys])
        answers["evicted"] += len(room.evicted_keys)
        success = chance.random() < 0.8
        manager.complete_store(room.keys_to_store, who, success)
        answers["failed"] += 0 if success else len(room.keys_to_store)
    manager.complete_load(loads, who)
    manager.on_request_finished(who)
    answers["said"] += everything(manager, who)
    return answers


def everything(manager: Any, who: Any) -> list[str]:
    return [manager.lookup(key, who).name for prompt in PROMPTS for key in prompt]


def after_a_reset(manager: Any) -> list[str]:
    store(manager, "ab", context("r"))
    manager.reset_cache()
    return [
        ("-" if event.removed else "+") + "".join(key[:1].decode() for key in event.keys)
        for event in manager.take_events()
    ]


def going_on(manager: Any) -> str:
    """A request stores, another one comes and ends, the first stores again; who leaves then."""
    first, second = context("first"), context("second")
    store(manager, "a", first)
    store(manager, "xy", second)
    manager.on_request_finished(second)
    store(manager, "bc", first)
    return "".join(str(store(manager, of, context(of))) for of in "pq")


def refused(manager: Any) -> str:
    """With a threshold of 2: b is offered together with d, which there is no room for."""
    who = context("r")
    for of in ("a", "a", "d"):
        store(manager, of, who)
    manager.prepare_load(keys("a"), who)
    if manager.prepare_store(keys("bd"), context("s")) is not None:
        return "there was room"
    manager.complete_load(keys("a"), who)
    room = manager.prepare_store(keys("b"), context("t"))
    return "".join(key[:1].decode() for key in room.keys_to_store)


def heard() -> dict[str, Any]:
    geometry: Any = module("kvproof.impl.scheduler.geometry")
    sizes = geometry.geometry(
        [(0, geometry.Kind.FULL, 4, 0, False), (1, geometry.Kind.WINDOW, 4, 8, False)], 1, 4
    )
    manager = both(8)["ours"]
    tier = module("kvproof.impl.connector.own_manager").tier_of(manager, sizes)
    calls: list[str] = []
    told: dict[str, Any] = {}

    def work(of: str) -> list[str]:
        who, wanted = context(of), keys(of)
        tier.lookup(wanted[0], who)
        room = tier.prepare_store(wanted, who)
        tier.complete_store(room.keys, who, True)
        told.setdefault("ahead", []).append(tier.hits_ahead(wanted))
        return list(calls)

    told["direct"] = work("ab")

    def listen(name: str) -> None:
        inner = getattr(manager, name)

        def wrapped(*asked: Any) -> Any:
            calls.append(name)
            return inner(*asked)

        setattr(manager, name, wrapped)

    for name in ("lookup", "prepare_store", "complete_store"):
        listen(name)
    told["wrapped"] = work("cd")
    told["remembers"] = manager.remembers
    told["chained"] = [suffix.hex() for suffix in manager.tier.policy.chained]
    return told


def metrics(manager: Any) -> list[str]:
    store(manager, "ab", context("r"))
    store(manager, "ab", context("s"))
    stats = manager.get_stats()
    return sorted({name for part in stats.data.values() for name in part})


def slots() -> dict[str, Any]:
    import pickle

    spec = module("kvproof.impl.connector.own_manager").SlotSpec([3, 1])
    travelled = pickle.loads(pickle.dumps(spec))
    return {
        "ids": spec.block_ids.tolist(),
        "kind": str(spec.block_ids.dtype),
        "travelled": travelled.chunk_ids.tolist(),
    }


def refused_policy() -> str:
    spec: Any = object.__new__(module("kvproof.impl.connector.own_tier").KvproofOffloadingSpec)
    spec._manager, spec.eviction_policy, spec.cache_policy_module_path = None, "fifo", None
    try:
        spec.get_manager()
    except ValueError as error:
        return f"{type(error).__name__}: {error}"
    return "nothing was refused"


def look() -> dict[str, Any]:
    return {
        "alike": alike(),
        "reset": {name: after_a_reset(one) for name, one in both(4, events=True).items()},
        "going on": {name: going_on(one) for name, one in both(5).items()},
        "threshold": {name: refused(one) for name, one in both(1, 2).items()},
        "heard": heard(),
        "metrics": {name: metrics(one) for name, one in both(4, 2).items()},
        "slots": slots(),
        "policy": refused_policy(),
    }


if __name__ == "__main__":
    print(json.dumps(look()))
