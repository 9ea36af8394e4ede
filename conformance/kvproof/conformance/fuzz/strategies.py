"""What is drawn: setups that a target supports, prompts around their boundaries, swarms of moves.

Bugs in this field sit at boundaries and under pressure, so lengths cluster around multiples of a
block, a chunk and a window, GPU pools hold the longest request and little more, and tiers hold a
few chunks. Prompts overlap, since without overlap nothing is ever loaded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
from hypothesis import strategies as st

from kvproof.conformance.engines.base import GroupSetup, Setup, Target

CPU: Mapping[str, str] = {"tier": "cpu"}
"""The fields of a setup over the release's own CPU tier, without a device."""

FINISHES = ("none", "none", "oldest", "stores", "loads", "rank0", "all")
"""Which copies end in a step; "none" is there twice, so that copies stay in flight for a while."""

DISTURBANCES = (
    "rest_and_forget",
    "forget_on_the_gpu",
    "preempt_all",
    "abort",
    "abort_latest",
    "come_to_rest",
    "reset",
    "reset_twice",
    "abort_at_once",
    "reset_while_loading",
    "hold_copies",
    "run_out",
    "go_on",
)
"""Moves that are no progress; each example switches a few of them on, which is swarm testing."""

FAILS = ("", "", "", "loads", "stores", "all")
"""Which of a step's copies fail, where workers can report it; most of them never do."""

OPTIONS = ("max_load", "max_offload", "skip_reading", "stop_after", "session")
"""What a client may ask for beyond its prompt; every third example switches one or two on."""

PROMPT_VOCABULARY = 13


class Prompts(msgspec.Struct, frozen=True):
    """A family of overlapping prompts: all start alike, and branch off at ``branches``.

    ``lengths`` are the ones that are tried, in tokens.
    """

    lengths: tuple[int, ...]
    branches: tuple[int, ...]

    def prompt(self, length: int, branch: int) -> tuple[int, ...]:
        """``length`` tokens; branch 0 is the trunk, branch i leaves it at ``branches[i - 1]``."""
        leaves = self.branches[branch - 1] if branch else length
        return tuple(_token(i, 0 if i < leaves else branch) for i in range(length))


class Plan(msgspec.Struct, frozen=True):
    """One example: a setup, its prompts, and the swarm, that is, which moves are on and how much.

    ``finishes`` are the copy endings that steps choose from (repeats are weights); ``max_tokens``
    bounds what a request generates; ``disturbances`` are the moves that are no progress;
    ``reuses_ids`` makes clients use the ids of ended requests again; ``fails`` are the failures
    that steps choose from; ``options`` are what clients may ask for, and ``caps`` the caps that
    they choose from, in tokens.
    """

    setup: Setup
    prompts: Prompts
    finishes: tuple[str, ...]
    max_tokens: int
    disturbances: tuple[str, ...]
    reuses_ids: bool
    fails: tuple[str, ...] = ("",)
    options: tuple[str, ...] = ()
    caps: tuple[int, ...] = (0,)


def _token(position: int, branch: int) -> int:
    return (position * 7 + position // 5 + branch * 3 + 1) % PROMPT_VOCABULARY


_SHAPES = (
    *("full",) * 3,
    *("window",) * 13,
    *("window alone",) * 4,
    *("uneven",) * 7,
    *("recurrent",) * 5,
    *("chunked", "draft"),
)

_RATIOS = ((3, 2), (3, 2), (2, 3), (1, 2))
"""Block sizes of full attention and a window, relative to each other, of which the first is no
multiple of the second: a hit of full attention can end in the midst of a window's chunk."""


@st.composite
def group_sets(draw: st.DrawFn) -> tuple[GroupSetup, ...]:
    """Full; full and window; full, window and recurrent. Blocks of 2, 4 or 8, equal or not.

    Now and then a window without full attention, and blocks of full attention that are no multiple
    of a window's. Rarely: chunked local attention in place of a window, and a group that is a
    drafter's.
    """
    size = draw(st.sampled_from((2, 4, 4, 8)))
    shape = draw(st.sampled_from(_SHAPES))
    if shape == "full":
        return (GroupSetup("full", size),)
    if shape == "window alone":
        return (GroupSetup("window", size, draw(windows(size))),)
    if shape == "chunked":
        chunk = size * draw(st.integers(1, 4))
        return (GroupSetup("full", size), GroupSetup("chunked", size, chunk))
    if shape == "uneven":
        full, window = (max(size, 4) // 2 * part for part in draw(st.sampled_from(_RATIOS)))
        return (GroupSetup("full", full), GroupSetup("window", window, draw(windows(window))))
    if shape == "draft":
        draft = GroupSetup("window", size, draw(windows(size)), draft=True)
        full_group = GroupSetup("full", size)
        return draw(
            st.sampled_from(
                ((full_group, draft), (msgspec.structs.replace(full_group, draft=True), draft))
            )
        )
    if shape == "recurrent":
        # The recurrent state is kept at block ends only, so one size for all.
        kinds = draw(st.sampled_from((("full", "recurrent"), ("full", "window", "recurrent"))))
        window = draw(windows(size))
        return tuple(GroupSetup(k, size, window if k == "window" else None) for k in kinds)
    factor = draw(st.sampled_from((1, 1, 1, 2, 4)))
    attention = GroupSetup("full", size * factor if size * factor <= 16 else size)
    first = GroupSetup("window", size, draw(windows(size)))
    if draw(st.sampled_from((False, False, True))):
        return (attention, first, GroupSetup("window", size, draw(windows(size))))
    return (attention, first)


def windows(size: int) -> st.SearchStrategy[int]:
    """From one block to four, in tokens, exact and one more."""
    return st.builds(
        lambda blocks, more: blocks * size + more, st.integers(1, 4), st.integers(0, 1)
    )


def lengths(setup: Setup) -> tuple[int, ...]:
    """Prompt lengths around the setup's block, chunk and window boundaries, ascending."""
    blocks = {group.tokens_per_block for group in setup.groups}
    marks = {n * size for size in blocks for n in (1, 2, 3)}
    marks |= {n * size * setup.blocks_per_chunk for size in blocks for n in (1, 2, 3, 4)}
    for group in setup.groups:
        if group.window is not None:
            marks |= {group.window, group.window + group.tokens_per_block}
            marks |= {2 * group.window + group.tokens_per_block}
    marks |= {math.lcm(*blocks) * n for n in (2, 4)}
    near = {mark + off for mark in marks for off in (-1, 0, 1)}
    return tuple(sorted(length for length in near if 1 <= length <= 96))


def blocks_for(setup: Setup, tokens: int) -> int:
    """GPU blocks that a request of so many tokens holds at most: windowed groups let go behind."""
    flights = 2 if setup.asynchronous else 1
    tokens += any(group.draft for group in setup.groups)
    needed = 0
    for group in setup.groups:
        size = group.tokens_per_block
        blocks = -(-tokens // size)
        if group.window is not None:
            held = group.window + flights * setup.max_batch_tokens
            blocks = min(blocks, -(-held // size) + 1)
        needed += blocks
    return needed


def longest_chunk(setup: Setup) -> int:
    """Tokens of the largest chunk."""
    return setup.blocks_per_chunk * max(group.tokens_per_block for group in setup.groups)


def chunks_for(setup: Setup, tokens: int) -> int:
    """Chunks of the tier that so many tokens fill in all groups together, at least one."""
    filled = (tokens // (group.tokens_per_block * setup.blocks_per_chunk) for group in setup.groups)
    return max(1, sum(filled))


@st.composite
def plans(
    draw: st.DrawFn, supports: Callable[[Setup], str | None], behind: Mapping[str, str] = CPU
) -> Plan:
    """A plan whose setup has these fields, and to which ``supports`` has no objection."""
    groups = draw(group_sets())
    sizes = {group.tokens_per_block for group in groups}
    largest = max(sizes)
    # Large chunks of unequal blocks leave few places where a hit can end.
    chunks_of = (1, 2, 4, 4) if len(sizes) == 1 else (1, 1, 2, 4)
    setup = Setup(
        groups=groups,
        blocks_per_chunk=draw(st.sampled_from(chunks_of)),
        num_gpu_blocks=512,
        max_batch_tokens=draw(st.sampled_from((largest, 2 * largest + 1, 16, 64))),
        max_running=draw(st.integers(2, 4)),
        num_workers=draw(st.sampled_from((1, 1, 1, 2))),
        asynchronous=draw(st.booleans()),
        prompt_only=draw(st.sampled_from((False, False, True))),
        prefix_caching=draw(st.sampled_from((True, True, False))),
        retention_interval=None,
        kv_role=draw(st.sampled_from(("kv_both", "kv_both", "kv_producer"))),
        store_threshold=draw(st.sampled_from((*(0,) * 14, 2))),
        eviction=draw(st.sampled_from((*("lru",) * 4, "arc"))),
        load_failure=draw(st.sampled_from(("recompute", "recompute", "fail"))),
        second_connector=draw(st.sampled_from((*(False,) * 7, True))),
    )
    setup = msgspec.structs.replace(setup, **behind)
    chunks = math.lcm(*(group.tokens_per_block for group in groups)) * setup.blocks_per_chunk
    setup = msgspec.structs.replace(
        setup, retention_interval=draw(st.sampled_from((None, None, 0, 0, chunks)))
    )
    setup = supported(setup, supports)
    max_tokens = draw(st.sampled_from((1, 4, 12, 24, 40)))
    tried = lengths(setup)
    some = draw(st.lists(st.sampled_from(tried), min_size=1, max_size=4, unique=True))
    # One that fills chunks in every group: shorter prompts alone would never be loaded.
    some.append(draw(st.sampled_from([n for n in tried if n > longest_chunk(setup)] or tried)))
    branches = draw(st.lists(st.sampled_from(some), min_size=0, max_size=2, unique=True))
    spare = draw(st.one_of(st.integers(0, 1), st.integers(0, 4), st.integers(0, 16)))
    full_tier = chunks_for(setup, max(some))
    setup = msgspec.structs.replace(
        setup,
        num_gpu_blocks=blocks_for(setup, max(some) + max_tokens) + spare,
        num_slots=draw(
            st.one_of(
                st.integers(1, 8), st.integers(full_tier, full_tier + 8), st.just(2 * full_tier)
            )
        ),
    )
    return Plan(
        setup=setup,
        prompts=Prompts(tuple(some), tuple(branches)),
        finishes=tuple(draw(st.lists(st.sampled_from(FINISHES), min_size=1, max_size=3))),
        max_tokens=max_tokens,
        disturbances=tuple(
            draw(st.lists(st.sampled_from(DISTURBANCES), min_size=1, max_size=5, unique=True))
        ),
        # Loud where it breaks something, so not the rule.
        reuses_ids=draw(st.sampled_from((False, False, False, True))),
        fails=tuple(draw(st.lists(st.sampled_from(FAILS), min_size=1, max_size=3))),
        options=draw(option_sets()),
        caps=(0, *draw(st.lists(st.sampled_from(tried), min_size=1, max_size=3))),
    )


def option_sets() -> st.SearchStrategy[tuple[str, ...]]:
    """None in two of three examples, else one or two of ``OPTIONS``."""
    some = st.lists(st.sampled_from(OPTIONS), min_size=1, max_size=2, unique=True).map(tuple)
    return st.one_of(st.just(()), st.just(()), some)


_PLAINER: Sequence[tuple[str, object]] = (
    ("second_connector", False),
    ("retention_interval", None),
    ("prompt_only", False),
    ("blocks_per_chunk", 1),
    ("num_workers", 1),
    ("asynchronous", False),
    ("prefix_caching", True),
    ("kv_role", "kv_both"),
    ("store_threshold", 0),
)


def supported(setup: Setup, supports: Callable[[Setup], str | None]) -> Setup:
    """The setup, less what the target cannot do.

    Falling back instead of drawing again keeps examples cheap and the draw the same everywhere. Of
    the options, the first one goes whose fall answers the target's objection.

    Raises:
        ValueError: even one full-attention group without options is refused.
    """
    while (objection := supports(setup)) is not None:
        plainer = list(_plainer(setup))
        if not plainer:
            raise ValueError(f"not even a bare setup is supported: {objection}")
        answers = [supports(candidate) for candidate in plainer]
        setup = next(
            (c for c, answer in zip(plainer, answers, strict=True) if answer is None),
            next(
                (c for c, answer in zip(plainer, answers, strict=True) if answer != objection),
                plainer[0],
            ),
        )
    return setup


def _plainer(setup: Setup) -> Iterator[Setup]:
    """Setups with one option less: options first, then kinds of groups, then all groups but one."""
    change = msgspec.structs.replace
    for field, value in _PLAINER:
        if getattr(setup, field) != value:
            yield change(setup, **{field: value})
    groups = setup.groups
    if any(group.draft for group in groups):
        yield change(setup, groups=tuple(change(group, draft=False) for group in groups))
    if any(group.kind == "chunked" for group in groups):
        yield change(
            setup,
            groups=tuple(change(g, kind="window") if g.kind == "chunked" else g for g in groups),
        )
    if any(group.kind == "recurrent" for group in groups):
        yield change(setup, groups=tuple(g for g in groups if g.kind != "recurrent"))
    if len(groups) > 1:
        yield change(setup, groups=groups[:1])
    elif groups[0].kind != "full":
        yield change(setup, groups=(GroupSetup("full", groups[0].tokens_per_block),))


def plans_for(target: Target, behind: Mapping[str, str] = CPU) -> st.SearchStrategy[Plan]:
    """Plans that ``target`` supports, whose setups have these fields."""
    return plans(target.supports, behind)
