"""Which tier the tokens of a load come from, for the engine's statistics."""

from __future__ import annotations

from collections import Counter

from vllm.v1.kv_offload.base import OffloadingManager
from vllm.v1.metrics.cache_hit_source import CacheHitSource

from kvproof.impl.scheduler.geometry import Geometry, Kind
from kvproof.impl.scheduler.loads import PlannedLoad


def hit_sources(
    geometry: Geometry, load: PlannedLoad | None, tokens: int, manager: OffloadingManager
) -> dict[CacheHitSource, int]:
    """How many of the ``tokens`` of a load each tier supplies.

    A chunk of attention supplies its own tokens, a recurrent state all of them. Where several
    supply a token, the tier farthest from the device counts. What nothing is loaded for, such as
    what lies before a window, is of no known source.
    """
    if not tokens:
        return {}
    if load is None:
        return {CacheHitSource.EXTERNAL_UNSPECIFIED: tokens}
    start, stop = load.computed, load.computed + tokens
    changes: dict[int, Counter[CacheHitSource]] = {start: Counter(), stop: Counter()}
    groups = {group.suffix: group for group in geometry.groups}
    for key, end in zip(load.keys, load.ends, strict=False):
        group = groups[key[-len(geometry.groups[0].suffix) :]]
        if group.kind is Kind.RECURRENT:
            first, last = start, stop
        else:
            loaded_from = load.first_positions[group.place] * group.tokens_per_block
            first = max(start, loaded_from, end - group.tokens_per_chunk)
            last = min(stop, end)
        if first < last:
            source = CacheHitSource(manager.get_load_source(key, load.state.context))
            changes.setdefault(first, Counter())[source] += 1
            changes.setdefault(last, Counter())[source] -= 1
    found: Counter[CacheHitSource] = Counter()
    active: Counter[CacheHitSource] = Counter()
    position = start
    for boundary in sorted(changes):
        if boundary > position:
            there = [source for source, count in active.items() if count > 0]
            unknown = CacheHitSource.EXTERNAL_UNSPECIFIED
            found[CacheHitSource.outermost(there) if there else unknown] += boundary - position
            position = boundary
        active.update(changes[boundary])
    return dict(found)
