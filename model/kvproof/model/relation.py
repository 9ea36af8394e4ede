"""A finite relation with an index for every pattern that it was ever asked about.

Work per operation is in proportion to the rows that it touches: an index is built the first time
that a pattern's set of fixed columns is used, and kept up to date from then on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVarTuple

Ts = TypeVarTuple("Ts")
Row = tuple[int, ...]

EACH = None
"""A free column of a pattern in ``match`` and ``none``."""
ANY = None
"""A free column of a pattern in ``discard``."""


class Relation(Generic[*Ts]):
    """A set of rows of fixed arity (two or more); values are integers."""

    def __init__(self) -> None:
        self._rows: set[Row] = set()
        self._indexes: dict[tuple[int, ...], dict[Row, set[Row]]] = {}

    def __contains__(self, row: tuple[*Ts]) -> bool:
        return row in self._rows

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[tuple[*Ts]]:
        return iter(self._rows)  # type: ignore[arg-type]

    def add(self, *row: *Ts) -> None:
        """Put a row in; putting it in twice is the same as once."""
        if row in self._rows:
            return
        self._rows.add(row)  # type: ignore[arg-type]
        for columns, index in self._indexes.items():
            key = tuple(row[c] for c in columns)
            index.setdefault(key, set()).add(row)  # type: ignore[arg-type]

    def discard(self, *pattern: int | None) -> None:
        """Take all matching rows out; there need not be any."""
        for row in list(self._matching(pattern)):
            self._rows.remove(row)
            for columns, index in self._indexes.items():
                key = tuple(row[c] for c in columns)
                bucket = index[key]
                bucket.remove(row)
                if not bucket:
                    del index[key]

    def match(self, *pattern: int | None) -> Iterable[tuple[*Ts]]:
        """The matching rows, whole, in no particular order; not to be changed while iterating."""
        return self._matching(pattern)  # type: ignore[return-value]

    def none(self, *pattern: int | None) -> bool:
        """Whether no row matches."""
        return not self._matching(pattern)

    def _matching(self, pattern: tuple[int | None, ...]) -> Iterable[Row]:
        columns = tuple(c for c, value in enumerate(pattern) if value is not None)
        if not columns:
            return self._rows
        if len(columns) == len(pattern):
            return [pattern] if pattern in self._rows else []  # type: ignore[list-item]
        index = self._indexes.get(columns)
        if index is None:
            index = self._index(columns)
        key = tuple(pattern[c] for c in columns)
        return index.get(key, ())  # type: ignore[arg-type]

    def _index(self, columns: tuple[int, ...]) -> dict[Row, set[Row]]:
        index: dict[Row, set[Row]] = {}
        for row in self._rows:
            index.setdefault(tuple(row[c] for c in columns), set()).add(row)
        self._indexes[columns] = index
        return index
