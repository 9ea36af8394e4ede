"""The greatest boundary, against every boundary tried in turn, and against the proved functions."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from kvproof.impl.scheduler.geometry import Geometry, Group, Kind
from kvproof.impl.scheduler.lookup import Answer, Finder
from kvproof.impl.scheduler.views import Found, Key
from kvproof.model import functions

from .small_world import SmallTier, chunked, full, key, recurrent, sizes, window

_KINDS = {
    Kind.FULL: functions.FULL,
    Kind.WINDOW: functions.WINDOW,
    Kind.CHUNKED: functions.CHUNKED,
    Kind.RECURRENT: functions.RECURRENT,
}


@dataclass
class Scene:
    """Statuses of every chunk that a prompt has a key for; a lookup from ``floor`` to ``limit``."""

    geometry: Geometry
    tier: SmallTier
    hashes: list[bytes]
    coverage: dict[Key, int]
    floor: int
    limit: int

    def find(self, refused: frozenset[Key] = frozenset()) -> Answer:
        finder = Finder(self.geometry, self.tier, self.coverage)
        return finder.find(self.hashes, None, self.floor, self.limit, refused)

    def key(self, group: Group, chunk: int) -> Key:
        return key(group.index, (chunk + 1) * group.hashes_per_chunk - 1)

    def served(self, group: Group, boundary: int, least: Found) -> bool:
        """Whether a group can start at a boundary: every chunk that it reads there is tried."""
        size = group.tokens_per_chunk
        if group.kind is Kind.RECURRENT:
            return boundary % size == 0 and self._there(group, boundary // size - 1, 0, least)
        low = max(self.floor, group.first_needed(boundary))
        if low >= boundary:
            return True
        last = (boundary - 1) // size + group.draft
        # The chunk beyond the boundary, which a drafter's counts together with, is not read.
        return all(
            self._there(
                group, chunk, max(0, low - chunk * size) if chunk * size < boundary else size, least
            )
            for chunk in range(low // size, last + 1)
        )

    def _there(self, group: Group, chunk: int, inside: int, least: Found) -> bool:
        if (chunk + 1) * group.hashes_per_chunk > len(self.hashes):
            return False
        name = self.key(group, chunk)
        missing = self.coverage.get(name, 0) * group.tokens_per_block
        if group.kind in (Kind.FULL, Kind.RECURRENT):
            missing = 0
        return self.tier.chunks.get(name, Found.MISS) >= least and inside >= missing

    def greatest(self, least: Found) -> int:
        for boundary in range(self.limit, self.floor, -1):
            if all(self.served(group, boundary, least) for group in self.geometry.groups):
                return boundary
        return self.floor


@st.composite
def groups(draw: st.DrawFn, drafts: bool = True) -> list[tuple[Kind, int, int, bool]]:
    made = []
    for _ in range(draw(st.integers(1, 4))):
        size = draw(st.sampled_from([1, 2, 3, 4]))
        draft = drafts and draw(st.booleans())
        made.append(
            draw(
                st.sampled_from(
                    [
                        full(size, draft),
                        window(size, draw(st.integers(1, 9)), draft),
                        chunked(size, draw(st.integers(1, 9))),
                        recurrent(size),
                    ]
                )
            )
        )
    return made


@st.composite
def scenes(draw: st.DrawFn, drafts: bool = True, holes: bool = True) -> Scene:
    per = draw(st.sampled_from([1, 1, 2]))
    geometry = sizes(*draw(groups(drafts)), blocks_per_chunk=per)
    tokens = draw(st.integers(1, 24))
    floor = draw(st.integers(0, tokens - 1))
    tier = SmallTier()
    tier.fast = draw(st.booleans())
    hashes = [f"a{number}".encode() for number in range(tokens)]
    scene = Scene(geometry, tier, hashes, {}, floor, draw(st.integers(floor, tokens - 1)))
    # Mostly there, or no boundary is ever served.
    status = st.sampled_from([Found.HIT] * 12 + [Found.PENDING, Found.RETRY, Found.MISS])
    for group in geometry.groups:
        for chunk in range(tokens // group.tokens_per_chunk):
            tier.chunks[scene.key(group, chunk)] = draw(status)
            if holes and group.kind in (Kind.WINDOW, Kind.CHUNKED) and draw(st.integers(0, 5)) == 0:
                scene.coverage[scene.key(group, chunk)] = draw(st.integers(0, per - 1))
    return scene


@settings(max_examples=600)
@given(scenes())
def test_a_lookup_finds_the_greatest_boundary_and_whether_waiting_pays(scene: Scene) -> None:
    ready, maybe = scene.greatest(Found.HIT), scene.greatest(Found.RETRY)
    answer = scene.find()
    assert (answer.boundary, answer.worth_waiting) == (ready, ready < maybe)


@settings(max_examples=300)
@given(scenes(drafts=False, holes=False))
def test_a_lookup_agrees_with_the_proved_functions(scene: Scene) -> None:
    groups = scene.geometry.groups

    def greatest(number: int, limit: int) -> int:
        group = groups[number]
        return functions.greatest_served(
            _KINDS[group.kind],
            group.window,
            group.tokens_per_chunk,
            lambda chunk: (
                scene.tier.chunks.get(scene.key(group, chunk), Found.MISS).value
                if (chunk + 1) * group.hashes_per_chunk <= len(scene.hashes)
                else 0
            ),
            scene.floor,
            limit,
            Found.HIT.value,
        )

    best = functions.greatest_boundary(len(groups), greatest, scene.floor, scene.limit)
    assert scene.find().boundary == best


@settings(max_examples=200)
@given(scenes(), st.data())
def test_a_refused_key_counts_as_absent(scene: Scene, data: st.DataObject) -> None:
    keys = list(scene.tier.chunks)
    refused = frozenset(data.draw(st.lists(st.sampled_from(keys), max_size=3)) if keys else ())
    answer = scene.find(refused)
    scene.tier.fill(refused, Found.MISS)
    assert (answer.boundary, answer.worth_waiting) == (
        scene.greatest(Found.HIT),
        scene.greatest(Found.HIT) < scene.greatest(Found.RETRY),
    )


@settings(max_examples=200)
@given(scenes())
def test_no_key_is_asked_for_twice(scene: Scene) -> None:
    scene.find()
    assert len(scene.tier.asked) == len(set(scene.tier.asked))


@settings(max_examples=300)
@given(scenes(), st.data())
def test_an_answer_goes_on_from_the_hits_of_the_last(scene: Scene, data: st.DataObject) -> None:
    before = scene.find()
    for name, found in scene.tier.chunks.items():
        if found is not Found.HIT and data.draw(st.booleans()):
            scene.tier.chunks[name] = Found.HIT
    scene.floor = data.draw(st.integers(scene.floor, scene.limit))
    finder = Finder(scene.geometry, scene.tier, scene.coverage)
    again = finder.find(scene.hashes, None, scene.floor, scene.limit, (), before.hits)
    assert (again.boundary, again.worth_waiting) == (
        scene.greatest(Found.HIT),
        scene.greatest(Found.HIT) < scene.greatest(Found.RETRY),
    )


@settings(max_examples=300)
@given(scenes(), st.data())
def test_an_answer_stands_while_its_doubts_do(scene: Scene, data: st.DataObject) -> None:
    before = scene.find()
    doubts = {name for name, _ in before.doubts}
    for name, found in scene.tier.chunks.items():
        if found is not Found.HIT and name not in doubts:
            scene.tier.chunks[name] = data.draw(st.sampled_from([Found.PENDING, Found.HIT]))
    again = scene.find()
    assert (again.boundary, again.worth_waiting) == (before.boundary, before.worth_waiting)


def test_a_window_is_probed_from_its_end() -> None:
    geometry = sizes(full(2), window(2, 4))
    tier = SmallTier()
    tier.fill(key(0, last) for last in range(1, 20, 2))
    tier.fill(key(1, last) for last in (9, 11, 13))
    hashes = [f"a{number}".encode() for number in range(20)]
    answer = Finder(geometry, tier, {}).find(hashes, None, 0, 19)
    assert answer.boundary == 14
    windowed = [name for name in tier.asked if name.endswith(b"\1")]
    assert windowed == [key(1, last) for last in (19, 17, 15, 13, 11)]


def test_what_serves_a_boundary() -> None:
    geometry = sizes(full(2), window(2, 4), recurrent(4))
    needed = Finder(geometry, SmallTier(), {}).needed(4, 12)
    assert list(needed.values()) == [(2, 6), (4, 6), (2, 3)]
