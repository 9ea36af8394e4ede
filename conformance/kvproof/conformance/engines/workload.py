"""The scripted workload that ``kvproof record`` plays: one of everything that a connector meets.

Prompts with a common prefix; blocks shared through the GPU prefix cache; stores that end late;
a window that slides; loads from the tier after the GPU cache was dropped; preemption by pool
pressure; blocks handed out again while a store reads them; an abort; a client's id used again; a
reset of everything.

It is the same for every release and stays clear of their known faults: the tier is ample, resets
come when no copy is in flight, and a recurrent group is only there when asked for. Beside full
attention it meets two faults of vLLM's core. From 0.23 to 0.25 the workers clear the very blocks
that a load of the same step writes (``new_block_ids_to_zero`` in ``Scheduler.schedule``), and the
load's stream does not wait for that. From 0.24 to 0.26 a request is admitted at the longest prefix
that any one group has cached (``find_longest_cache_hit_per_group``), where others have no block.
The pool has a few blocks more than it takes to preempt: with fewer, two requests that hold loaded
blocks come to wait for each other's for ever in the cores of 0.24 and 0.25, scheduling ahead. With
a recurrent group it is smaller, so that 0.26 admits nothing wrong unless it schedules ahead.
"""

from __future__ import annotations

from kvproof.conformance.engines.base import (
    Abort,
    Add,
    Drain,
    GroupSetup,
    Move,
    ResetCache,
    Setup,
    Step,
    Target,
)

_BLOCK = 4
_GROUPS = (
    GroupSetup("full", _BLOCK),
    GroupSetup("window", _BLOCK, window=2 * _BLOCK),
)
_RECURRENT = GroupSetup("recurrent", _BLOCK)


def scripted(
    target: Target,
    *,
    blocks_per_chunk: int = 1,
    asynchronous: bool = False,
    num_workers: int = 1,
    recurrent: bool = False,
) -> tuple[Setup, list[Move]]:
    """A setup, and the moves to play on it.

    Groups are full attention and a sliding window where ``target`` takes both, else full attention
    alone. ``recurrent`` adds a third group, whether the target takes it or not.
    """
    wanted = [(*_GROUPS, _RECURRENT)] if recurrent else [_GROUPS, _GROUPS[:1]]
    setups = [
        Setup(
            groups=groups,
            blocks_per_chunk=blocks_per_chunk,
            num_gpu_blocks=12 * len(groups) if recurrent else 15 * len(groups) + 1,
            num_slots=200,
            max_batch_tokens=16,
            max_running=3,
            num_workers=num_workers,
            asynchronous=asynchronous,
        )
        for groups in wanted
    ]
    setup = next((setup for setup in setups if target.supports(setup) is None), setups[-1])
    return setup, _moves()


def _moves() -> list[Move]:
    prefix = tuple(range(100, 132))
    first = (*prefix, 140)
    second = (*prefix, 150, 151, 152, 153, 154)
    return [
        # A first prompt is computed and stored; a second one shares its blocks on the GPU.
        Add("first", first, 8),
        *[Step()] * 3,
        Step("none"),
        Add("second", second, 6),
        Step("none"),
        Step("oldest"),
        Step("stores"),
        Drain(),
        # The GPU cache is dropped: the first prompt comes back from the tier.
        ResetCache(connector=False),
        Add("first", first, 9),
        Step("none"),
        Step("none"),
        Step("loads"),
        Step(),
        Add("second", second, 6),
        Step("oldest"),
        Step("oldest"),
        Drain(),
        # More than the pool holds: the youngest request is preempted, and comes back.
        Add("fourth", tuple(range(160, 169)), 44),
        Add("fifth", tuple(range(170, 179)), 44),
        Add("sixth", tuple(range(180, 191)), 44),
        *[Step()] * 40,
        Drain(),
        # A client goes away while its request runs and its stores are in flight.
        Add("fourth", tuple(range(200, 241)), 2),
        Add("seventh", tuple(range(10, 30)), 8),
        *[Step("none")] * 5,
        Step("rank0"),
        Abort("seventh"),
        Step(),
        Drain(),
        # Everything is forgotten, and stored anew.
        ResetCache(connector=True),
        Add("first", first, 4),
        Step(),
        Step(),
        Drain(),
    ]
