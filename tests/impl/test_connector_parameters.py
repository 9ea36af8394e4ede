"""Whatever a client sends with a request: what is honoured is what the stock connector honours.

This file runs itself once inside the release and prints what it saw; the tests read that. There,
Hypothesis sends any JSON value under any key that the connector, the core or a tier reads.
"""

from __future__ import annotations

import functools
import itertools
import json
import subprocess
import sys
from typing import Any

import pytest

from kvproof.conformance.engines.base import Add, Drain, GroupSetup, Setup
from kvproof.conformance.errors import UsageError
from kvproof.conformance.releases import child_environment
from kvproof.conformance.trace import events as ev

pytestmark = pytest.mark.vllm

RELEASE = "0.32.0"
KEYS = (
    *("max_load_tokens", "max_offload_tokens", "kv_load_tiers", "do_remote_prefill"),
    *("do_remote_decode", "remote_prefiller", "remote_decoder", "remote_kv_source"),
)
EXAMPLES = 300


@functools.cache
def seen() -> dict[str, Any]:
    """What was seen inside the release."""
    try:
        environment = child_environment(RELEASE)
    except UsageError as missing:
        pytest.skip(str(missing))
    command = [sys.executable, "-P", __file__]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


def test_any_value_under_any_key_is_served_like_none() -> None:
    served = seen()["served"]
    assert served["requests"] >= EXAMPLES
    assert served["raised"] == []
    assert served["ended"] == served["requests"]
    assert served["cold"] == 0
    assert served["finding"] is None


def test_caps_and_tiers_are_read_like_the_stock_connector_reads_them() -> None:
    assert seen()["compared"] >= EXAMPLES


def test_a_tier_that_stumbles_over_a_value_serves_that_request_without_it() -> None:
    run = seen()["stumbled"]
    assert run["raised"] == []
    assert run["cold"] == 0
    assert run["parameters"] == [{"remote_prefiller": 5}, None]
    assert run["stored"] == 4


# --- inside the release ---


def look() -> dict[str, Any]:
    import importlib

    from hypothesis import HealthCheck, given, settings
    from hypothesis import strategies as st

    from kvproof.conformance.engines.vllm import VllmTarget
    from kvproof.conformance.monitor.monitor import Monitor

    parameters: Any = importlib.import_module("kvproof.impl.connector.parameters")
    stock: Any = importlib.import_module(
        "vllm.distributed.kv_transfer.kv_connector.v1.offloading.scheduler"
    )
    target = VllmTarget("kvproof.impl.connector:OffloadingConnector")
    setup = Setup(groups=(GroupSetup("full", 16),), num_gpu_blocks=64, num_slots=64)

    words = st.sampled_from(
        ("CPU", "cpu", "storage", "LOCAL", "remote", "medium", "locality", "", "ß", "nowhere")
    )
    scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | words
    values = st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words | st.text(), inner),
        max_leaves=8,
    )
    tiers = st.lists(
        st.fixed_dictionaries({}, optional={"medium": scalars, "locality": scalars}) | values
    )
    known = st.fixed_dictionaries(
        {}, optional=dict.fromkeys(KEYS, values) | {"kv_load_tiers": tiers | values}
    )
    anything = known | st.dictionaries(st.text(), values, max_size=3) | values

    def engine_of(events: list[ev.AnyEvent]) -> tuple[Any, list[Any]]:
        """An engine, and a list: the parameters that its requests are to carry, the next last."""
        engine: Any = target.start(setup, events.append)
        make = engine._clients._request
        carried: list[Any] = []

        def request(move: Add) -> Any:
            made = make(move)
            made.kv_transfer_params = carried[-1]
            return made

        engine._clients._request = request
        return engine, carried

    events: list[ev.AnyEvent] = []
    engine, carried = engine_of(events)
    numbers = itertools.count()
    quiet = settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )

    @quiet
    @given(anything)
    def serve(value: Any) -> None:
        carried.append(value)
        engine.play(Add(f"r{next(numbers)}", tuple(range(40)), 1))
        engine.play(Drain())
        assert not engine.crashed, value

    serve()
    monitor = Monitor(engine.header)
    honoured = [one for one in map(monitor.feed, events) if one is not None]
    role = engine._scheduler.connector.connector_scheduler
    served = {
        "requests": len(carried),
        "raised": [one.exception for one in events if isinstance(one, ev.Raised)],
        "ended": sum(isinstance(one, ev.Finish) for one in events),
        "cold": role._warm.counts["cold"],
        "finding": honoured[0].id if honoured else None,
    }
    engine.close()

    class Request:
        """As much of a request as its parameters are read from."""

        request_id, kv_hints, skip_reading_prefix_cache = "r", None, False

        def __init__(self, params: Any) -> None:
            self.kv_transfer_params = params

    compared = 0

    @quiet
    @given(known)
    def compare(value: dict[str, Any]) -> None:
        nonlocal compared
        compared += 1
        request = Request(value)
        parameters.tidy(request)
        theirs = stock._create_req_context(request)
        assert parameters.context_of(request) == theirs, value
        nothing = type("Config", (), {"kv_group_configs": ()})()
        state = stock.RequestOffloadState(nothing, request, theirs, None)
        ours = parameters.limits_of(request)
        assert (ours.max_load, ours.max_store) == (state.max_load_tokens, state.max_offload_tokens)

    compare()

    manager: Any = importlib.import_module("vllm.v1.kv_offload.cpu.manager").CPUOffloadingManager
    announced, contexts = manager.on_new_request, []

    def stumbles(self: Any, context: Any) -> Any:
        contexts.append(context.kv_transfer_params)
        if context.kv_transfer_params:
            context.kv_transfer_params["remote_prefiller"].get("remote_host")
        return announced(self, context)

    manager.on_new_request = stumbles
    events = []
    engine, carried = engine_of(events)
    carried.append({"remote_prefiller": 5})
    engine.play(Add("a", tuple(range(64)), 1))
    engine.play(Drain())
    manager.on_new_request = announced
    role = engine._scheduler.connector.connector_scheduler
    stumbled = {
        "raised": [one.exception for one in events if isinstance(one, ev.Raised)],
        "cold": role._warm.counts["cold"],
        "parameters": contexts,
        "stored": len(role.manager._policy.chunks),
    }
    engine.close()
    return {"served": served, "compared": compared, "stumbled": stumbled}


if __name__ == "__main__":
    print(json.dumps(look()))
