"""E5, E7: what the tier says that it has, and what it lets go first."""

from __future__ import annotations

import pytest

from kvproof.conformance.trace import events as ev
from kvproof.conformance.trace.events import SCHEDULER_RANK as S
from kvproof.conformance.trace.events import GroupGeometry
from tests.conformance.economy_story import Tale
from tests.conformance.story import FULL, WINDOW, tokens

# --- E5 ---


def at_rest(*changes: tuple[str, list[str]], reset: bool = False, grouped: bool = True) -> Tale:
    """One chunk is stored, events are told, and everything comes to rest."""
    s = Tale()
    (key,) = s.stored("a#0", tokens(0, 4))
    name = key if grouped else key.partition(":")[0]
    for what, keys in changes:
        s.told((what, [name if k == "it" else k for k in keys]))
    s.end("a#0", 1)
    if reset:
        s.reset()
        s.idle()
    s.drained()
    return s


def test_e5_a_stored_key_was_never_told() -> None:
    s = at_rest(("cleared", []))
    facts = {"k": s.show("a#0", 0), "said": "0", "there": "1"}
    assert s.missed() == [("E5", s.last(), facts)]


def test_e5_a_key_that_a_reset_forgot_was_not_told_to_be_gone() -> None:
    s = at_rest(("stored", ["it"]), reset=True)
    facts = {"k": s.show("a#0", 0), "said": "1", "there": "0"}
    assert s.missed() == [("E5", s.last(), facts)]


def test_e5_nobody_is_asked_what_a_reset_did_before_the_next_step() -> None:
    """Events are taken when a step ends; a scheduler that keeps them until then has told all."""
    s = Tale()
    (key,) = s.stored("a#0", tokens(0, 4))
    s.told(("stored", [key]))
    s.end("a#0", 1)
    s.reset()
    s.drained()
    assert s.missed() == []
    s.idle()
    s.told(("removed", [key]))
    s.drained()
    assert s.missed() == []


@pytest.mark.parametrize("grouped", [True, False])
def test_e5_what_is_told_is_there(grouped: bool) -> None:
    s = at_rest(("stored", ["it"]), ("removed", ["it"]), ("stored", ["it"]), grouped=grouped)
    assert s.missed() == []


@pytest.mark.parametrize("what", ["removed", "cleared"])
def test_e5_what_a_reset_forgot_is_told(what: str) -> None:
    s = at_rest(("stored", ["it"]), (what, ["it"] if what == "removed" else []), reset=True)
    assert s.missed() == []


def test_e5_the_key_that_is_told_wrongly_is_shown() -> None:
    s = Tale()
    first, last = sorted(s.stored("a#0", tokens(0, 8)))
    s.told(("stored", [first]))
    s.end("a#0", 1, 2)
    s.drained()
    assert s.missed() == [("E5", s.last(), {"k": f"key {last}", "said": "0", "there": "1"})]


def test_e5_nothing_is_asked_of_a_run_without_events() -> None:
    assert at_rest().missed() == []


# --- E7 ---


def third_comes(
    evicted: str,
    options: dict[str, bool | int | str | None] | None = None,
    used: bool = False,
    refused: bool = False,
) -> Tale:
    """Two requests were stored and ended, one after the other; a third one needs room.

    ``evicted`` is whose chunk leaves; ``used``: a fourth had offered the older one's, too;
    ``refused``: with one of its own, for which there was no room.
    """
    s = Tale(num_slots=2, options=options or {})
    s.left("a#0", tokens(0, 4))
    blocks = s.compute_prompt("b#0", tokens(50, 4), first_block=2)
    s.offer(2, "b#0", blocks, first_slot=1)
    s.idle()
    keys = {"older": s.key("a#0", 0), "newer": s.key("b#0", 0)}
    s.carry_out(2, keys["newer"])
    s.end("b#0", *blocks)
    if used:
        s.compute_prompt("d#0", tokens(0, 4), first_block=4)
        s.decline("d#0", keys["older"])
    if refused:
        s.compute_prompt("d#0", tokens(0, 8), first_block=4)
        s.refuse("d#0", keys["older"], s.key("d#0", 1))
    s.compute_prompt("c#0", tokens(70, 4), first_block=3)
    slot = 0 if evicted == "older" else 1
    s.accept("c#0", (s.key("c#0", 0), slot), evicted=(keys[evicted],))
    return s


def test_e7_the_newer_of_two_leaves() -> None:
    s = third_comes("newer")
    facts = {
        "x": f"{s.show('b#0', 0)} in slot 1",
        "other": f"{s.show('a#0', 0)} in slot 0",
        "used": "1",
        "older": "0",
    }
    assert s.missed() == [("E7", s.last(), facts)]


def test_e7_the_older_of_two_leaves() -> None:
    assert third_comes("older").missed() == []


def test_e7_what_is_used_again_is_no_longer_old() -> None:
    assert third_comes("newer", used=True).missed() == []
    assert [id for id, _, _ in third_comes("older", used=True).missed()] == ["E7"]


@pytest.mark.parametrize("evicted", ["older", "newer"])
def test_e7_a_tier_decides_whether_a_refused_offer_is_a_use(evicted: str) -> None:
    """The CPU tier of 0.32.0 says that it is; one that says no is as good."""
    assert third_comes(evicted, refused=True).missed() == []


def test_e7_other_policies_have_other_orders() -> None:
    assert third_comes("newer", options={"eviction": "arc"}).missed() == []


def two_requests(*order: str) -> Tale:
    """ "a" and "b" each store a chunk; ``order`` says who begins ("a") and ends ("a.") when.

    Then somebody else needs room, and it is the chunk of "b" that leaves.
    """
    s = Tale(num_slots=2)
    number = {"a": 0, "b": 1, "d": 0}
    for word in order:
        name, req = word[0], f"{word[0]}#0"
        block = 1 + "abd".index(name)
        if word.endswith("."):
            s.end(req, block)
        elif name == "d":
            s.compute_prompt(req, tokens(0, 4), block)
            s.decline(req, s.key(req, 0))
        else:
            s.compute_prompt(req, tokens(50 * number[name], 4), block)
            keys = s.offer(1 + number[name], req, [block], first_slot=number[name])
            s.idle()
            s.carry_out(1 + number[name], *keys)
    s.compute_prompt("c#0", tokens(70, 4), first_block=8)
    s.accept("c#0", (s.key("c#0", 0), 1), evicted=(s.key("b#0", 0),))
    return s


@pytest.mark.parametrize(
    ("order", "found"),
    [
        (["a", "a.", "b", "b."], ["E7"]),
        # They ran at the same time: neither is older.
        (["a", "b", "a.", "b."], []),
        # "a" still runs, though another user of its chunk has ended.
        (["a", "d", "d.", "b", "b."], []),
        (["a", "d", "d.", "a.", "b", "b."], ["E7"]),
    ],
)
def test_e7_a_key_is_old_when_all_its_users_have_ended(order: list[str], found: list[str]) -> None:
    assert [id for id, _, _ in two_requests(*order).missed()] == found


def test_e7_what_is_being_read_cannot_leave() -> None:
    """Its reader was aborted, and the copy is still under way."""
    s = Tale(num_slots=2)
    s.left("a#0", tokens(0, 4))
    key = s.key("a#0", 0)
    s.arrive("d#0", tokens(0, 9))
    s.ask("d#0", key)
    s.lease("d#0", 0, 5)
    s.prepare_load("d#0", key)
    s.emit(ev.Finish(s.step, S, "d#0", "aborted"))
    s.idle()
    s.compute_prompt("b#0", tokens(50, 4), first_block=2)
    newer = s.offer(2, "b#0", [2], first_slot=1)
    s.idle()
    s.carry_out(2, *newer)
    s.end("b#0", 2)
    s.compute_prompt("c#0", tokens(70, 4), first_block=8)
    s.accept("c#0", (s.key("c#0", 0), 1), evicted=tuple(newer))
    assert s.missed() == []


def test_e7_what_an_earlier_request_still_uses_is_not_old() -> None:
    """The oldest request of all offers a chunk that another one stored and left."""
    s = Tale(num_slots=2)
    s.compute_prompt("d#0", tokens(0, 4), first_block=5)
    s.left("a#0", tokens(0, 4))
    s.decline("d#0", s.key("d#0", 0))
    s.compute_prompt("b#0", tokens(50, 4), first_block=2)
    newer = s.offer(2, "b#0", [2], first_slot=1)
    s.idle()
    s.carry_out(2, *newer)
    s.end("b#0", 2)
    s.compute_prompt("c#0", tokens(70, 4), first_block=8)
    s.accept("c#0", (s.key("c#0", 0), 1), evicted=tuple(newer))
    assert s.missed() == []


def prefix_loses(chunk: int, group: GroupGeometry = FULL) -> Tale:
    """A prefix of two chunks was stored by a request that ended; one of them leaves."""
    s = Tale(num_slots=2, groups=(group,))
    keys = s.stored("a#0", tokens(0, 8))
    s.end("a#0", 1, 2)
    s.compute_prompt("c#0", tokens(70, 4), first_block=3)
    s.accept("c#0", (s.key("c#0", 0), chunk), evicted=(keys[chunk],))
    return s


def test_e7_the_head_of_a_prefix_leaves_before_its_tail() -> None:
    s = prefix_loses(0)
    facts = {
        "x": f"{s.show('a#0', 0)} in slot 0",
        "other": f"{s.show('a#0', 1)} in slot 1",
        "chunk": "0",
        "tail": "1",
    }
    assert s.missed() == [("E7", s.last(), facts)]


def test_e7_the_tail_of_a_prefix_leaves_before_its_head() -> None:
    assert prefix_loses(1).missed() == []


def test_e7_a_window_can_do_without_its_head() -> None:
    assert prefix_loses(0, WINDOW).missed() == []


def test_e7_a_prefix_may_leave_as_a_whole() -> None:
    s = Tale(num_slots=2)
    keys = s.stored("a#0", tokens(0, 8))
    s.end("a#0", 1, 2)
    s.compute_prompt("c#0", tokens(70, 8), first_block=3)
    s.accept("c#0", (s.key("c#0", 0), 0), (s.key("c#0", 1), 1), evicted=tuple(keys))
    assert s.missed() == []


def test_e7_a_tail_that_was_used_later_than_its_head_may_stay() -> None:
    s = Tale(num_slots=2)
    keys = s.stored("a#0", tokens(0, 8))
    s.end("a#0", 1, 2)
    s.compute_prompt("d#0", tokens(0, 8), first_block=5)
    s.decline("d#0", keys[1])
    s.compute_prompt("c#0", tokens(70, 4), first_block=3)
    s.accept("c#0", (s.key("c#0", 0), 0), evicted=(keys[0],))
    assert s.missed() == []
