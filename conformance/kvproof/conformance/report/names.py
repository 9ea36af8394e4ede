"""Elements of the reference as people read them: by the trace's names, contents by their tokens."""

from __future__ import annotations

from kvproof.conformance.monitor.world import World
from kvproof.spec.contract import contract


class Shown:
    """Prints moves, rows and values of one world."""

    def __init__(self, world: World) -> None:
        self.world = world

    def element(self, sort: str, number: int | bool) -> str:
        """One element; a content is ``a#0[:4]``, the first four tokens of that request."""
        return self.world.show(sort, number)

    def move(self, action: str, params: tuple[int, ...]) -> str:
        """A move with its parameters."""
        declared = contract().actions[action].params
        shown = (self.element(p.sort, v) for p, v in zip(declared, params, strict=True))
        return f"{action}({', '.join(shown)})"

    def row(self, field: str, key: tuple[int, ...]) -> list[str]:
        """The arguments of a field."""
        sorts = contract().fields[field].args
        return [self.element(sort, number) for sort, number in zip(sorts, key, strict=True)]

    def value(self, field: str, value: int | bool) -> str:
        """What a map or scalar holds."""
        return self.element(contract().fields[field].value, value)
