"""What a replacement policy is, and how one is found by its name."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Sequence

from kvproof.impl.scheduler.views import Key
from kvproof.impl.tier.order import UNCHAINED

BUILT_IN = {"lru": "kvproof.impl.tier.lru:Lru", "arc": "kvproof.impl.tier.arc:Arc"}
"""Policies that need no module path."""


class Policy(ABC):
    """Decides which slot is given up next.

    Args:
        pins: by slot, 0 when it may be given up; -1 while it is being stored; else how many loads
            hold it.
        keys: by slot, the key that lies there. Both are the tier's own: read them, no more.

    Attributes:
        chained: the last four bytes of those keys (their group) that are of use only together with
            all keys before them in their request. May be assigned at any time.
        ranks: by slot, where such a key ends in its request, in tokens; ``UNCHAINED`` for others.
            The tier's own, too.
    """

    chained: Collection[bytes] = ()

    def __init__(self, pins: Sequence[int], keys: Sequence[Key]) -> None:
        self.pins = pins
        self.keys = keys
        self.ranks = [UNCHAINED] * len(pins)

    @abstractmethod
    def use(self, slots: Sequence[int], user: Hashable) -> None:
        """A request offers the keys of these slots, in the order of its prefix.

        Some of the slots were here already; the others are new, and are being stored.
        """

    @abstractmethod
    def touch(self, slots: Sequence[int], user: Hashable) -> None:
        """A request uses slots; the first is to leave last."""

    @abstractmethod
    def give_up(self, count: int, spared: Collection[int], user: Hashable) -> list[int] | None:
        """So many slots are given up for a request, none of them ``spared``.

        None when there are fewer that may be; then nothing is.
        """

    @abstractmethod
    def remove(self, slot: int) -> None:
        """What was being stored in a slot never got there."""

    @abstractmethod
    def clear(self) -> None:
        """Forget everything."""

    def begin(self, user: Hashable) -> None:  # noqa: B027
        """A request begins."""

    def forget(self, user: Hashable) -> None:  # noqa: B027
        """A request has ended."""


def policy(name: str, module_path: str | None = None) -> type[Policy]:
    """The policy of a name: a built-in one, or a class of the module at ``module_path``.

    Raises:
        ValueError: there is none, or it is no policy.
    """
    place = BUILT_IN.get(name) or (f"{module_path}:{name}" if module_path else None)
    if place is None:
        raise ValueError(
            f"unknown eviction policy {name!r}: built in are {', '.join(BUILT_IN)};"
            " any other one needs the path of its module"
        )
    module_name, _, class_name = place.partition(":")
    try:
        found = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"eviction policy {name!r} cannot be loaded: {error}") from None
    if not (isinstance(found, type) and issubclass(found, Policy)):
        raise ValueError(f"eviction policy {name!r} of {module_name} is no {Policy.__qualname__}")
    return found
