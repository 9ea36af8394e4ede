"""A finite relation with an index for every pattern that it was ever asked about.

Work per operation is in proportion to the rows that it touches: an index is built the first time
that a pattern's set of fixed columns is used, and kept up to date from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from operator import itemgetter
from typing import Any, Generic, TypeVarTuple

Ts = TypeVarTuple("Ts")
Row = tuple[int, ...]
_Key = Callable[[tuple[int | None, ...]], Any]

EACH = None
"""A free column of a pattern in ``match`` and ``none``."""
ANY = None
"""A free column of a pattern in ``discard``."""


class Relation(Generic[*Ts]):
    """A set of rows of fixed arity (two or more); values are integers."""

    def __init__(self) -> None:
        self._rows: set[Row] = set()
        # By which columns are fixed, in order: how to take these from a row, and the rows by them.
        self._indexes: dict[tuple[bool, ...], tuple[_Key, dict[Any, set[Row]]]] = {}

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
        for key_of, index in self._indexes.values():
            key = key_of(row)  # type: ignore[arg-type]
            bucket = index.get(key)
            if bucket is None:
                index[key] = {row}  # type: ignore[arg-type]
            else:
                bucket.add(row)  # type: ignore[arg-type]

    def discard(self, *pattern: int | None) -> None:
        """Take all matching rows out; there need not be any."""
        for row in list(self._matching(pattern)):
            self._rows.remove(row)
            for key_of, index in self._indexes.values():
                key = key_of(row)
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

    def _matching(self, pattern: tuple[int | None, ...]) -> Collection[Row]:
        if None not in pattern:
            return (pattern,) if pattern in self._rows else ()  # type: ignore[return-value]
        if len(pattern) == 2:
            fixed: tuple[bool, ...] = (pattern[0] is not None, pattern[1] is not None)
        else:
            fixed = tuple([value is not None for value in pattern])
        found = self._indexes.get(fixed)
        if found is None:
            if not any(fixed):
                return self._rows
            found = self._index(fixed)
        key_of, index = found
        return index.get(key_of(pattern), ())

    def _index(self, fixed: tuple[bool, ...]) -> tuple[_Key, dict[Any, set[Row]]]:
        key_of = itemgetter(*(column for column, given in enumerate(fixed) if given))
        index: dict[Any, set[Row]] = {}
        for row in self._rows:
            index.setdefault(key_of(row), set()).add(row)
        self._indexes[fixed] = key_of, index
        return key_of, index
