"""Each promise, broken once in the smallest history that breaks it; and every way to tamper."""

from __future__ import annotations

import pytest

from kvproof.conformance.monitor.audit import Audit
from kvproof.conformance.monitor.monitor import Monitor
from kvproof.conformance.trace import events as ev
from kvproof.conformance.trace.events import SCHEDULER_RANK as S
from kvproof.spec.contract import contract
from kvproof.spec.ids import CONTRACT
from tests.conformance import tampering
from tests.conformance.story import FULL, WINDOW, Story, tokens


def eventful() -> Story:
    """A true history with a share, a slide, a flush, a load, a re-used block and a reset."""
    s = Story(groups=(FULL, WINDOW), num_workers=2)
    s.arrive("a#0", tokens(0, 16))
    for position in range(4):
        s.lease("a#0", position, 1 + position)
        s.lease("a#0", position, 11 + position, group=1)
    keys = [s.key("a#0", i) for i in range(4)] + [s.key("a#0", i, 1) for i in range(4)]
    s.accept("a#0", *((key, i) for i, key in enumerate(keys)))
    pieces = [(0, 1 + i, i, 0) for i in range(4)] + [(1, 11 + i, 4 + i, 0) for i in range(4)]
    s.issue(1, "store", "a#0", *pieces)
    s.run(("a#0", 0, 16, [300]))
    s.finish("a#0", *range(1, 5), *range(11, 15))
    # Block 1 comes back at once: the store in flight is flushed.
    s.arrive("b#0", tokens(50, 4))
    s.ask("b#0")
    s.emit(ev.Probe(s.step, S, "b#0", s.key("b#0", 0), "miss"))
    s.lease("b#0", 0, 1)
    s.lease("b#0", 0, 15, group=1)
    s.flush(1)
    plan = s.schedule(("b#0", 0, 4, [301]))
    for rank in (0, 1):
        s.launch(rank)
        s.submit(1, rank)
        s.done(1, rank)
        s.wait(1, rank=rank)
        s.forward(plan, rank)
        s.report(1, rank)
    s.complete_store(*keys)
    s.finish("b#0", 1, 15)
    s.arrive("c#0", tokens(0, 17))
    s.emit(ev.TierRequest(s.step, S, "c#0", "new"))
    s.ask("c#0", *keys[:4], *keys[6:])
    s.emit(ev.Answer(s.step, S, "c#0", 16, True))
    for position in range(4):
        s.lease("c#0", position, 21 + position)
    for position in (2, 3):
        s.lease("c#0", position, 29 + position, group=1)
    s.prepare_load("c#0", *keys[:4], *keys[6:])
    loads = [(0, 21 + i, i, 0) for i in range(4)] + [(1, 29 + i, 4 + i, 0) for i in (2, 3)]
    s.issue(2, "load", "c#0", *loads)
    s.idle()
    for rank in (0, 1):
        s.submit(2, rank)
        s.done(2, rank)
        s.report(2, rank)
    s.complete_load(*keys[:4], *keys[6:])
    s.received("c#0")
    s.lease("c#0", 4, 25)
    s.lease("c#0", 4, 5, group=1)
    s.run(("c#0", 16, 17, [302]))
    s.finish("c#0", *range(21, 26), 31, 32, 5)
    s.emit(ev.TierRequest(s.step, S, "c#0", "finished"))
    s.drained()
    return s


def test_the_eventful_history_is_true() -> None:
    assert eventful().verdict() is None


@pytest.mark.parametrize("name", sorted(tampering.ALL))
def test_tampering_is_found_by_its_id_where_it_was_done(name: str) -> None:
    id, tamper = tampering.ALL[name]
    story = eventful()
    result = tamper(story.events)
    assert result is not None, "the history offers no place for it"
    story.events, index = result
    assert story.verdict() == (id, index)


def test_every_invariant_holds_after_every_event_of_the_history() -> None:
    """What was proved is what runs: the guards alone keep all invariants true."""
    s = eventful()
    monitor = Monitor(s.header)
    audit = Audit(contract(), monitor.world)
    for event in s.events:
        assert monitor.feed(event) is None
        assert audit.broken() == []


def test_the_audit_sees_an_invariant_broken_behind_the_guards_back() -> None:
    s = eventful()
    monitor = Monitor(s.header)
    for event in s.events[:-1]:
        monitor.feed(event)
    reference = monitor.world.reference
    reference.maker.clear()
    reference.occupant.clear()
    assert Audit(contract(), monitor.world).broken() == [
        "slots_match_keys",
        "resident_chunks_are_stored_or_being_stored",
        "readable_means_complete",
        "stores_fill_what_they_make",
    ]


# --- single promises -----------------------------------------------------------------------------


def test_s1_stale_block_ids_are_stores_of_leases_long_given_up() -> None:
    s = Story()
    blocks = s.compute_prompt("a#0", tokens(0, 8), first_block=1)
    s.free("a#0", blocks[0], why="slide")
    s.idle()
    s.lease("a#0", 2, blocks[0])
    s.accept("a#0", (s.key("a#0", 0), 0))
    s.issue(1, "store", "a#0", (0, blocks[0], 0, 0))
    assert s.verdict() is None, "the bytes are still the right ones"
    t = Story()
    t.arrive("a#0", tokens(0, 12))
    t.lease("a#0", 0, 1)
    t.free("a#0", 1, why="slide")
    t.idle()
    t.lease("a#0", 2, 1)
    t.accept("a#0", (t.key("a#0", 0), 0))
    t.issue(1, "store", "a#0", (0, 1, 0, 0))
    assert t.verdict() == ("S1", t.last())


def test_s4_a_load_asks_for_a_piece_that_was_never_stored() -> None:
    s = Story(blocks_per_chunk=2)
    s.arrive("a#0", tokens(0, 8))
    s.lease("a#0", 0, 1)
    s.lease("a#0", 1, 2)
    s.run(("a#0", 0, 8, [300]))
    key = s.key("a#0", 1)
    s.accept("a#0", (key, 0))
    s.issue(1, "store", "a#0", (0, 2, 0, 1))
    s.idle()
    s.carry_out(1, key)
    s.arrive("b#0", tokens(0, 9))
    s.ask("b#0", key)
    s.lease("b#0", 0, 3)
    s.lease("b#0", 1, 4)
    s.prepare_load("b#0", key)
    s.issue(2, "load", "b#0", (0, 4, 0, 1))
    assert s.verdict() is None
    s.events.pop()
    s.issue(2, "load", "b#0", (0, 3, 0, 0), (0, 4, 0, 1))
    assert s.verdict() == ("S4", s.last())


def test_s6_a_store_that_failed_on_one_worker_must_not_be_completed_well() -> None:
    s = Story(num_workers=2)
    blocks = s.compute_prompt("a#0", tokens(0, 4), first_block=1)
    keys = s.offer(1, "a#0", blocks)
    s.idle()
    for rank in (0, 1):
        s.submit(1, rank)
        s.done(1, rank, ok=rank == 0)
        s.report(1, rank, ok=rank == 0)
    s.complete_store(*keys)
    assert s.verdict() == ("S6", s.last())
    s.events.pop()
    s.complete_store(*keys, ok=False)
    s.drained()
    assert s.verdict() is None


def dead_load_and_new_store(waits: bool) -> Story:
    """A load is in flight at a reset; its slot is handed to a store that is flushed in its step."""
    s = Story()
    keys = s.stored("a#0", tokens(0, 4))
    s.arrive("b#0", tokens(0, 5))
    s.ask("b#0", *keys)
    s.lease("b#0", 0, 3)
    s.prepare_load("b#0", *keys)
    s.issue(2, "load", "b#0", (0, 3, 0, 0))
    s.idle()
    s.submit(2)
    s.reset()
    s.offer(3, "a#0", [1])
    s.flush(2, 3)
    s.idle()
    if waits:
        s.done(2)
        s.wait(2)
    s.submit(3)
    return s


def test_s7_a_store_overtakes_a_dead_load_of_the_same_slot() -> None:
    s = dead_load_and_new_store(waits=False)
    assert s.verdict() == ("S7", s.last())
    assert dead_load_and_new_store(waits=True).verdict() is None


def test_s7_a_dead_store_is_followed_in_its_lane_without_a_wait() -> None:
    for lanes, verdict in (("direction", None), ("none", "S7")):
        s = Story(lanes=lanes)
        blocks = s.compute_prompt("a#0", tokens(0, 4), first_block=1)
        s.offer(1, "a#0", blocks)
        s.idle()
        s.submit(1)
        s.reset()
        s.offer(2, "a#0", blocks)
        s.idle()
        s.submit(2)
        found = s.finding()
        assert (found and found.id) == verdict


def test_s13_a_key_of_before_a_reset_is_still_found() -> None:
    s = Story()
    keys = s.stored("a#0", tokens(0, 4))
    s.emit(ev.Reset(s.step, S))
    s.arrive("b#0", tokens(0, 5))
    s.question("b#0")
    s.probe("b#0", keys[0], "hit")
    assert s.verdict() == ("S13", s.last())


def test_s14_the_engine_was_told_of_more_tokens_than_were_loaded() -> None:
    s = Story()
    keys = s.stored("a#0", tokens(0, 8))
    s.arrive("b#0", tokens(0, 9))
    s.ask("b#0", *keys)
    for position in range(3):
        s.lease("b#0", position, 5 + position)
    s.emit(ev.Allocated(s.step, S, "b#0", 8))
    s.prepare_load("b#0", keys[0])
    s.issue(2, "load", "b#0", (0, 5, 0, 0))
    s.idle()
    s.submit(2)
    s.done(2)
    s.report(2)
    s.complete_load(keys[0])
    s.received("b#0")
    s.run(("b#0", 8, 9, [300]))
    assert s.verdict() == ("S14", s.last())


def test_s14_what_nobody_answered_for_is_the_engine_s_own_promise() -> None:
    """The core of 0.26.0 admits a recurrent request where no state is; the answer was 0."""
    s = Story()
    s.arrive("b#0", tokens(0, 9))
    for position in range(3):
        s.lease("b#0", position, 5 + position)
    s.emit(ev.Allocated(s.step, S, "b#0", 0))
    s.run(("b#0", 8, 9, [300]))
    finding = s.finding()
    assert finding is not None
    assert (finding.id, finding.culprit) == ("A-attend", "engine")


def test_p5_a_late_completion_after_a_reset_changes_the_tier() -> None:
    s = Story()
    blocks = s.compute_prompt("a#0", tokens(0, 4), first_block=1)
    keys = s.offer(1, "a#0", blocks)
    s.idle()
    s.submit(1)
    s.reset()
    s.done(1)
    s.report(1)
    s.complete_store(*keys)
    assert s.verdict() == ("P5", s.last())


def test_p12_a_pin_is_left_over() -> None:
    s = Story()
    keys = s.stored("a#0", tokens(0, 4))
    s.arrive("b#0", tokens(0, 5))
    s.ask("b#0", *keys)
    s.prepare_load("b#0", *keys)
    s.drained()
    assert s.verdict() == ("P12", s.last())


def test_p13_an_incarnation_does_not_come_back() -> None:
    s = Story()
    s.arrive("a#0", tokens(0, 4))
    s.finish("a#0")
    s.arrive("a#0", tokens(0, 4))
    finding = s.finding()
    assert finding is not None
    assert (finding.id, finding.culprit) == ("A-arrive", "engine")


@pytest.mark.parametrize(
    ("deferred", "alive", "id"),
    [(True, True, "L1"), (False, False, "L2"), (False, True, "A-stall")],
)
def test_l1_l2_who_keeps_the_engine_from_coming_to_rest(
    deferred: bool, alive: bool, id: str
) -> None:
    s = Story()
    s.arrive("a#0", tokens(0, 4))
    s.question("a#0")
    if deferred:
        s.probe("a#0", s.key("a#0", 0), "retry")
        s.answer("a#0", None)
    if not alive:
        s.finish("a#0")
    s.emit(ev.Stalled(s.step, S, ["a#0"] if alive else []))
    assert s.verdict() == (id, s.last())


def test_a_finding_tells_the_facts_that_differ() -> None:
    s = Story()
    blocks = s.compute_prompt("a#0", tokens(0, 8), first_block=1)
    keys = [s.key("a#0", i) for i in range(2)]
    s.accept("a#0", (keys[0], 0), (keys[1], 1))
    s.issue(1, "store", "a#0", (0, blocks[1], 0, 0), (0, blocks[0], 1, 0))
    finding = s.finding()
    assert finding is not None
    assert finding.culprit == "scheduler"
    assert finding.sentence == CONTRACT["S4"].sentence
    assert finding.facts["lease_position[lease 1001 of block 2]"] == "group 0 @1"
    place = f"key {keys[0][:8]}:0 in slot 0 +0"
    assert finding.facts[f"place_position[{place}]"] == "group 0 @0"


def test_after_a_finding_the_monitor_takes_no_more() -> None:
    s = eventful()
    monitor = Monitor(s.header)
    for event in s.events[:-1]:
        assert monitor.feed(event) is None
    found = monitor.feed(ev.Drained(99, S, {"jobs": 1}))
    assert found is not None and found.id == "P12"
    assert monitor.feed(s.events[0]) is found


def test_coverage_counts_actions_and_guards() -> None:
    s = eventful()
    monitor = Monitor(s.header)
    for event in s.events:
        monitor.feed(event)
    counts = monitor.coverage()
    assert set(contract().actions) <= set(counts)
    assert (counts["lease"], counts["share"], counts["report"]) == (18, 0, 4)
    assert counts["guard P4"] == counts["report"] * 2 + counts["publish"] * 2 + counts["unpin"] * 2
