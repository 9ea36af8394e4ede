"""What the reference raises when a guard does not hold."""

from __future__ import annotations


class Broken(Exception):
    """Guard number ``index`` of ``action`` is false for ``params``.

    ``kind`` is "assume", "oblige" or "conclude"; ``id`` is the invariant that the guard serves
    ("" for most assumes). State updates before the guard may have taken place: a reference that
    has raised is not to be used further.
    """

    def __init__(
        self, kind: str, id: str, action: str, index: int, params: tuple[int, ...]
    ) -> None:
        super().__init__(f"{kind} {id or action} in {action}{params}")
        self.kind = kind
        self.id = id
        self.action = action
        self.index = index
        self.params = params
