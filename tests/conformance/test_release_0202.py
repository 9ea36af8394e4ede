"""A connector that numbers no jobs: what its workers say of requests is told of jobs."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from kvproof.conformance.engines.vllm.jobs import RequestJobs
from kvproof.conformance.releases.child import child_environment
from kvproof.conformance.releases.folders import installed
from kvproof.conformance.trace.events import Report

RELEASE = "0.20.2"


def meta(
    load: tuple[str, ...] = (), store: tuple[str, ...] = (), flush: tuple[str, ...] = ()
) -> Any:
    """What the scheduler hands to the workers in a step, by requests."""
    return SimpleNamespace(
        reqs_to_load=dict.fromkeys(load, ("slots", "blocks")),
        reqs_to_store=dict.fromkeys(store, ("blocks", "slots")),
        reqs_to_flush=set(flush) or None,
    )


def carried(sending: tuple[str, ...] = (), recving: tuple[str, ...] = ()) -> Any:
    """What a worker says of requests."""
    return SimpleNamespace(finished_sending=set(sending), finished_recving=set(recving) or None)


def planned(jobs: RequestJobs, step: int, handed: Any) -> list[tuple[int, str, str]]:
    return [(job.number, job.kind, job.identity) for job in jobs.planned(step, handed)]


def test_jobs_are_counted_as_workers_do_loads_before_stores() -> None:
    jobs = RequestJobs()
    assert planned(jobs, 0, meta(store=("a", "b"))) == [(0, "store", "a"), (1, "store", "b")]
    assert planned(jobs, 1, meta(load=("c",), store=("a",))) == [
        (2, "load", "c"),
        (3, "store", "a"),
    ]


def test_a_flush_names_all_stores_of_the_request_that_came_before() -> None:
    jobs = RequestJobs()
    for step, handed in enumerate((meta(store=("a", "b")), meta(store=("a",)))):
        assert jobs.flushed(step, handed) == []
        jobs.planned(step, handed)
    again = meta(store=("a",), flush=("a", "unknown"))
    assert jobs.flushed(2, again) == jobs.told(2) == [0, 2]
    assert jobs.told(1) == []


def test_a_request_s_report_is_one_of_all_its_jobs_and_each_rank_makes_it_once() -> None:
    jobs = RequestJobs()
    jobs.planned(0, meta(store=("a", "b")))
    jobs.planned(1, meta(load=("c",), store=("a",)))
    assert list(jobs.reports(2, 1, carried(recving=("c", "of another connector")), set())) == [
        Report(2, 1, 2, True)
    ]
    assert list(jobs.reports(3, 0, carried(sending=("a",)), {3})) == [
        Report(3, 0, 0, True),
        Report(3, 0, 3, False),
    ]
    assert list(jobs.reports(4, 0, carried(sending=("a",)), set())) == []
    assert list(jobs.reports(4, 1, carried(sending=("a",)), set())) == [
        Report(4, 1, 0, True),
        Report(4, 1, 3, True),
    ]


# Runs in the child: a history with loads that holds, and one with a preemption that does not.
PLAYED = """
import json
from collections import Counter
from kvproof.conformance.engines.base import Add, Drain, GroupSetup, ResetCache, Setup, Step
from kvproof.conformance.engines.vllm import VllmTarget
from kvproof.conformance.fuzz.session import Session

target = VllmTarget()
full = GroupSetup("full", 4)
prompt = tuple(range(30))
told = {"refused": target.supports(Setup(groups=(full, full)))}
calm = [Add("a", prompt, 6), *[Step("none")] * 3, Drain(), ResetCache(connector=False),
        Add("b", prompt, 4), *[Step()] * 3, Drain()]
pressed = [Add("a", prompt, 12), Add("b", prompt[::-1], 12), *[Step("none")] * 12]
for name, workers, blocks, moves in (("calm", 2, 64, calm), ("pressed", 1, 16, pressed)):
    setup = Setup(groups=(full,), blocks_per_chunk=2, num_gpu_blocks=blocks, num_workers=workers)
    session = Session(target, setup)
    for move in moves:
        session.play(move)
    told[name] = {
        "finding": session.finding and list(session.finding.signature())[:2],
        "events": Counter(type(event).__name__ for event in session.events),
        "counted": session.engine._connector._jobs._next,
        "workers": [c.connector_worker._job_counter for c in session.engine._workers.connectors],
        "features": session.engine.header.features,
    }
    session.close()
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def played() -> Any:
    if RELEASE not in installed():
        pytest.skip(f"vLLM {RELEASE} is not installed: kvproof releases add {RELEASE}")
    ended = subprocess.run(
        [sys.executable, "-c", PLAYED],
        env=child_environment(RELEASE),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])


@pytest.mark.vllm
def test_stores_and_loads_are_followed_from_plan_to_report(played: Any) -> None:
    calm = played["calm"]
    assert calm["finding"] is None
    assert (calm["features"]["numbers_jobs"], calm["features"]["hybrid"]) == (False, False)
    jobs, events = calm["counted"], calm["events"]
    assert calm["workers"] == [jobs, jobs]
    assert events["Issue"] == jobs >= 3
    assert events["PrepareLoad"] == events["Received"] == events["CompleteLoad"] == 1
    # Two workers have carried each job out, and the scheduler has heard of each from both.
    assert events["Submit"] == events["Done"] == events["Report"] == 2 * jobs


@pytest.mark.vllm
def test_a_preempted_request_s_stores_are_published_before_anybody_waited(played: Any) -> None:
    pressed = played["pressed"]
    assert pressed["finding"] == ["P4", "publish"]
    assert pressed["events"]["Preempt"] == 1


@pytest.mark.vllm
def test_several_groups_are_refused(played: Any) -> None:
    assert played["refused"] == "the connector of this release takes one group, of full attention"
