"""Which chunks are kept when the engine keeps only some boundaries of a prompt.

The engine's own prefix cache can be told to keep windows and states only where a later request is
likely to start: at the end of the prompt, at multiples of an interval, and where others were seen
to branch off. A tier that kept all the others would hold, for most of its room, what the engine
does not ask for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from kvproof.impl.scheduler.geometry import Geometry, Group, Kind
from kvproof.impl.scheduler.storing import needs, serves
from kvproof.impl.scheduler.views import RequestView


@dataclass(frozen=True, slots=True)
class Retention:
    """What is kept of groups that do not need everything before a boundary.

    Attributes:
        alignment: tokens between boundaries at which all groups' chunks end.
        interval: tokens between the boundaries that are kept of every request; 0 for none.
    """

    alignment: int
    interval: int

    @classmethod
    def of(cls, geometry: Geometry, interval: int | None) -> Retention | None:
        """As the engine says it; None, the engine's word for all, keeps everything."""
        if interval is None:
            return None
        alignment = geometry.alignment
        return cls(alignment, math.lcm(alignment, interval) if interval else 0)

    def keeps(self, request: RequestView, group: Group, chunk: int) -> bool:
        """Whether a chunk of a request is worth a slot."""
        if group.kind is Kind.FULL:
            return True
        if self.interval and serves(group, chunk, self.interval):
            return True
        # A request that repeats the prompt starts before its last token.
        likely = (request.num_prompt_tokens - 1, request.shared_prefix_boundary)
        boundaries = (tokens // self.alignment * self.alignment for tokens in likely)
        return any(boundary and needs(group, chunk, boundary) for boundary in boundaries)
