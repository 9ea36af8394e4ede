"""Alarms: nobody who has completed a chunk is overlooked, and hardly anybody else is looked at."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from kvproof.impl.scheduler.alarms import LARGEST_SMALL, Alarms
from kvproof.impl.scheduler.request import Limits, RequestState
from kvproof.impl.scheduler.storing import NEVER

from .small_world import SmallRequest


@dataclass
class Fleet:
    """Requests that are due every ``chunk`` tokens."""

    chunk: int

    def __post_init__(self) -> None:
        self.alarms = Alarms()
        self.requests: dict[str, RequestState] = {}
        self.running: set[str] = set()

    def add(self, request_id: str, computed: int = 0) -> None:
        request = SmallRequest(request_id, 1 << 20, num_computed_tokens=computed)
        self.requests[request_id] = RequestState(request, None, Limits(), [0], self.chunk)

    def step(self, scheduled: dict[str, int]) -> tuple[set[str], set[str]]:
        """Who is looked at, and who has completed a chunk in this step."""
        started = [one for one in scheduled if one not in self.running]
        self.running.update(scheduled)
        computed = {
            one: self.requests[one].request.num_computed_tokens + tokens
            for one, tokens in scheduled.items()
        }
        complete = {one for one in scheduled if computed[one] >= self.requests[one].due}
        looked = set()
        for state in self.alarms.advance(scheduled, started, self.requests):
            one = state.request.request_id
            looked.add(one)
            state.due = max(state.due, (computed[one] // self.chunk + 1) * self.chunk)
            self.alarms.set(state, computed[one])
        for one, tokens in computed.items():
            self.requests[one].request.num_computed_tokens = tokens
        return looked, complete


@settings(max_examples=200)
@given(st.data())
def test_nobody_who_has_completed_a_chunk_is_overlooked(data: st.DataObject) -> None:
    fleet = Fleet(data.draw(st.sampled_from([1, 4, 16, 100])))
    for number in range(data.draw(st.integers(1, 6))):
        fleet.add(f"r{number}", data.draw(st.integers(0, 50)))
    tokens = st.sampled_from([1, 1, 1, 2, 5, LARGEST_SMALL, LARGEST_SMALL + 1, 300])
    for _ in range(data.draw(st.integers(1, 40))):
        ids = data.draw(st.lists(st.sampled_from(sorted(fleet.requests)), unique=True))
        looked, complete = fleet.step({one: data.draw(tokens) for one in ids})
        assert complete <= looked <= set(ids)
        for one in ids:
            what = data.draw(st.sampled_from(["goes on"] * 6 + ["rejected", "preempted", "ends"]))
            state = fleet.requests[one]
            if what == "rejected":
                # Drafted tokens were not accepted.
                state.request.num_computed_tokens -= data.draw(
                    st.integers(0, min(3, state.request.num_computed_tokens))
                )
            elif what == "preempted":
                # It starts again, with whatever a cache has for it.
                fleet.running.discard(one)
                state.request.num_computed_tokens = data.draw(st.integers(0, 400))
            elif what == "ends":
                fleet.running.discard(one)
                fleet.alarms.forget(one)
                fleet.add(one)


def test_in_decoding_only_those_are_looked_at_that_complete_a_chunk() -> None:
    fleet = Fleet(16)
    for number in range(64):
        fleet.add(f"r{number}", number)
    everybody = dict.fromkeys(fleet.requests, 1)
    fleet.step(everybody)
    for _ in range(100):
        looked, complete = fleet.step(everybody)
        assert looked == complete
        assert len(looked) == 4


def test_a_prompt_beside_them_does_not_wake_the_others() -> None:
    fleet = Fleet(16)
    for number in range(64):
        fleet.add(f"r{number}", number)
    everybody = dict.fromkeys(fleet.requests, 1)
    fleet.add("prompt")
    fleet.step(everybody)
    for _ in range(50):
        looked, complete = fleet.step({**everybody, "prompt": 2048})
        assert looked == complete
        assert len(looked) == 5


def test_who_has_nothing_more_to_offer_is_forgotten() -> None:
    alarms = Alarms()
    state = RequestState(SmallRequest("r", 8), None, Limits(), [0], NEVER)
    requests = {"r": state}
    assert alarms.advance({"r": 1}, ["r"], requests) == [state]
    alarms.set(state, 1)
    assert len(alarms) == 0
    assert alarms.advance({"r": 1}, [], requests) == []


def test_who_is_not_scheduled_when_its_time_has_come_is_looked_at_as_soon_as_it_is() -> None:
    fleet = Fleet(4)
    fleet.add("a")
    fleet.add("b")
    fleet.step({"a": 3, "b": 3})
    assert fleet.step({"b": 1}) == ({"b"}, {"b"})
    assert fleet.step({"b": 1}) == (set(), set())
    assert fleet.step({"a": 1, "b": 1}) == ({"a"}, {"a"})


def test_outdated_entries_keep_no_request() -> None:
    fleet = Fleet(4)
    fleet.add("a")
    fleet.step({"a": 1})
    fleet.alarms.forget("a")
    del fleet.requests["a"]
    fleet.add("b")
    for _ in range(4):
        fleet.step({"b": 1})
    assert len(fleet.alarms) == 1
