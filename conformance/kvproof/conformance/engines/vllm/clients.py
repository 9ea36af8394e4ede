"""What clients send: requests and sessions as the release wants them, and the model's answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvproof.conformance.engines.base import Add, Extend, Setup
from kvproof.conformance.engines.vllm.capacity import fits
from kvproof.conformance.engines.vllm.features import Features
from kvproof.conformance.engines.vllm.recorder import Recorder
from kvproof.conformance.engines.vllm.release import Release, call
from kvproof.conformance.engines.vllm.sampling import STOP, TokenStream
from kvproof.conformance.trace.events import SCHEDULER_RANK, Arrive


class Clients:
    """The clients of one run.

    Attributes:
        streams: the tokens of each incarnation, known ones and those to come.
    """

    def __init__(
        self,
        release: Release,
        features: Features,
        setup: Setup,
        recorder: Recorder,
        scheduler: Any,
        tokens_per_hash: int,
    ) -> None:
        self._release = release
        self._features = features
        self._setup = setup
        self._recorder = recorder
        self._scheduler = scheduler
        self._hasher = release.cache_utils.get_request_block_hasher(
            tokens_per_hash, release.hash_function
        )
        self.streams: dict[str, TokenStream] = {}
        # Open sessions, by id: the core's request, and the most tokens that it will come to have.
        self._sessions: dict[str, tuple[Any, int]] = {}

    def add(self, move: Add) -> bool:
        """Send a prompt; False when the engine cannot take it.

        That is: the id is in use, the pool could never hold the request, or this release does not
        know one of its options.
        """
        scheduler, recorder = self._scheduler, self._recorder
        if move.req in scheduler.requests or not move.tokens or move.max_tokens < 1:
            return False
        tokens = len(move.tokens) + move.max_tokens
        if not fits(self._setup, tokens) or not self._knows(move):
            return False
        request = self._request(move)
        name = recorder.born(request)
        self.streams[name] = TokenStream(list(move.tokens), move.stop_after)
        recorder.emit(
            Arrive(
                recorder.step,
                SCHEDULER_RANK,
                name,
                list(move.tokens),
                max_load=move.max_load,
                max_offload=move.max_offload,
                skip_reading=move.skip_reading,
            )
        )
        recorder.hashes(request)
        if move.session:
            self._sessions[move.req] = (request, tokens)
        scheduler.add_request(request)
        return True

    def _knows(self, move: Add) -> bool:
        features = self._features
        return not (
            (move.max_load is not None and not features.max_load_tokens)
            or (move.max_offload is not None and not features.max_offload_tokens)
            or (move.stop_after is not None and move.stop_after < 1)
            # What was scheduled ahead of a stop that nobody foresaw would be computed after the
            # session went on: the trace has no words for that.
            or (move.session and move.stop_after is not None and self._setup.asynchronous)
        )

    def extend(self, move: Extend) -> bool:
        """Send a session more input, or its end; False when there is no such session."""
        if move.req not in dict(self._open()):
            return False
        session, tokens = self._sessions[move.req]
        if not move.tokens:
            del self._sessions[move.req]
            self._scheduler.add_request(self._request(Add(move.req, (0,), 1)))
            return True
        # Not every core takes the new input's own limit over.
        tokens += len(move.tokens) + max(move.max_tokens, session.max_tokens)
        if move.max_tokens < 1 or not fits(self._setup, tokens):
            return False
        self._sessions[move.req] = (session, tokens)
        add = Add(move.req, move.tokens, move.max_tokens, session=True)
        self._scheduler.add_request(self._request(add))
        return True

    def forget(self) -> None:
        """No request that was sent is alive."""
        self.streams.clear()
        self._sessions.clear()

    def close_sessions(self) -> None:
        """Tell the engine that no session gets more input."""
        for identity, _ in list(self._open()):
            self.extend(Extend(identity))

    def extended(self, name: str, kept: int, tokens: list[int]) -> None:
        """A session went on with ``tokens`` after its first ``kept`` ones."""
        self.streams[name] = self.streams[name].extended(kept, tokens)

    def _open(self) -> Iterator[tuple[str, Any]]:
        for identity, (request, _) in self._sessions.items():
            if self._scheduler.requests.get(identity) is request and not request.is_finished():
                yield identity, request

    def _request(self, move: Add) -> Any:
        caps = {"max_load_tokens": move.max_load, "max_offload_tokens": move.max_offload}
        caps = {name: cap for name, cap in caps.items() if cap is not None}
        params = self._release.sampling_params(
            max_tokens=move.max_tokens,
            ignore_eos=True,
            stop_token_ids=[] if move.stop_after is None else [STOP],
            skip_reading_prefix_cache=move.skip_reading,
            extra_args={"kv_transfer_params": caps} if caps else None,
        )
        return call(
            self._release.request_class,
            request_id=move.req,
            prompt_token_ids=list(move.tokens),
            sampling_params=params,
            pooling_params=None,
            # A fixed time keeps the core's ordering by arrival repeatable.
            arrival_time=0.0,
            block_hasher=self._hasher,
            resumable=move.session,
        )
