"""Draws that depend on the seed alone.

Hypothesis also draws constants that it reads from the source of all local modules imported so far:
a good idea for a program's own tests, but here it would make a seed mean one thing in a checkout,
another in an installation, and a third after an edit. The switch is not public; pyproject.toml pins
the version that this was written for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants


@contextmanager
def without_local_constants() -> Iterator[None]:
    """While this is open, Hypothesis knows only its own constants."""
    stock = providers._get_local_constants
    nothing = Constants()
    providers.CONSTANTS_CACHE.cache.clear()
    providers._get_local_constants = lambda: nothing
    try:
        yield
    finally:
        providers._get_local_constants = stock
        providers.CONSTANTS_CACHE.cache.clear()
