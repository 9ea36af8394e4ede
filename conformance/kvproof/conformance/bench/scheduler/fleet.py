"""Running requests, and the engine steps that they take together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from kvproof.conformance.bench.scheduler.scene import BLOCK, Scene, Side
from kvproof.conformance.engines.vllm.release import module

_PIECE = 1024
"""Tokens of one allocation of a prompt, so that windows give back their blocks on the way."""


class Fleet:
    """Requests that decode one token a step, each with a prompt of the same beginning.

    Their shared blocks are resident after the admission; what they generate is their own.
    """

    def __init__(self, scene: Scene, lengths: Sequence[int]) -> None:
        self._scene = scene
        self._contexts: dict[str, Any] = {}
        shared = scene.hashes(min(lengths) // BLOCK)
        self.requests = [scene.request(length, shared) for length in lengths]
        for first in range(0, len(self.requests), 64):
            self._admit(self.requests[first : first + 64])

    def _admit(self, requests: list[Any]) -> None:
        output = module("vllm.v1.core.sched.output")
        scene, tables = self._scene, self._scene.tables
        fresh = []
        for request in requests:
            tokens = request.num_prompt_tokens
            scene.arrive(request)
            for side in scene.sides:
                side.ask(request)
            while request.num_computed_tokens < tokens:
                piece = min(_PIECE, tokens - request.num_computed_tokens)
                if tables.allocate_slots(request, piece) is None:
                    raise RuntimeError("the GPU pool of this scene is too small")
                request.num_computed_tokens += piece
            request.num_computed_tokens = 0
            fresh.append(
                output.NewRequestData(
                    req_id=request.request_id,
                    prompt_token_ids=None,
                    mm_features=[],
                    sampling_params=None,
                    pooling_params=None,
                    block_ids=tables.get_block_ids(request.request_id),
                    num_computed_tokens=0,
                    lora_request=None,
                )
            )
        step = self._output(fresh, [], {r.request_id: r.num_prompt_tokens for r in requests})
        for side in scene.sides:
            side.end(side.scheduler.build_connector_meta(step).store_jobs)
        for request in requests:
            request.num_computed_tokens = request.num_prompt_tokens
            request.append_output_token_ids(1)
            self._offer_to_spare(request)

    def _offer_to_spare(self, request: Any) -> None:
        """The third tier, too, has seen the request's chunks: a floor is that of a used context."""
        name, spare = request.request_id, self._scene.spare
        context = self._contexts[name] = self._scene.context(name)
        keys = list(self._scene.keys(request.block_hashes[: request.num_prompt_tokens // BLOCK]))
        room = spare.prepare_store(keys, context)
        spare.complete_store(room.keys_to_store, context)

    def steps(self, count: int) -> Iterator[dict[str, Callable[[], object]]]:
        """So many decode steps; each is what both sides do for it. Jobs end right after it.

        ``floor``: a probe of every request, and the tier's own answers to what completes a chunk.
        """
        scene = self._scene
        for _ in range(count):
            output = self._schedule()
            metas: dict[str, Any] = {}
            yield {
                **{side.name: partial(_plan, side, output, metas) for side in scene.sides},
                "floor": self._floor(),
            }
            for side in scene.sides:
                side.end(metas[side.name].store_jobs)
            self._update()

    def _floor(self) -> Callable[[], object]:
        scene = self._scene
        known = {request.request_id: request for request in self.requests}
        offers = []
        for request in self.requests:
            number, rest = divmod(request.num_computed_tokens + 1, BLOCK)
            if not rest:
                keys = list(scene.keys(request.block_hashes[number - 1 : number]))
                offers.append((keys, self._contexts[request.request_id]))

        def run() -> None:
            for request_id in known:
                known.get(request_id)
            for keys, context in offers:
                scene.spare.prepare_store(keys, context)

        return run

    def _schedule(self) -> Any:
        tables = self._scene.tables
        blocks = []
        for request in self.requests:
            new = tables.allocate_slots(request, 1)
            blocks.append(new.get_block_ids(allow_none=True))
        scheduled = {request.request_id: 1 for request in self.requests}
        return self._output([], blocks, scheduled)

    def _update(self) -> None:
        for request in self.requests:
            request.num_computed_tokens += 1
            request.append_output_token_ids(1)

    def _output(self, fresh: list[Any], blocks: list[Any], scheduled: dict[str, int]) -> Any:
        output = module("vllm.v1.core.sched.output")
        running = self.requests if blocks else []
        return output.SchedulerOutput(
            scheduled_new_reqs=fresh,
            scheduled_cached_reqs=output.CachedRequestData(
                req_ids=[request.request_id for request in running],
                resumed_req_ids=set(),
                new_token_ids=[],
                all_token_ids={},
                new_block_ids=blocks,
                num_computed_tokens=[request.num_computed_tokens for request in running],
                num_output_tokens=[request.num_output_tokens for request in running],
            ),
            num_scheduled_tokens=scheduled,
            total_num_scheduled_tokens=sum(scheduled.values()),
            scheduled_spec_decode_tokens={},
            scheduled_encoder_inputs={},
            num_common_prefix_blocks=[],
            finished_req_ids=set(),
            free_encoder_mm_hashes=[],
        )


def _plan(side: Side, output: Any, metas: dict[str, Any]) -> None:
    metas[side.name] = side.scheduler.build_connector_meta(output)
