"""The indexed relation against the plainest thing that could be one: a set of rows."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from kvproof.model.relation import Relation

value = st.integers(0, 2)
row = st.tuples(value, value, value)
pattern = st.tuples(*[st.one_of(st.none(), value)] * 3)
operation = st.one_of(
    st.tuples(st.just("add"), row),
    st.tuples(st.just("discard"), pattern),
    st.tuples(st.just("match"), pattern),
)


def fits(candidate: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    return all(w is None or c == w for c, w in zip(candidate, wanted, strict=True))


@given(st.lists(operation, max_size=60))
def test_it_behaves_as_a_set_of_rows(
    operations: list[tuple[str, tuple[int | None, ...]]],
) -> None:
    relation: Relation[int, int, int] = Relation()
    plain: set[tuple[int, ...]] = set()
    for name, argument in operations:
        if name == "add":
            new = [v for v in argument if v is not None]
            relation.add(new[0], new[1], new[2])
            plain.add(tuple(new))
        elif name == "discard":
            relation.discard(*argument)
            plain = {r for r in plain if not fits(r, argument)}
        wanted = {r for r in plain if fits(r, argument)}
        assert set(relation.match(*argument)) == wanted
        assert relation.none(*argument) == (not wanted)
        assert (set(relation), len(relation)) == (plain, len(plain))
    for a, b, c in itertools.product(range(3), repeat=3):
        assert ((a, b, c) in relation) == ((a, b, c) in plain)


def test_indexes_stay_right_when_rows_come_after_them() -> None:
    relation: Relation[int, int] = Relation()
    assert relation.none(1, None)
    relation.add(1, 5)
    relation.add(2, 5)
    assert set(relation.match(1, None)) == {(1, 5)}
    assert set(relation.match(None, 5)) == {(1, 5), (2, 5)}
    relation.discard(1, None)
    assert relation.none(1, None)
    assert set(relation.match(None, 5)) == {(2, 5)}
