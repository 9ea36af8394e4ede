"""The fence: which stores still read a block that may be handed out again.

Invariant (M3): while a store of this epoch has not completed, each block that it reads is fenced.
Handing out a fenced block puts the store into the flush set of that very step.
"""

from __future__ import annotations

from collections.abc import Iterable


class Fence:
    """Block id -> jobs, with work in proportion to what is added, removed and asked."""

    def __init__(self) -> None:
        self._jobs: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def add(self, blocks: Iterable[int], job: int) -> None:
        """``job`` reads ``blocks``."""
        jobs = self._jobs
        for block in blocks:
            known = jobs.get(block)
            if known is None:
                jobs[block] = [job]
            else:
                known.append(job)

    def remove(self, blocks: Iterable[int], job: int) -> None:
        """``job`` has ended. What was never added is passed over."""
        jobs = self._jobs
        for block in blocks:
            known = jobs.get(block)
            if known is None or job not in known:
                continue
            known.remove(job)
            if not known:
                del jobs[block]

    def jobs(self, blocks: Iterable[int]) -> set[int]:
        """The stores that read one of ``blocks``."""
        jobs = self._jobs
        found: set[int] = set()
        if jobs:
            for block in blocks:
                known = jobs.get(block)
                if known is not None:
                    found.update(known)
        return found

    def clear(self) -> None:
        """Forget all stores (a reset: what they read is nobody's business any more)."""
        self._jobs.clear()
