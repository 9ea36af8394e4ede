"""The tap on requests: their ends, preemptions and extensions, where the core decides them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kvproof.conformance.engines.vllm.blocks import BlockTap
from kvproof.conformance.engines.vllm.recorder import Recorder
from kvproof.conformance.trace.events import SCHEDULER_RANK, Extended, Finish, Preempt


def tap_requests(
    recorder: Recorder,
    scheduler: Any,
    blocks: BlockTap,
    extended: Callable[[str, int, list[int]], None],
) -> None:
    """Wrap the scheduler's own ``_preempt_request``, ``_free_request`` and ``_free_blocks``.

    They are the places where it takes a request's blocks back, so the block tap learns here why.
    ``_update_request_as_session`` is where a session takes more input up: ``extended`` is called
    with its incarnation, how many tokens it keeps, and the input.
    """
    preempt, free = scheduler._preempt_request, scheduler._free_request
    free_blocks = scheduler._free_blocks

    def preempt_request(request: Any, *args: Any, **kwargs: Any) -> Any:
        name = recorder.of_request(request)
        recorder.emit(Preempt(recorder.step, SCHEDULER_RANK, name))
        with blocks.because("preempt"):
            return preempt(request, *args, **kwargs)

    def free_request(request: Any, *args: Any, **kwargs: Any) -> Any:
        # What the last output completed is known to the connector when it hears of the end.
        recorder.hashes(request)
        status = request.status.name.removeprefix("FINISHED_").lower()
        recorder.emit(Finish(recorder.step, SCHEDULER_RANK, recorder.of_request(request), status))
        return free(request, *args, **kwargs)

    def free_its_blocks(request: Any) -> Any:
        with blocks.because("finish"):
            return free_blocks(request)

    extend = scheduler._update_request_as_session

    def update_request_as_session(session: Any, update: Any) -> None:
        name, kept = recorder.of_request(session), session.num_computed_tokens
        tokens, before = list(update.prompt_token_ids or ()), list(session.block_hashes)
        extend(session, update)
        recorder.emit(Extended(recorder.step, SCHEDULER_RANK, name, kept, tokens))
        extended(name, kept, tokens)
        recorder.rehashed(session, before)

    scheduler._update_request_as_session = update_request_as_session
    scheduler._preempt_request = preempt_request
    scheduler._free_request = free_request
    scheduler._free_blocks = free_its_blocks
