"""What is simpler than a given move, prompt or setup, and by how much."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kvproof.conformance.engines.base import (
    Add,
    Drain,
    Extend,
    GroupSetup,
    History,
    Move,
    ResetCache,
    Setup,
    Step,
)

_SIZES = (2, 4, 8)
"""Block sizes to fall back to: powers of two, as in engines."""

_FINISH = ("all", "none", "stores", "loads", "oldest", "rank0")
"""Plainest first: everything ends, nothing does, and then the finer choices."""

_FAIL = ("", "loads", "stores", "all")

_OPTIONS = ("max_load", "max_offload", "skip_reading", "stop_after", "session")
"""What an ``Add`` may say beyond its prompt; its defaults are the plainest."""

_PLAIN = Add("", (0,), 1)

_PLAIN_SETUP = Setup(groups=())

Cost = tuple[int, int, int]


def cost(history: History) -> Cost:
    """A total order in which shrinking only descends: moves, then setup, then what moves say."""
    return (len(history.moves), _setup_cost(history.setup), sum(map(_move_cost, history.moves)))


def _move_cost(move: Move) -> int:
    match move:
        case Add(tokens=tokens, max_tokens=max_tokens):
            options = [o for o in _OPTIONS if getattr(move, o) != getattr(_PLAIN, o)]
            return 4 * (len(tokens) + max_tokens) + 40 * len(options) + (move.stop_after or 0)
        case Extend(tokens=tokens, max_tokens=max_tokens):
            return 4 * (len(tokens) + max_tokens)
        case Step(finish, fail):
            return _FINISH.index(finish) + 10 * _FAIL.index(fail)
        case ResetCache(connector, running):
            return int(connector) + 2 * int(running)
        case Drain():
            return 1
        case _:
            return 0


def _setup_cost(setup: Setup) -> int:
    """Whatever a reader must keep in mind costs more than a number that is merely large."""
    windows = sum(group.window or 0 for group in setup.groups)
    return (
        1000 * len(setup.groups)
        + 300 * sum(group.kind != "full" for group in setup.groups)
        + 200 * len({group.tokens_per_block for group in setup.groups})
        + 300 * setup.asynchronous
        + 200 * (setup.num_workers - 1)
        + 100 * setup.prompt_only
        + 100 * (setup.retention_interval is not None)
        + 100 * (setup.kv_role != "kv_both")
        + 100 * (not setup.prefix_caching)
        + 100 * (setup.store_threshold > 0)
        + 100 * (setup.eviction != "lru")
        + 100 * (setup.sync_load_bytes > 0)
        + 100 * (setup.load_failure != "recompute")
        + 100 * setup.second_connector
        + 100 * (setup.tier != "cpu")
        + 100 * (setup.device != "")
        + 100 * sum(group.draft for group in setup.groups)
        + (setup.retention_interval or 0)
        + 40 * setup.blocks_per_chunk
        + 10 * sum(group.tokens_per_block for group in setup.groups)
        + windows
        # Roomy and round is plainer than tight, so these say how far from that a setup is.
        + abs(setup.num_gpu_blocks - 64)
        + abs(setup.num_slots - 64)
        + abs(setup.max_batch_tokens - 64)
        + abs(setup.max_running - 4)
    )


def moves(move: Move) -> Iterator[Move]:
    """Plainer moves of the same kind, boldest first."""
    match move:
        case Add(tokens=tokens, max_tokens=max_tokens):
            for length in _below(len(tokens), 1):
                yield msgspec.structs.replace(move, tokens=tokens[:length])
            for fewer in _below(max_tokens, 1):
                yield msgspec.structs.replace(move, max_tokens=fewer)
            for option in _OPTIONS:
                plain = getattr(_PLAIN, option)
                if getattr(move, option) != plain:
                    yield msgspec.structs.replace(move, **{option: plain})
            for fewer in _below(move.stop_after or 1, 1):
                yield msgspec.structs.replace(move, stop_after=fewer)
        case Extend(tokens=tokens, max_tokens=max_tokens):
            for length in _below(len(tokens), 1):
                yield msgspec.structs.replace(move, tokens=tokens[:length])
            for fewer in _below(max_tokens, 1):
                yield msgspec.structs.replace(move, max_tokens=fewer)
        case Step(finish, fail):
            for milder in _FAIL[: _FAIL.index(fail)]:
                yield Step(finish, milder)
            for plainer in _FINISH[: _FINISH.index(finish)]:
                yield Step(plainer, fail)
        case ResetCache(connector, running):
            if connector and running:
                yield ResetCache(connector=False, running=True)
            if running:
                yield ResetCache(connector=connector, running=False)
        case Drain():
            yield Step("all")
        case _:
            return


def _below(value: int, least: int) -> Iterator[int]:
    """Smaller values: the least, then ever closer to ``value``."""
    gap = value - least
    while gap > 0:
        yield value - gap
        gap //= 2


def prefilled(history_moves: tuple[Move, ...], index: int) -> Iterator[tuple[Move, ...]]:
    """Move lists in which the request added at ``index`` brings tokens that it generated before.

    One step goes for each token, most first; the step that admits the request stays.
    """
    add = history_moves[index]
    assert isinstance(add, Add)
    steps = [n for n, m in enumerate(history_moves) if n > index and isinstance(m, Step)]
    for count in _halves(min(len(steps) - 1, add.max_tokens - 1)):
        more = tuple(n % 5 for n in range(count))
        longer = msgspec.structs.replace(
            add, tokens=add.tokens + more, max_tokens=add.max_tokens - count
        )
        gone = set(steps[1 : 1 + count])
        yield tuple(
            longer if n == index else move for n, move in enumerate(history_moves) if n not in gone
        )


def _halves(value: int) -> Iterator[int]:
    while value > 0:
        yield value
        value //= 2


def common_cuts(history_moves: tuple[Move, ...]) -> Iterator[tuple[Move, ...]]:
    """Move lists whose prompts all lost the same stretch, so that overlaps stay overlaps."""
    longest = max((len(m.tokens) for m in history_moves if isinstance(m, Add)), default=0)
    for stretch in (16, 8, 4, 2, 1):
        for start in range(0, longest, stretch):
            yield tuple(_without(move, start, stretch) for move in history_moves)


def _without(move: Move, start: int, stretch: int) -> Move:
    if not isinstance(move, Add):
        return move
    tokens = move.tokens[:start] + move.tokens[start + stretch :]
    return msgspec.structs.replace(move, tokens=tokens or move.tokens[:1])


def setups(setup: Setup) -> Iterator[Setup]:
    """Plainer setups, boldest first."""
    change = msgspec.structs.replace
    if len(setup.groups) > 1:
        for index in range(len(setup.groups)):
            yield change(setup, groups=setup.groups[:index] + setup.groups[index + 1 :])
    if setup.asynchronous:
        yield change(setup, asynchronous=False)
    if setup.num_workers > 1:
        yield change(setup, num_workers=1)
    if setup.prompt_only:
        yield change(setup, prompt_only=False)
    if setup.retention_interval is not None:
        yield change(setup, retention_interval=None)
    if setup.retention_interval:
        yield change(setup, retention_interval=0)
    if setup.kv_role != "kv_both":
        yield change(setup, kv_role="kv_both")
    if not setup.prefix_caching:
        yield change(setup, prefix_caching=True)
    for field in (
        "store_threshold",
        "eviction",
        "sync_load_bytes",
        "load_failure",
        "second_connector",
    ):
        if getattr(setup, field) != getattr(_PLAIN_SETUP, field):
            yield change(setup, **{field: getattr(_PLAIN_SETUP, field)})
    if setup.tier == "tiering":  # any other tier is not a part of it, but somebody else's
        yield change(setup, tier=_PLAIN_SETUP.tier)
    if setup.device and not setup.planted:
        yield change(setup, device=_PLAIN_SETUP.device)
    if any(group.draft for group in setup.groups):
        yield change(setup, groups=tuple(change(group, draft=False) for group in setup.groups))
    if len({group.tokens_per_block for group in setup.groups}) > 1:
        least = min(group.tokens_per_block for group in setup.groups)
        yield change(setup, groups=tuple(_resized(group, least) for group in setup.groups))
    for fewer in _below(setup.blocks_per_chunk, 1):
        yield change(setup, blocks_per_chunk=fewer)
    yield from _plainer_groups(setup)
    for field in ("num_gpu_blocks", "num_slots", "max_batch_tokens"):
        for value in _towards(getattr(setup, field), 64):
            yield change(setup, **{field: value})
    for value in _towards(setup.max_running, 4):
        yield change(setup, max_running=value)


def _plainer_groups(setup: Setup) -> Iterator[Setup]:
    for index, group in enumerate(setup.groups):
        options = [_resized(group, size) for size in _SIZES if size < group.tokens_per_block]
        if group.kind != "full":
            options.append(GroupSetup("full", group.tokens_per_block, draft=group.draft))
        if group.window is not None:
            options += [
                msgspec.structs.replace(group, window=window) for window in _below(group.window, 1)
            ]
        for option in options:
            groups = (*setup.groups[:index], option, *setup.groups[index + 1 :])
            yield msgspec.structs.replace(setup, groups=groups)


def _resized(group: GroupSetup, size: int) -> GroupSetup:
    return msgspec.structs.replace(group, tokens_per_block=size)


def _towards(value: int, goal: int) -> Iterator[int]:
    """Values between ``value`` and ``goal``: the goal first, then ever closer to ``value``."""
    gap = goal - value
    while gap != 0:
        yield value + gap
        gap = int(gap / 2)
