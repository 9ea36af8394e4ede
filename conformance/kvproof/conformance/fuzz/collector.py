"""The garbage collector during a campaign: fewer passes, and none over what was there before.

A release and its imports are half a million objects that live until the process ends, and an
example leaves tens of thousands behind it. At the collector's own settings they are looked
through again and again.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

ALLOCATIONS = 50_000
"""New objects between two passes: about what one example makes."""


@contextmanager
def patient_collector() -> Iterator[None]:
    """While this is open, the collector waits longer and passes over what exists at its start."""
    stock = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(ALLOCATIONS, *stock[1:])
    try:
        yield
    finally:
        gc.set_threshold(*stock)
        gc.unfreeze()
