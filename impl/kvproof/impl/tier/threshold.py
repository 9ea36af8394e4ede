"""Storing only what was wanted several times: how often keys were offered, of a bounded number."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

from kvproof.impl.scheduler.views import Key


class Threshold:
    """Counts offers of keys.

    An offer that the tier has no room for does not count: it comes again.

    Args:
        offers: a key is wanted from this offer of it on.
        most: keys that are remembered; those whose last offer is the longest ago are forgotten.
    """

    def __init__(self, offers: int, most: int) -> None:
        self._offers = offers
        self._most = most
        self._counts: OrderedDict[Key, int] = OrderedDict()

    def wanted(self, keys: Iterable[Key]) -> list[Key]:
        """Those keys that are wanted when they are offered now."""
        counts, before = self._counts, self._offers - 1
        return [key for key in keys if counts.get(key, 0) >= before]

    def offered(self, keys: Sequence[Key]) -> None:
        """Keys were offered; none of them makes another one forgotten."""
        counts = self._counts
        fresh = []
        for key in keys:
            if key in counts:
                counts[key] += 1
                counts.move_to_end(key)
            else:
                fresh.append(key)
        # What this offer names is at the end by now, so the first is not among it, or all are.
        mine = len(keys) - len(fresh)
        for key in fresh:
            if len(counts) >= self._most:
                if len(counts) <= mine:
                    return
                counts.popitem(last=False)
            counts[key] = 1
            mine += 1

    def clear(self) -> None:
        """Forget all counts."""
        self._counts.clear()

    def __len__(self) -> int:
        return len(self._counts)
