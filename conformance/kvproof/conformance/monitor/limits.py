"""What a client and the engine's options let a scheduler load and store for a request."""

from __future__ import annotations

from dataclasses import dataclass

from kvproof.conformance.trace import events as ev


@dataclass
class Limits:
    """Sizes in tokens. ``prompt`` grows when a session goes on; None is no cap, 0 is one."""

    prompt: int
    max_load: int | None
    max_offload: int | None
    skip_reading: bool
    prompt_only: bool

    def to_load(self, known: int) -> int:
        """How many tokens may be loaded at once, of ``known``."""
        if self.skip_reading:
            return 0
        return known if self.max_load is None else min(known, self.max_load)

    def to_store(self, known: int) -> int:
        """Up to which position chunks may be stored, of ``known``."""
        if self.prompt_only:
            known = min(known, self.prompt)
        return known if self.max_offload is None else min(known, self.max_offload)


def limits_of(event: ev.Arrive, header: ev.Header) -> Limits:
    """The limits of a request that arrives."""
    return Limits(
        prompt=len(event.tokens),
        max_load=event.max_load,
        max_offload=event.max_offload,
        skip_reading=event.skip_reading,
        prompt_only=header.options.get("prompt_only") is True,
    )
