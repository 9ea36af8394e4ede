"""Which requests may have completed a chunk, found without a look at each of them.

A clock advances with every step by the most tokens that one request of it computes; a request that
was seen to lack n tokens of its next chunk cannot complete it before the clock has advanced by n.
Steps are uneven, though: a few requests compute a prompt, all others a token each. So only requests
with small shares drive the clock, and those with large ones are looked at in every step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kvproof.impl.scheduler.request import RequestState
from kvproof.impl.scheduler.storing import NEVER

LARGEST_SMALL = 64
"""Up to how many tokens of a step are a small share: more than a decoding request computes, with
all that is drafted for it, and less than a prompt."""


class Alarms:
    """Requests by the time at which to look at them.

    Invariant: a running request is restless, or it is listed at the tick ``alarm``, which lies
    ahead, or ``alarm`` is 0 and it will never have more to offer. Lists hold ids, which keep nobody
    alive; what was set again since, or has ended, is outdated there.
    """

    def __init__(self) -> None:
        self._clock = 0
        self._ticks: dict[int, list[str]] = {}
        self._restless: dict[str, RequestState] = {}

    def __len__(self) -> int:
        """How many entries are kept, outdated ones included."""
        return len(self._restless) + sum(map(len, self._ticks.values()))

    def watch(self, state: RequestState) -> None:
        """Look at a request in the next step that schedules it: its count of tokens may jump."""
        state.alarm = 0
        self._restless[state.request.request_id] = state

    def forget(self, request_id: str) -> None:
        """A request has ended."""
        self._restless.pop(request_id, None)

    def set(self, state: RequestState, computed: int) -> None:
        """Look at a request when it may have ``state.due`` tokens; it has ``computed`` now."""
        if state.due >= NEVER:
            state.alarm = 0
            return
        state.alarm = tick = self._clock + max(1, state.due - computed)
        self._ticks.setdefault(tick, []).append(state.request.request_id)

    def advance(
        self,
        scheduled: Mapping[str, int],
        started: Iterable[str],
        requests: Mapping[str, RequestState],
    ) -> list[RequestState]:
        """The scheduled requests to look at in this step, each of which is to be ``set`` again."""
        found: dict[str, RequestState] = {}
        for request_id in started:
            if request_id in requests:
                self.watch(requests[request_id])
        for request_id in [one for one in self._restless if one in scheduled]:
            found[request_id] = self._restless.pop(request_id)
        sizes = set(scheduled.values())
        if max(sizes, default=0) > LARGEST_SMALL:
            for request_id, tokens in scheduled.items():
                if tokens > LARGEST_SMALL and request_id in requests:
                    found[request_id] = requests[request_id]
        small = max((size for size in sizes if size <= LARGEST_SMALL), default=0)
        for tick in range(self._clock + 1, self._clock + small + 1):
            self._clock = tick
            for request_id in self._ticks.pop(tick, ()):
                state = requests.get(request_id)
                if state is None or state.alarm != tick:
                    continue
                if request_id in scheduled:
                    found[request_id] = state
                else:
                    self.watch(state)
        return list(found.values())
