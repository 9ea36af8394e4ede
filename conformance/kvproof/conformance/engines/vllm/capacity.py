"""Whether the pool can ever hold a request.

A real engine is started with a pool that holds its longest request; here the fuzzer draws both, so
requests that could never run are turned away at the door.
"""

from __future__ import annotations

from kvproof.conformance.engines.base import GroupSetup, Setup
from kvproof.conformance.engines.vllm.configs import MAX_MODEL_LEN


def fits(setup: Setup, tokens: int) -> bool:
    """Whether a request of ``tokens`` tokens, generated ones too, can run to its end alone."""
    if tokens > MAX_MODEL_LEN:
        return False
    # Steps that are scheduled and not processed keep what they read.
    flights = 2 if setup.asynchronous else 1
    # A drafter's proposal has its place reserved ahead of the tokens, in every group.
    tokens += any(group.draft for group in setup.groups)
    needed = sum(_blocks(group, tokens, flights, setup.max_batch_tokens) for group in setup.groups)
    return needed <= setup.num_gpu_blocks


def _blocks(group: GroupSetup, tokens: int, flights: int, batch: int) -> int:
    """Most blocks that one request of ``tokens`` tokens holds in ``group`` at a time."""
    size = group.tokens_per_block
    blocks = -(-tokens // size)
    if group.kind == "full":
        return blocks
    if group.kind == "recurrent":
        return min(blocks, 2 + flights)
    span = (group.window or 0) + flights * batch
    return min(blocks, -(-span // size) + 1)
