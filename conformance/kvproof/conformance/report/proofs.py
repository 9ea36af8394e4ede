"""Runs the proofs and counts them, invariant by invariant."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kvproof.conformance.errors import UsageError
from kvproof.conformance.report.evidence import Count, Proofs

if TYPE_CHECKING:
    from kvproof.spec.prove import ObligationResult

TIMEOUT_MS = 60_000


def run(generated: bool, progress: Callable[[int, int], None] | None = None) -> Proofs:
    """Prove everything on the spec, or on the text of the generated reference.

    Raises:
        UsageError: the text cannot be read back.
    """
    from kvproof.spec.parse import ParseError
    from kvproof.spec.prove import prove_all

    began = time.monotonic()
    try:
        results = prove_all(
            generated=generated,
            jobs=os.cpu_count() or 1,
            timeout_ms=TIMEOUT_MS,
            progress=progress,
        )
    except ParseError as error:
        raise UsageError(f"the reference cannot be read back: {error}") from None
    return summary(results, generated, time.monotonic() - began)


def summary(results: Sequence[ObligationResult], generated: bool, seconds: float) -> Proofs:
    """The counts of one run; ids appear in the order in which their obligations come."""
    ids = dict.fromkeys(result.id for result in results)
    by_id = {id: count([r for r in results if r.id == id]) for id in ids}
    return Proofs(
        generated=generated,
        seconds=round(seconds, 3),
        overall=count(results),
        unserving=by_id.pop("", None),
        by_id=by_id,
        unproved=[(r.name, r.status) for r in results if r.status != "proved"],
    )


def count(results: Sequence[ObligationResult]) -> Count:
    """How many of ``results`` are proved, and which one took longest."""
    slowest = max(results, key=lambda r: r.seconds, default=None)
    return Count(
        proved=sum(r.status == "proved" for r in results),
        total=len(results),
        worst_seconds=round(slowest.seconds, 3) if slowest else 0.0,
        slowest=slowest.name if slowest else "",
    )
