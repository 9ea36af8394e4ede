"""Short stories of the tier, each with what comes of it."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from kvproof.impl.scheduler.views import Found, Key
from kvproof.impl.tier.arc import Arc
from kvproof.impl.tier.lru import Lru
from kvproof.impl.tier.policy import Policy, policy
from kvproof.impl.tier.tier import CpuTier, NotReadable

FULL, WINDOW = bytes(4), bytes(3) + b"\x01"


def keys(of: str, group: bytes = FULL) -> list[Key]:
    """One key for each letter."""
    return [letter.encode() + group for letter in of]


def names(found: Collection[Key]) -> str:
    return "".join(sorted(key[:1].decode() for key in found))


def store(tier: CpuTier, of: str, user: str, group: bytes = FULL) -> str | None:
    """Offer keys, store what is taken; what left for it, None: refused."""
    tier.note(keys(of, group), [ord(letter) for letter in of])
    room = tier.prepare_store(keys(of, group), user)
    if room is None:
        return None
    tier.complete_store(room.keys, user)
    return names(room.evicted)


def chained(capacity: int, kind: type[Policy] = Lru) -> CpuTier:
    tier = CpuTier(capacity, kind)
    tier.policy.chained = (FULL,)
    return tier


def test_slots_are_handed_out_in_a_row_and_used_again_when_their_keys_have_left() -> None:
    tier = CpuTier(3)
    room = tier.prepare_store(keys("abc"), "r")
    assert room is not None and room.place == [0, 1, 2]
    tier.complete_store(room.keys)
    room = tier.prepare_store(keys("bd"), "s")
    assert room is not None
    assert (room.keys, room.place, room.evicted) == (keys("d"), [2], keys("c"))


def test_a_prompt_larger_than_the_tier_keeps_its_head() -> None:
    tier = chained(3)
    assert store(tier, "a", "r") == ""
    assert store(tier, "bc", "r") == ""
    assert store(tier, "d", "r") is None
    assert names(tier.resident()) == "abc"


def test_where_nothing_is_said_of_groups_what_was_offered_first_leaves_first() -> None:
    tier = CpuTier(3)
    assert store(tier, "ab", "r") == ""
    assert store(tier, "c", "r") == ""
    # Of one offer the tail.
    assert store(tier, "d", "r") == "b"
    assert store(tier, "e", "r") == "a"


def test_of_an_older_request_the_tail_leaves_first() -> None:
    tier = chained(4)
    store(tier, "ab", "r")
    store(tier, "cd", "r")
    assert store(tier, "x", "s") == "d"
    assert store(tier, "y", "s") == "c"
    assert store(tier, "z", "s") == "b"


def test_of_a_window_the_oldest_chunk_leaves_first() -> None:
    tier = chained(4)
    store(tier, "ab", "r", WINDOW)
    store(tier, "cd", "r", WINDOW)
    assert store(tier, "x", "s") == "a"
    assert store(tier, "y", "s") == "b"


def test_a_request_that_goes_on_keeps_what_it_stored_long_ago() -> None:
    tier = chained(4)
    store(tier, "ab", "r")
    store(tier, "x", "s")
    store(tier, "c", "r")
    assert store(tier, "y", "t") == "x"
    tier.finished_request("r")
    # Over is over: nothing of it becomes young with a request of that name.
    store(tier, "z", "r")
    assert names(tier.resident()) == "abyz"


def test_a_head_that_two_requests_share_leaves_after_both_tails() -> None:
    tier = chained(5)
    store(tier, "ab", "r")
    store(tier, "ac", "s")
    store(tier, "x", "t")
    assert [store(tier, one, "t") for one in "yzuv"] == ["", "b", "c", "a"]


def test_pinned_and_pending_keys_stay_in_their_place() -> None:
    tier = CpuTier(3)
    store(tier, "cba", "r")
    tier.prepare_load(keys("a"))
    tier.prepare_load(keys("a"))
    assert store(tier, "d", "s") == "b"
    tier.complete_load(keys("a"))
    assert store(tier, "e", "s") == "c"
    tier.complete_load(keys("a"))
    assert store(tier, "f", "s") == "a"
    pending = tier.prepare_store(keys("ghi"), "t")
    assert pending is not None
    assert tier.prepare_store(keys("j"), "t") is None


def test_a_refused_offer_changes_nothing() -> None:
    tier = CpuTier(2, tells=True)
    store(tier, "ab", "r")
    tier.prepare_load(keys("b"))
    tier.take_changes()
    assert tier.prepare_store(keys("cd"), "s") is None
    assert names(tier.resident()) == "ab"
    assert (tier.take_changes(), tier.counts.refused) == ([], 1)


def test_a_failed_store_takes_its_keys_along_and_frees_their_slots() -> None:
    tier = CpuTier(2, tells=True)
    room = tier.prepare_store(keys("ab"), "r")
    assert room is not None
    tier.complete_store(keys("ab"), "r", False)
    assert [tier.lookup(key) for key in keys("ab")] == [Found.MISS, Found.MISS]
    assert (tier.used, tier.counts.failed, tier.take_changes()) == (0, 2, [])
    assert store(tier, "cd", "s") == ""


def test_what_cannot_be_read_cannot_be_loaded_and_nothing_is_pinned() -> None:
    tier = CpuTier(4)
    store(tier, "a", "r")
    tier.prepare_store(keys("b"), "r")
    for wanted in ("ab", "ax"):
        with pytest.raises(NotReadable, match="1 of 2 keys cannot be read"):
            tier.prepare_load(keys(wanted))
    assert tier.loading == 0


def test_after_a_reset_slots_that_were_in_use_are_handed_out_last() -> None:
    tier = CpuTier(5, tells=True)
    store(tier, "abc", "r")
    tier.prepare_load(keys("b"))
    tier.prepare_store(keys("d"), "r")
    tier.reset()
    tier.reset()
    assert tier.resident() == []
    assert [(names(change.keys), change.removed) for change in tier.take_changes()] == [
        ("abc", False),
        ("abc", True),
    ]
    room = tier.prepare_store(keys("vwxyz"), "s")
    assert room is not None and room.place == [0, 2, 4, 3, 1]
    # What was under way says no more; if it did, it would change nothing.
    tier.complete_load(keys("b"))
    tier.complete_store(keys("d"))
    assert tier.counts.unasked == 2


def test_a_threshold_counts_offers_but_none_that_was_refused() -> None:
    tier = CpuTier(1, threshold=2)
    assert store(tier, "ab", "r") == ""
    assert tier.resident() == []
    assert tier.prepare_store(keys("ab"), "s") is None
    assert tier.counts.declined == 2
    assert store(tier, "a", "s") == ""
    assert store(tier, "c", "s") == ""
    assert store(tier, "b", "t") == "a"


def test_a_threshold_remembers_so_many_keys() -> None:
    tier = CpuTier(8, threshold=2, tracked=2)
    store(tier, "ab", "r")
    store(tier, "a", "s")
    # Of a, b and c the last offer of b is the longest ago.
    store(tier, "c", "s")
    store(tier, "b", "t")
    store(tier, "c", "t")
    assert names(tier.resident()) == "ac"


def test_arc_keeps_what_two_requests_wanted_through_a_scan() -> None:
    tier = CpuTier(4, Arc)
    store(tier, "ab", "r")
    store(tier, "ab", "s")
    for number, letter in enumerate("mnopqrst"):
        store(tier, letter, f"scan {number}")
    assert names(tier.resident()) == "abst"


def test_arc_gives_the_recent_part_more_room_when_what_left_it_comes_back() -> None:
    tier = CpuTier(4, Arc)
    store(tier, "ab", "r")
    store(tier, "ab", "s")
    for number, letter in enumerate("mnop"):
        store(tier, letter, f"scan {number}")
    arc = tier.policy
    assert isinstance(arc, Arc) and arc.target == 0
    assert store(tier, "n", "t") == "o"
    assert arc.target == 1
    # One recent chunk is no more than its share, so of the frequent ones the oldest leaves.
    assert store(tier, "q", "u") == "b"
    assert store(tier, "o", "v") == "p"
    assert names(tier.resident()) == "anoq"


def test_a_policy_is_found_by_name_or_by_its_module() -> None:
    assert policy("lru") is Lru
    assert policy("arc") is Arc
    assert policy("Lru", "kvproof.impl.tier.lru") is Lru


@pytest.mark.parametrize(
    ("name", "path", "said"),
    [
        ("fifo", None, "unknown eviction policy 'fifo': built in are lru, arc"),
        ("fifo", "kvproof.impl.tier.lru", "cannot be loaded: .*has no attribute 'fifo'"),
        ("fifo", "kvproof.nowhere", "cannot be loaded: No module named 'kvproof.nowhere'"),
        ("CpuTier", "kvproof.impl.tier.tier", "'CpuTier' of kvproof.impl.tier.tier is no Policy"),
    ],
)
def test_what_is_no_policy_is_refused_in_one_line(name: str, path: str | None, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        policy(name, path)
    assert "\n" not in str(caught.value)


def test_what_two_requests_use_stays_young_as_long_as_the_one_that_came_last() -> None:
    tier = chained(5)
    tier.new_request("first")
    tier.new_request("second")
    store(tier, "a", "first")
    store(tier, "abc", "second")
    tier.touch(keys("a"), "first")
    tier.finished_request("first")
    store(tier, "x", "third")
    store(tier, "d", "second")
    assert store(tier, "y", "fourth") == "x"
    assert names(tier.resident()) == "abcdy"


def test_what_the_last_to_come_used_goes_to_the_next_user_when_that_has_ended() -> None:
    tier = chained(4)
    tier.new_request("first")
    tier.new_request("second")
    store(tier, "a", "second")
    tier.finished_request("second")
    store(tier, "ab", "first")
    store(tier, "x", "third")
    store(tier, "c", "first")
    assert store(tier, "y", "fourth") == "x"


def test_what_stays_with_another_request_leaves_after_what_was_used_with_it() -> None:
    tier = chained(3)
    tier.new_request("first")
    tier.new_request("second")
    store(tier, "bc", "first")
    store(tier, "a", "second")
    tier.touch(keys("ba"), "first")
    assert [store(tier, one, "third") for one in "xyz"] == ["c", "b", "a"]


def test_arc_takes_recent_ones_within_their_share_when_there_is_nothing_else() -> None:
    tier = CpuTier(2, Arc)
    store(tier, "ab", "r")
    arc = tier.policy
    assert isinstance(arc, Arc)
    arc.target = 2
    assert store(tier, "c", "s") == "b"


def test_a_head_that_is_stored_again_leaves_after_the_tail_that_is_offered_again() -> None:
    tier = chained(3)
    assert store(tier, "bc", "r") == ""
    # Put back, and its head had left in between.
    assert store(tier, "a", "r") == ""
    assert store(tier, "bc", "r") == ""
    assert store(tier, "x", "s") == "c"


def test_a_reset_does_not_change_who_came_last() -> None:
    tier = chained(3)
    tier.new_request("r")
    tier.reset()
    tier.new_request("s")
    assert store(tier, "a", "s") == ""
    assert store(tier, "a", "r") == ""
    tier.finished_request("r")
    assert store(tier, "b", "s") == ""
    assert store(tier, "c", "t") == ""
    # What both used is used by the one that came last, and before its own tail.
    assert store(tier, "d", "t") == "b"


def test_what_the_last_to_come_shared_goes_back_to_whoever_uses_it_still() -> None:
    tier = chained(3)
    assert store(tier, "a", "r") == ""
    assert store(tier, "a", "s") == ""
    tier.finished_request("s")
    assert store(tier, "b", "x") == ""
    # With what it stores now, all that it uses is young again.
    assert store(tier, "c", "r") == ""
    assert store(tier, "d", "y") == "b"


def test_what_goes_back_to_an_older_user_leaves_after_what_the_later_one_leaves_behind() -> None:
    tier = chained(3)
    tier.new_request("r")
    tier.new_request("s")
    assert store(tier, "xa", "r") == ""
    assert store(tier, "ab", "s") == ""
    tier.finished_request("s")
    assert [store(tier, one, "t") for one in "uvw"] == ["b", "x", "a"]


def test_what_a_request_uses_with_others_it_does_not_push_out() -> None:
    tier = chained(3)
    tier.new_request("r")
    tier.new_request("s")
    assert store(tier, "ab", "r") == ""
    assert store(tier, "a", "s") == ""
    assert store(tier, "x", "t") == ""
    assert store(tier, "cd", "r") is None
    # What both use stands with the one that came last, and above what the first has alone.
    assert [store(tier, one, user) for one, user in ("yu", "zv", "cw")] == ["x", "b", "a"]


def test_a_head_that_another_stores_again_is_used_by_whoever_uses_what_follows_it() -> None:
    tier = chained(4)
    tier.new_request("r")
    tier.new_request("s")
    tier.prepare_store(keys("a"), "r")
    tier.complete_store(keys("a"), success=False)
    assert store(tier, "bc", "r") == ""
    assert store(tier, "ab", "s") == ""
    tier.finished_request("s")
    assert store(tier, "x", "t") == ""
    tier.finished_request("t")
    assert store(tier, "de", "r") is None
    assert store(tier, "d", "r") == "x"
