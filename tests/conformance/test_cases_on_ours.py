"""The known kinds of faults, K1 to K10, played on our scheduler inside vLLM: nothing is found.

The last history is one that our own scheduler once broke.

Each history leads to the very place where other schedulers go wrong. That it does is asserted on
its events, so that no history passes because it takes another road.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kvproof.conformance.engines.base import (
    Abort,
    Add,
    Drain,
    GroupSetup,
    History,
    ResetCache,
    Setup,
    Step,
)
from kvproof.conformance.trace import events as ev
from tests.conformance.on_ours import Run, history, play

pytestmark = pytest.mark.vllm

FULL_2 = GroupSetup("full", 2)
FULL_4 = GroupSetup("full", 4)


def tokens(count: int, start: int = 0) -> tuple[int, ...]:
    return tuple(range(start, start + count))


def held(count: int) -> list[Step]:
    """Steps in which no copy ends."""
    return [Step("none")] * count


HISTORIES: dict[str, History] = {
    # a's store fills the tier and stays in flight; b's is refused, and b's window slides. When a's
    # store has failed, there is room for b.
    "K1": history(
        Setup(
            groups=(FULL_4, GroupSetup("window", 4, 4)),
            num_gpu_blocks=11,
            num_slots=2,
            prompt_only=True,
            max_batch_tokens=16,
        ),
        Add("a", tokens(6), 4),
        Add("b", tokens(9, 100), 6),
        *held(3),
        Step("all", "stores"),
        Drain(),
    ),
    # b's store is in flight when b is put back, and comes again with a hit that its cap bounds.
    "K2": history(
        Setup(groups=(FULL_2,)),
        Add("b", tokens(8), 6, max_load=4),
        *[Step()] * 2,
        Step("none"),
        ResetCache(connector=False, running=True),
        *held(2),
        Drain(),
    ),
    "K3": history(
        Setup(groups=(FULL_2, GroupSetup("window", 2, 4))),
        Add("a", tokens(9), 4),
        Abort("a"),
        Step(),
        Drain(),
    ),
    # The store is in flight at the reset, and while its request is put back and asked about.
    "K4": history(
        Setup(groups=(FULL_2,)),
        Add("a", tokens(9), 8),
        *held(1),
        ResetCache(connector=True, running=False),
        ResetCache(connector=False, running=True),
        *held(3),
        Drain(),
    ),
    # 14 tokens of full attention are stored, and no window of chunks of 4 ends there.
    "K5": history(
        Setup(groups=(FULL_2, GroupSetup("window", 4, 6))),
        Add("a", tokens(15), 1),
        Drain(),
        ResetCache(connector=False),
        Add("b", tokens(15), 1),
        Drain(),
    ),
    # As K1, but chunks have four blocks, of which some have slid when there is room again.
    "K6": history(
        Setup(
            groups=(GroupSetup("window", 2, 4),),
            blocks_per_chunk=4,
            num_slots=1,
            max_batch_tokens=16,
        ),
        Add("a", tokens(9), 1),
        *held(1),
        Add("b", tokens(8, 100), 12),
        *held(2),
        *[Step()] * 8,
        Drain(),
    ),
    "K7": history(
        Setup(groups=(FULL_2,)),
        Add("a", tokens(9), 4),
        *held(1),
        ResetCache(connector=True),
        ResetCache(connector=True),
        *held(2),
        ResetCache(connector=True),
        Drain(),
    ),
    # The second connector knows c's prompt from a, and fills blocks that b's store reads.
    "K8": history(
        Setup(groups=(FULL_4,), num_gpu_blocks=5, second_connector=True),
        Add("a", tokens(13), 1),
        Step(),
        Add("b", tokens(12, 100), 1),
        Step(),
        Add("c", tokens(13), 1),
        Step("none"),
        Drain(),
    ),
    # Chunks 0 and 1 are ready, the store of 2 has failed, that of 3 is in flight.
    "K9": history(
        Setup(groups=(GroupSetup("window", 2, 4),), max_batch_tokens=2),
        Add("a", tokens(5), 1),
        Drain(),
        Add("b", tokens(9), 1),
        Step("none"),
        Step("all", "stores"),
        *held(2),
        ResetCache(connector=False),
        Add("e", tokens(9), 1),
        Step("none"),
        Drain(),
    ),
    # The prompt ends with a chunk: its own state is stored, and must not be what is loaded.
    "K10": history(
        Setup(groups=(FULL_4, GroupSetup("recurrent", 4)), max_batch_tokens=4),
        Add("a", tokens(16), 2),
        Drain(),
        ResetCache(connector=False),
        Add("b", tokens(16), 2),
        Drain(),
    ),
    # The hit ends inside a block, which the window group has for the next token alone.
    "a window of one token": history(
        Setup(groups=(FULL_4, GroupSetup("window", 4, 1))),
        Add("a", tokens(16), 1),
        Drain(),
        ResetCache(connector=False),
        Add("b", tokens(16), 1),
        Drain(),
    ),
}


@pytest.fixture(scope="module")
def runs() -> dict[str, Run]:
    return play(HISTORIES)


@pytest.mark.parametrize("case", HISTORIES)
def test_nothing_is_found(runs: dict[str, Run], case: str) -> None:
    assert runs[case].findings == []
    assert runs[case].played
    assert isinstance(runs[case].events[-1], ev.Drained)


# --- that each history gets there ---


def index(run: Run, *kinds: type[ev.Event], after: int = -1, **fields: object) -> int:
    """Where the first such event comes."""
    return next(
        i
        for i, event in enumerate(run.events)
        if i > after
        and isinstance(event, kinds)
        and all(getattr(event, name) == value for name, value in fields.items())
    )


def unreported(run: Run, at: int) -> dict[int, ev.Issue]:
    """Jobs that are issued and not reported when event ``at`` comes."""
    jobs: dict[int, ev.Issue] = {}
    for event in run.events[:at]:
        match event:
            case ev.Issue(job=job):
                jobs[job] = event
            case ev.Report(job=job):
                jobs.pop(job, None)
            case _:
                pass
    return jobs


def tier(run: Run, at: int) -> dict[str, str]:
    """Key to "storing" or "ready", when event ``at`` comes."""
    state: dict[str, str] = {}
    for event in run.events[:at]:
        match event:
            case ev.PrepareStore(accepted=accepted, evicted=evicted):
                state |= dict.fromkeys((key for key, _ in accepted), "storing")
                for key in evicted:
                    del state[key]
            case ev.CompleteStore(keys=keys, ok=True):
                state |= dict.fromkeys(keys, "ready")
            case ev.CompleteStore(keys=keys):
                for key in keys:
                    del state[key]
            case ev.TierReset():
                state.clear()
            case _:
                pass
    return state


def keys(run: Run, req: str, group: int) -> list[str]:
    """The keys of a request's hashes in a group, in order."""
    hashed = (e for e in run.events if isinstance(e, ev.Hashed) and e.req == req)
    return [f"{found}:{group}" for event in hashed for found in event.hashes]


def slid(run: Run, req: str, first: int, last: int) -> Iterator[tuple[int, ev.Lease]]:
    """Leases of ``req`` that slid out of its window between two events, and when."""
    leases = {e.lease: e for e in run.events if isinstance(e, ev.Lease)}
    for i, event in enumerate(run.events[first:last], start=first):
        if isinstance(event, ev.Free) and event.req == req and event.why == "slide":
            yield i, leases[event.lease]


def refusal(run: Run, req: str) -> tuple[int, int]:
    """Where the first offer of ``req`` is refused, and where one is accepted after that."""
    refused = index(run, ev.PrepareStore, req=req, refused=True)
    accepted = next(
        i
        for i, event in enumerate(run.events)
        if i > refused
        and isinstance(event, ev.PrepareStore)
        and event.req == req
        and event.accepted
    )
    return refused, accepted


def test_k1_refused_window_blocks_slide_and_are_handed_out_again(runs: dict[str, Run]) -> None:
    run = runs["K1"]
    refused, accepted = refusal(run, "b#0")
    offered = run.events[refused]
    assert isinstance(offered, ev.PrepareStore)
    chunks = {keys(run, "b#0", 1).index(key) for key in offered.keys if key.endswith(":1")}
    gone = [pair for pair in slid(run, "b#0", refused, accepted) if pair[1].position in chunks]
    assert gone
    again = [
        e.block
        for i, lease in gone
        for e in run.events[i:accepted]
        if isinstance(e, ev.Lease) and e.block == lease.block
    ]
    assert again


def test_k2_a_hit_is_taken_while_a_store_of_the_request_is_in_flight(runs: dict[str, Run]) -> None:
    run = runs["K2"]
    preempted = index(run, ev.Preempt, req="b#0")
    answered = index(run, ev.Answer, after=preempted, req="b#0")
    answer = run.events[answered]
    assert isinstance(answer, ev.Answer)
    assert answer.tokens == 4
    assert [job.kind for job in unreported(run, answered).values()] == ["store"]
    taken = index(run, ev.Allocated, after=answered, req="b#0", external=4)
    assert [job.kind for job in unreported(run, taken).values()] == ["store"]


def test_k3_a_request_with_keys_and_without_blocks_ends(runs: dict[str, Run]) -> None:
    run = runs["K3"]
    ended = index(run, ev.Finish, req="a#0", status="aborted")
    assert len(keys(run, "a#0", 0)) == 4
    assert index(run, ev.Hashed, req="a#0") < ended
    assert run.of(ev.Lease, ev.PrepareStore) == []


def test_k4_a_job_of_before_a_reset_outlives_preemption_and_lookup(runs: dict[str, Run]) -> None:
    run = runs["K4"]
    reset = index(run, ev.Reset)
    preempted = index(run, ev.Preempt, after=reset, req="a#0")
    answered = index(run, ev.Answer, after=preempted, req="a#0")
    before = unreported(run, reset)
    assert [job.kind for job in before.values()] == ["store"]
    assert before == unreported(run, answered)
    answer = run.events[answered]
    assert isinstance(answer, ev.Answer)
    assert answer.tokens == 0


def test_k5_a_hit_ends_where_chunks_of_the_window_end(runs: dict[str, Run]) -> None:
    run = runs["K5"]
    answered = index(run, ev.Answer, req="b#0")
    answer = run.events[answered]
    assert isinstance(answer, ev.Answer)
    state = tier(run, answered)
    full, window = keys(run, "b#0", 0), keys(run, "b#0", 1)
    assert [state[key] for key in full[:7]] == ["ready"] * 7  # 14 tokens
    assert answer.tokens == 12
    loaded = run.events[index(run, ev.PrepareLoad, req="b#0")]
    assert isinstance(loaded, ev.PrepareLoad)
    # Hashes are of 2 tokens: window chunks 1 and 2 end with the fourth and the sixth of them.
    assert loaded.keys == [*full[:6], window[3], window[5]]


def test_k6_a_chunk_is_stored_of_which_some_blocks_have_slid(runs: dict[str, Run]) -> None:
    run = runs["K6"]
    refused, accepted = refusal(run, "b#0")
    assert list(slid(run, "b#0", refused, accepted))
    stored = run.events[index(run, ev.Issue, after=accepted, req="b#0", kind="store")]
    assert isinstance(stored, ev.Issue)
    offsets = [piece.offset for piece in stored.pieces]
    assert offsets
    assert offsets[0] > 0
    assert offsets == list(range(offsets[0], 4))


def test_k7_a_reset_follows_a_reset_with_no_step_between(runs: dict[str, Run]) -> None:
    run = runs["K7"]
    first = index(run, ev.Reset)
    second = index(run, ev.Reset, after=first)
    assert not any(isinstance(e, ev.Scheduled) for e in run.events[first:second])
    assert [job.kind for job in unreported(run, first).values()] == ["store"]
    assert len(run.of(ev.Reset)) == 3
    assert run.of(ev.ResetRefused) == []


def test_k8_blocks_that_a_store_reads_are_filled_by_another_connector(
    runs: dict[str, Run],
) -> None:
    run = runs["K8"]
    filled = index(run, ev.Filled, req="c#0")
    step = run.events[filled].step
    scheduled = index(run, ev.Scheduled, step=step)
    fresh = {e.block for e in run.of(ev.Lease) if isinstance(e, ev.Lease) and e.req == "c#0"}
    reading = {
        number
        for number, job in unreported(run, scheduled).items()
        if fresh & {piece.block for piece in job.pieces}
    }
    assert reading
    flush = run.events[index(run, ev.Flush, step=step)]
    assert isinstance(flush, ev.Flush)
    assert reading <= set(flush.jobs)


def test_k9_a_window_that_cannot_grow_is_not_waited_for(runs: dict[str, Run]) -> None:
    run = runs["K9"]
    answered = index(run, ev.Answer, req="e#0")
    answer = run.events[answered]
    assert isinstance(answer, ev.Answer)
    state = tier(run, answered)
    assert [state.get(key) for key in keys(run, "e#0", 0)[:4]] == [
        "ready",
        "ready",
        None,
        "storing",
    ]
    assert answer.tokens == 4


def test_k10_the_state_before_the_last_chunk_is_loaded(runs: dict[str, Run]) -> None:
    run = runs["K10"]
    answered = index(run, ev.Answer, req="b#0")
    answer = run.events[answered]
    assert isinstance(answer, ev.Answer)
    states = keys(run, "b#0", 1)
    state = tier(run, answered)
    assert [state.get(key) for key in states[2:4]] == ["ready", "ready"]  # after 12, after 16
    assert answer.tokens == 12
    loaded = run.events[index(run, ev.PrepareLoad, req="b#0")]
    assert isinstance(loaded, ev.PrepareLoad)
    assert [key for key in loaded.keys if key.endswith(":1")] == [states[2]]


def test_a_window_of_one_token_loads_nothing(runs: dict[str, Run]) -> None:
    run = runs["a window of one token"]
    answer = run.events[index(run, ev.Answer, req="b#0")]
    assert isinstance(answer, ev.Answer)
    assert answer.tokens == 15
    loaded = run.events[index(run, ev.PrepareLoad, req="b#0")]
    assert isinstance(loaded, ev.PrepareLoad)
    assert loaded.keys == keys(run, "b#0", 0)
    assert [e.ok for e in run.of(ev.Received) if isinstance(e, ev.Received)] == [True]
