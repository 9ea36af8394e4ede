"""The workloads that there are goals for."""

from __future__ import annotations

from collections.abc import Callable

from kvproof.conformance.bench.scheduler import rows
from kvproof.conformance.bench.scheduler.rows import Row, groups_of
from kvproof.conformance.bench.scheduler.scene import BLOCK
from kvproof.conformance.bench.scheduler.timing import medians, p99

STEPS = 7 * BLOCK
"""Steps in each of which somebody completes a chunk: enough for one in a hundred to be seen."""

Advance = Callable[[str, int, int], None]


def measure(advance: Advance, requests: int, tokens: int, prompt: int, times: int) -> list[Row]:
    """Decode steps of so many requests of so many tokens; lookups of such a prompt."""
    made = []
    work = f"{requests:,} requests of {tokens:,} tokens"
    for done, windows in enumerate((5, 0)):
        groups = groups_of(windows)
        advance(groups, done, 2)
        scene, taken = rows.idle_steps(requests, tokens, windows)
        said = f"decode step, {work}, {groups}, no chunk completed"
        made.append(rows.row(said, "ms", taken, scene, 50.0))
        del scene
        scene, steps = rows.busy_samples(requests, tokens, windows, STEPS)
        said = f"decode step, {work}, {groups}, 1/{BLOCK} complete a chunk"
        made.append(rows.row(said, "ms", medians(steps), scene, 10.0))
        worst = {name: p99(each) for name, each in steps.items()}
        made.append(rows.row(f"{said}: p99 of {STEPS} steps", "ms", worst, scene))
        del scene
        asked = rows.Prompt(prompt, windows)
        said = f"lookup, {prompt:,} tokens all resident, {groups}"
        # There is no goal for lookups over one group alone.
        goal = {5: 4.0}.get(windows)
        made.append(rows.row(f"first {said}", "ms", asked.first(times), asked.scene, goal))
        slow = asked.first_key_by_key(times)
        made.append(rows.row(f"first {said}, key by key", "ms", slow, asked.scene))
        made.append(rows.row(f"the same {said}, again", "ms", asked.again(times), asked.scene, 50))
        said = f"the same {said}, after another request's store"
        made.append(rows.row(said, "ms", asked.after_a_store(times), asked.scene))
        scene, taken = rows.memory(prompt, windows)
        said = f"memory of a request's keys, {prompt:,} tokens, {groups}"
        made.append(rows.row(said, "MB", taken, scene, 4.0))
    return made
