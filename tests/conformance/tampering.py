"""Ways to tamper with a true trace, each with the id that must be reported, and where.

Each takes the events of a run in which nothing is wrong, and returns the tampered events with the
index at which the finding must be; None when the run offers no place for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from kvproof.conformance.monitor.lookup_readers import MOST_POLLS
from kvproof.conformance.trace import events as ev

Events = list[ev.AnyEvent]
Tampering = Callable[[Events], tuple[Events, int] | None]

ALL: dict[str, tuple[str, Tampering]] = {}
"""Name of the tampering -> (id that must be reported, the tampering)."""


def breaks(id: str) -> Callable[[Tampering], Tampering]:
    def register(tampering: Tampering) -> Tampering:
        ALL[tampering.__name__] = (id, tampering)
        return tampering

    return register


def at(events: Events, kind: type[ev.Event]) -> Iterator[tuple[int, ev.AnyEvent]]:
    return ((i, e) for i, e in enumerate(events) if isinstance(e, kind))


def changed(events: Events, index: int, event: ev.AnyEvent) -> Events:
    return [*events[:index], event, *events[index + 1 :]]


def with_inserted(events: Events, index: int, event: ev.AnyEvent) -> Events:
    return [*events[:index], event, *events[index:]]


def job_of(events: Events, key: str) -> int:
    """The latest store of ``key``."""
    (slot,) = {
        slot
        for _, e in at(events, ev.PrepareStore)
        if isinstance(e, ev.PrepareStore)
        for k, slot in e.accepted
        if k == key
    }
    return max(
        e.job
        for _, e in at(events, ev.Issue)
        if isinstance(e, ev.Issue) and e.kind == "store" and slot in {p.slot for p in e.pieces}
    )


@breaks("S3")
def a_flush_is_removed(events: Events) -> tuple[Events, int] | None:
    """The worker still waits, but nobody asked for it: the next change of a block is unsafe."""
    for index, flush in at(events, ev.Flush):
        assert isinstance(flush, ev.Flush)
        shorter = events[:index] + events[index + 1 :]
        blocks = {
            p.block
            for _, e in at(events[:index], ev.Issue)
            if isinstance(e, ev.Issue) and e.job in flush.jobs
            for p in e.pieces
        }
        reported = {e.job for _, e in at(events[:index], ev.Report) if isinstance(e, ev.Report)}
        if set(flush.jobs) <= reported:
            continue
        fresh = {
            e.lease
            for _, e in at(events[:index], ev.Lease)
            if isinstance(e, ev.Lease) and e.step == flush.step and e.block in blocks
        }
        if not fresh:
            continue
        loads = {
            e.job
            for _, e in at(events[:index], ev.Issue)
            if isinstance(e, ev.Issue) and e.kind == "load" and blocks & {p.block for p in e.pieces}
        }
        for later, e in enumerate(shorter[index:], start=index):
            if isinstance(e, ev.Submit) and e.job in loads:
                return shorter, later
            if isinstance(e, ev.Zero) and fresh & set(e.leases):
                return shorter, later
            if isinstance(e, ev.Forward) and e.step == flush.step:
                return shorter, later
    return None


@breaks("S4")
def two_block_ids_are_swapped_in_a_store(events: Events) -> tuple[Events, int] | None:
    for index, e in at(events, ev.Issue):
        assert isinstance(e, ev.Issue)
        same = [i for i, p in enumerate(e.pieces) if p.group == e.pieces[0].group]
        if e.kind == "store" and len(same) >= 2:
            a, b = same[0], same[1]
            pieces = list(e.pieces)
            pieces[a] = replace(pieces[a], block=e.pieces[b].block)
            pieces[b] = replace(pieces[b], block=e.pieces[a].block)
            return changed(events, index, replace(e, pieces=pieces)), index
    return None


@breaks("S4")
def two_slots_are_swapped_in_a_load(events: Events) -> tuple[Events, int] | None:
    for index, e in at(events, ev.Issue):
        assert isinstance(e, ev.Issue)
        same = [i for i, p in enumerate(e.pieces) if p.group == e.pieces[0].group]
        if e.kind == "load" and len({e.pieces[i].slot for i in same}) >= 2:
            a = same[0]
            b = next(i for i in same if e.pieces[i].slot != e.pieces[a].slot)
            pieces = list(e.pieces)
            pieces[a] = replace(pieces[a], slot=e.pieces[b].slot)
            pieces[b] = replace(pieces[b], slot=e.pieces[a].slot)
            return changed(events, index, replace(e, pieces=pieces)), index
    return None


@breaks("S1")
def a_store_reads_a_block_that_its_request_never_had(events: Events) -> tuple[Events, int] | None:
    for index, e in at(events, ev.Issue):
        assert isinstance(e, ev.Issue)
        if e.kind == "store" and e.pieces:
            pieces = [replace(e.pieces[0], block=0), *e.pieces[1:]]
            return changed(events, index, replace(e, pieces=pieces)), index
    return None


@breaks("P4")
def a_report_is_doubled(events: Events) -> tuple[Events, int] | None:
    for index, e in at(events, ev.Report):
        return with_inserted(events, index, e), index + 1
    return None


@breaks("P4")
def a_store_is_completed_twice(events: Events) -> tuple[Events, int] | None:
    for index, e in at(events, ev.CompleteStore):
        return with_inserted(events, index, e), index + 1
    return None


@breaks("P4")
def a_store_is_completed_before_its_last_report(events: Events) -> tuple[Events, int] | None:
    for index, e in at(events, ev.CompleteStore):
        assert isinstance(e, ev.CompleteStore)
        job = job_of(events[:index], e.keys[0])
        report = max(
            i for i, r in at(events[:index], ev.Report) if isinstance(r, ev.Report) and r.job == job
        )
        moved = with_inserted(events[:index] + events[index + 1 :], report, e)
        return moved, report
    return None


@breaks("S6")
def a_key_is_promoted_to_a_hit(events: Events) -> tuple[Events, int] | None:
    for index, e in at(events, ev.Probe):
        assert isinstance(e, ev.Probe)
        if e.result in ("miss", "pending"):
            return changed(events, index, replace(e, result="hit")), index
    return None


@breaks("S5")
def a_hit_is_withdrawn_but_loaded_all_the_same(events: Events) -> tuple[Events, int] | None:
    for index, e in at(events, ev.PrepareLoad):
        assert isinstance(e, ev.PrepareLoad)
        tampered: Events = [
            replace(p, result="miss")
            if isinstance(p, ev.Probe) and p.req == e.req and p.key == e.keys[0]
            else p
            for p in events[:index]
        ]
        return [*tampered, *events[index:]], index
    return None


@breaks("S8")
def a_slot_is_handed_out_that_is_in_use(events: Events) -> tuple[Events, int] | None:
    for index, e in at(events, ev.PrepareStore):
        assert isinstance(e, ev.PrepareStore)
        if len(e.accepted) >= 2:
            (first, slot), (second, _), *rest = e.accepted
            accepted = [(first, slot), (second, slot), *rest]
            return changed(events, index, replace(e, accepted=accepted)), index
    return None


@breaks("S8")
def a_slot_is_handed_out_that_does_not_exist(events: Events) -> tuple[Events, int] | None:
    for index, e in at(events, ev.PrepareStore):
        assert isinstance(e, ev.PrepareStore)
        if e.accepted:
            (key, _), *rest = e.accepted
            return changed(events, index, replace(e, accepted=[(key, 1 << 20), *rest])), index
    return None


@breaks("S7")
def a_pinned_key_is_evicted(events: Events) -> tuple[Events, int] | None:
    for index, e in at(events, ev.PrepareLoad):
        assert isinstance(e, ev.PrepareLoad)
        eviction = ev.PrepareStore(e.step, e.rank, e.req, [], False, [e.keys[0]], [])
        return with_inserted(events, index + 1, eviction), index + 1
    return None


@breaks("S11")
def the_engine_is_told_of_a_load_too_early(events: Events) -> tuple[Events, int] | None:
    for index, e in at(events, ev.Received):
        assert isinstance(e, ev.Received)
        job = next(
            i.job
            for _, i in at(events[:index], ev.Issue)
            if isinstance(i, ev.Issue) and i.kind == "load" and i.req == e.req
        )
        submit = next(i for i, s in enumerate(events) if isinstance(s, ev.Submit) and s.job == job)
        return with_inserted(events[:index] + events[index + 1 :], submit + 1, e), submit + 1
    return None


@breaks("P5")
def a_reset_comes_before_a_store_is_completed(events: Events) -> tuple[Events, int] | None:
    for index, e in at(events, ev.CompleteStore):
        return with_inserted(events, index, ev.Reset(e.step, e.rank)), index + 1
    return None


@breaks("S2")
def a_store_is_submitted_before_the_forward(events: Events) -> tuple[Events, int] | None:
    """The submit is moved to the launch of the step that issued the store."""
    for index, e in at(events, ev.Issue):
        assert isinstance(e, ev.Issue)
        if e.kind != "store":
            continue
        computed = {
            c.req
            for _, s in at(events[index:], ev.Scheduled)
            if isinstance(s, ev.Scheduled) and s.step == e.step
            for c in s.computing
        }
        launches = [i for i, s in at(events[index:], ev.Launch) if s.step == e.step]
        if e.req not in computed or not launches:
            continue
        launch = index + launches[0]
        submit = next(
            i
            for i, s in enumerate(events)
            if isinstance(s, ev.Submit) and s.job == e.job and s.rank == events[launch].rank
        )
        forwards = [i for i, _ in at(events[launch:submit], ev.Forward)]
        if forwards:
            moved = events[:submit] + events[submit + 1 :]
            return with_inserted(moved, launch + 1, events[submit]), launch + 1
    return None


@breaks("S12")
def a_key_of_another_request_is_looked_up(events: Events) -> tuple[Events, int] | None:
    hashes = [e for _, e in at(events, ev.Hashed) if isinstance(e, ev.Hashed)]
    for index, e in at(events, ev.Probe):
        assert isinstance(e, ev.Probe)
        group = e.key.rpartition(":")[2]
        own = {h for known in hashes if known.req == e.req for h in known.hashes}
        for known in hashes:
            foreign = [h for h in known.hashes if h not in own]
            if foreign:
                key = f"{foreign[0]}:{group}"
                return changed(events, index, replace(e, key=key, result="miss")), index
    return None


@breaks("P16")
def an_answer_goes_beyond_the_request(events: Events) -> tuple[Events, int] | None:
    for index, e in at(events, ev.Answer):
        assert isinstance(e, ev.Answer)
        if e.tokens is not None:
            return changed(events, index, replace(e, tokens=1 << 20)), index
    return None


@breaks("P6")
def the_tier_is_told_twice_of_a_request(events: Events) -> tuple[Events, int] | None:
    """Or for the first time too late: a call for the request came before."""
    for index, e in at(events, ev.TierRequest):
        assert isinstance(e, ev.TierRequest)
        if e.phase == "new":
            return with_inserted(events, index, e), index + 1
    probe = next(((i, e) for i, e in at(events, ev.Probe)), None)
    if probe is None:
        return None
    index, first = probe
    assert isinstance(first, ev.Probe)
    told = ev.TierRequest(first.step, first.rank, first.req, "finished")
    return with_inserted(events, index, told), index


@breaks("P12")
def something_is_left_over(events: Events) -> tuple[Events, int] | None:
    for index, e in at(events, ev.Drained):
        assert isinstance(e, ev.Drained)
        return changed(events, index, replace(e, residue={"requests": 1})), index
    return None


@breaks("P11")
def a_call_raises(events: Events) -> tuple[Events, int] | None:
    for index, e in at(events, ev.Ask):
        raised = ev.Raised(e.step, e.rank, "get_num_new_matched_tokens", "KeyError: 1", "x.py:1")
        return with_inserted(events, index + 1, raised), index + 1
    return None


@breaks("A-trace")
def a_forward_computes_tokens_that_nobody_knows(events: Events) -> tuple[Events, int] | None:
    for index, e in at(events, ev.Forward):
        assert isinstance(e, ev.Forward)
        if e.computing:
            first, *rest = e.computing
            longer = replace(first, end=first.end + 1000, sampled=[])
            return changed(events, index, replace(e, computing=[longer, *rest])), index
    return None


@breaks("A-lease")
def a_block_is_handed_out_that_somebody_holds(events: Events) -> tuple[Events, int] | None:
    for index, e in at(events, ev.Lease):
        assert isinstance(e, ev.Lease)
        again = replace(e, lease=1 << 30, position=e.position + 500)
        return with_inserted(events, index + 1, again), index + 1
    return None


@breaks("P2")
def a_job_is_submitted_twice(events: Events) -> tuple[Events, int] | None:
    for index, e in at(events, ev.Submit):
        return with_inserted(events, index + 1, e), index + 1
    return None


@breaks("P7")
def a_request_that_never_ran_is_offered(events: Events) -> tuple[Events, int] | None:
    for index, e in at(events, ev.Answer):
        assert isinstance(e, ev.Answer)
        if known := hashes_of(events[:index], e.req):
            keys = [f"{known[0]}:0"]
            offer = ev.PrepareStore(e.step, e.rank, e.req, keys, True, [], [])
            return with_inserted(events, index + 1, offer), index + 1
    return None


@breaks("P10")
def a_reset_is_refused(events: Events) -> tuple[Events, int] | None:
    return with_inserted(events, 1, ev.ResetRefused(events[0].step, events[0].rank)), 1


@breaks("P14")
def a_store_that_ended_well_is_dropped(events: Events) -> tuple[Events, int] | None:
    for index, e in at(events, ev.CompleteStore):
        assert isinstance(e, ev.CompleteStore)
        return changed(events, index, replace(e, ok=False)), index
    return None


@breaks("P15")
def more_is_loaded_than_a_cap_of_zero(events: Events) -> tuple[Events, int] | None:
    for index, e in at(events, ev.Answer):
        assert isinstance(e, ev.Answer)
        if e.tokens:
            return [
                replace(a, max_load=0) if isinstance(a, ev.Arrive) and a.req == e.req else a
                for a in events
            ], index
    return None


@breaks("P15")
def more_is_offered_than_a_cap_of_zero(events: Events) -> tuple[Events, int] | None:
    for index, e in at(events, ev.PrepareStore):
        assert isinstance(e, ev.PrepareStore)
        return [
            replace(a, max_offload=0) if isinstance(a, ev.Arrive) and a.req == e.req else a
            for a in events
        ], index
    return None


@breaks("P16")
def the_same_question_is_answered_otherwise(events: Events) -> tuple[Events, int] | None:
    for index, e in at(events, ev.Answer):
        assert isinstance(e, ev.Answer)
        if e.tokens:
            asks = (a for _, a in at(events[:index], ev.Ask) if isinstance(a, ev.Ask))
            ask = [a for a in asks if a.req == e.req][-1]
            again: Events = [ask, replace(e, tokens=e.tokens - 1)]
            return [*events[: index + 1], *again, *events[index + 1 :]], index + 2
    return None


@breaks("L1")
def a_tier_never_knows(events: Events) -> tuple[Events, int] | None:
    for index, e in at(events, ev.Answer):
        assert isinstance(e, ev.Answer)
        known = hashes_of(events[:index], e.req)
        issued = {i.job for _, i in at(events[:index], ev.Issue) if isinstance(i, ev.Issue)}
        over = {i.job for _, i in at(events[:index], ev.Report) if isinstance(i, ev.Report)}
        if not known or issued - over:
            continue
        poll: Events = [
            ev.Ask(e.step, e.rank, e.req, 0),
            ev.Probe(e.step, e.rank, e.req, f"{known[0]}:0", "retry"),
            ev.Answer(e.step, e.rank, e.req, None, False),
        ]
        polls = poll * (MOST_POLLS + 2)
        return [*events[:index], *polls, *events[index:]], index + 3 * (MOST_POLLS + 2) - 1
    return None


def hashes_of(events: Events, req: str) -> list[str]:
    """The block hashes that a request ever had."""
    known = (e for _, e in at(events, ev.Hashed) if isinstance(e, ev.Hashed))
    return [h for e in known if e.req == req for h in e.hashes]


@breaks("L2")
def the_engine_stops_while_a_store_is_in_flight(events: Events) -> tuple[Events, int] | None:
    for index, e in at(events, ev.Issue):
        return with_inserted(events, index + 1, ev.Drained(e.step, e.rank, {})), index + 1
    return None


@breaks("L3")
def an_answer_is_put_off_for_nothing(events: Events) -> tuple[Events, int] | None:
    for index, e in at(events, ev.Answer):
        assert isinstance(e, ev.Answer)
        if e.tokens == 0:
            return changed(events, index, replace(e, tokens=None)), index
    return None


@breaks("L4")
def a_key_that_nobody_stores_is_called_pending(events: Events) -> tuple[Events, int] | None:
    for index, e in at(events, ev.Probe):
        assert isinstance(e, ev.Probe)
        if e.result == "miss":
            return changed(events, index, replace(e, result="pending")), index
    return None
