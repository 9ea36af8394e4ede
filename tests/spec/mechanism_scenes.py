"""Small runs of the mechanism: what its updates make possible, and what they forbid.

A scene makes moves on a fresh machine and looks at what comes of them. One worker; lease n is of
block n % 10, residency n lies in slot n % 10, job n runs in lane n // 100; chunk 6 has two blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kvproof.model.broken import Broken

Machine = Any
Scene = Callable[[Machine], None]


def prepare(m: Machine) -> None:
    """The attributes of everything that a scene names."""
    for n in range(40):
        m.lease_block[n], m.lease_position[n], m.lease_seq[n] = n % 10, n % 10, n
        m.residency_slot[n], m.residency_key[n], m.residency_seq[n] = n % 10, n % 10, n
        m.slot_exists[n % 10] = True
        m.place_residency[n], m.place_position[n], m.place_content[n] = n, n % 10, 7
        m.place_offset[n], m.chunk_blocks[n] = 0, 1
        m.piece_lease[n], m.piece_place[n] = n, n
    # Chunk 6 has place 7 as well, behind place 6.
    m.place_residency[7], m.place_offset[7], m.chunk_blocks[6] = 6, 1, 2
    for n in (*range(10), *range(100, 110)):
        m.job_request[n], m.job_lane[n] = 0, n // 100


def refused(move: Callable[[], None], action: str, index: int) -> None:
    """The mechanism does not allow the move: guard ``index`` of ``action`` is broken."""
    try:
        move()
    except Broken as broken:
        assert (broken.kind, broken.action, broken.index) == ("assume", action, index)
    else:
        raise AssertionError(f"{action} is allowed")


def enter(m: Machine, r: int, *leases: int) -> None:
    """A request arrives and is given blocks, whose content the step computes."""
    m.arrive(r)
    m.tier_new(r)
    for lease in leases:
        m.lease(r, lease)
        m.foresee(lease, 7, m.now)


def store(m: Machine, j: int, x: int, *pieces: int) -> None:
    """One store of one chunk."""
    m.admit(x)
    m.issue_store(j)
    m.make(j, x)
    for p in pieces:
        m.piece_job[p] = j
        m.plan_store(p)


def execute(m: Machine, *leases: int) -> None:
    """The window closes, and the worker computes what was foreseen."""
    m.close_window()
    m.launch(0)
    m.clear(0)
    m.wait_all(0)
    for lease in leases:
        m.compute(0, lease, 7)


def run(m: Machine, j: int, *pieces: int, ok: bool = True) -> None:
    """A copy from its start to its report."""
    for p in pieces:
        (m.start_store if j in m.store else m.start_load)(0, p)
    m.submit(0, j)
    if ok:
        for p in pieces:
            m.land(0, p)
        m.end(0, j)
    else:
        m.fail(0, j)


def work_off(m: Machine, j: int, x: int) -> None:
    """The report of a store, and what it comes to."""
    m.report(0, j)
    m.publish(j, x)
    m.end_job(j)


def stored(m: Machine, j: int = 1, x: int = 1) -> None:
    """A request computes a block and stores it."""
    enter(m, 0, x)
    m.decide()
    store(m, j, x, x)
    execute(m, x)
    m.decide()
    m.close_window()
    m.launch(0)
    run(m, j, x)
    m.clear(0)
    m.wait_all(0)
    work_off(m, j, x)


def rest(m: Machine) -> None:
    """Nothing is left."""
    m.drained(0)


# --- scenes --------------------------------------------------------------------------------------


def a_block_is_handed_out_under_a_store_which_is_flushed_first(m: Machine) -> None:
    enter(m, 0, 1)
    m.decide()
    store(m, 1, 1, 1)
    assert set(m.fence) == {(1, 1)}
    execute(m, 1)
    # The request ends, and its block goes to somebody else, while the store has not begun.
    m.finish(0)
    m.free(0, 1)
    enter(m, 2, 11)
    refused(m.decide, "decide", 0)
    m.flush(1)
    m.decide()
    m.tier_finished(0)
    m.close_window()
    m.launch(0)
    m.start_store(0, 1)
    m.submit(0, 1)
    refused(lambda: m.clear(0), "clear", 0)
    refused(lambda: m.wait_all(0), "wait_all", 0)
    m.land(0, 1)
    m.end(0, 1)
    m.clear(0)
    m.waited(0, 1)
    m.wait_all(0)
    m.compute(0, 11, 7)
    work_off(m, 1, 1)
    assert (set(m.fence), set(m.to_complete), m.ready, m.listed) == (set(), set(), {1}, set())


def what_was_handed_out_last_time_flushes_nothing(m: Machine) -> None:
    enter(m, 0, 1)
    m.decide()
    store(m, 1, 1, 1)
    execute(m, 1)
    m.decide()
    assert set(m.flush_at) == set()


def an_ended_request_is_stored_from_the_table_that_it_ended_with(m: Machine) -> None:
    enter(m, 0, 1)
    m.decide()
    execute(m, 1)
    m.finish(0)
    m.free(0, 1)
    enter(m, 2, 11)
    m.decide()
    m.name_prefix(7, 7)
    m.tier_call(0)
    m.admit(1)
    m.tier_finished(0)
    m.issue_store(1)
    m.make(1, 1)
    m.piece_job[1] = 1
    refused(lambda: m.plan_store(1), "plan_store", 2)
    m.flush(1)
    m.plan_store(1)
    m.close_window()
    m.launch(0)
    refused(lambda: m.start_store(0, 1), "start_store", 1)
    m.clear(0)
    run(m, 1, 1)
    m.waited(0, 1)
    m.wait_all(0)
    m.compute(0, 11, 7)
    work_off(m, 1, 1)
    m.finish(2)
    refused(lambda: m.drained(0), "drained", 1)
    m.free(2, 11)
    m.decide()
    m.tier_finished(2)
    m.close_window()
    rest(m)


def a_preempted_request_is_not_stored(m: Machine) -> None:
    enter(m, 0, 1)
    m.decide()
    execute(m, 1)
    m.preempt(0)
    m.free(0, 1)
    m.decide()
    m.admit(1)
    m.issue_store(1)
    m.make(1, 1)
    m.piece_job[1] = 1
    refused(lambda: m.plan_store(1), "plan_store", 1)


def what_is_shared_is_stored(m: Machine) -> None:
    enter(m, 0, 1)
    m.decide()
    execute(m, 1)
    m.arrive(3)
    m.tier_new(3)
    m.share(3, 1)
    m.schedule_to(3, 4)
    m.offer(3, 1, 4, 9)
    m.job_request[1] = 3
    m.decide()
    store(m, 1, 1, 1)
    m.offer_is_computed(3, 4)
    m.close_window()
    refused(lambda: m.offer_is_computed(3, 4), "offer_is_computed", 0)


def a_chunk_is_whole_before_the_window_closes(m: Machine) -> None:
    enter(m, 0, 6, 7)
    m.decide()
    store(m, 6, 6, 6)
    refused(m.close_window, "close_window", 1)
    m.piece_job[7] = 6
    m.plan_store(7)
    execute(m, 6, 7)
    m.decide()
    m.close_window()
    m.launch(0)
    run(m, 6, 6, 7)
    m.clear(0)
    m.wait_all(0)
    work_off(m, 6, 6)
    # All of it is loaded, from its first block on.
    m.piece_job[16], m.piece_lease[16], m.piece_place[16] = 2, 16, 6
    m.piece_job[17], m.piece_lease[17], m.piece_place[17] = 2, 17, 7
    m.free(0, 6)
    m.free(0, 7)
    load(m, 2, 6, (16, 6), (17, 7))


def load(m: Machine, j: int, x: int, *targets: tuple[int, int]) -> None:
    """A request of its own loads a chunk: from question to plan."""
    r = 20 + j
    m.job_request[j] = r
    m.arrive(r)
    m.tier_new(r)
    m.ask(r)
    m.look(r)
    m.hit(r, x)
    m.answer(r, 0, 1, 9, 9)
    for lease, _ in targets:
        m.lease(r, lease)
    m.open_load(j)
    m.pin(j, x)
    for lease, q in targets:
        m.take(r, q, lease)
    m.decide()
    m.issue_load(j)
    for lease, _ in targets:
        m.plan_load(lease)


def what_was_loaded_counts_as_computed(m: Machine) -> None:
    stored(m)
    m.free(0, 1)
    m.piece_job[11], m.piece_lease[11], m.piece_place[11] = 2, 11, 1
    load(m, 2, 1, (11, 1))
    m.close_window()
    m.launch(0)
    refused(lambda: m.start_load(0, 11), "start_load", 1)
    m.clear(0)
    m.wait_all(0)
    run(m, 2, 11)
    m.report(0, 2)
    m.unpin(2, 1)
    m.end_job(2)
    m.settle(11)
    # Stored again, from the block that it was loaded to.
    m.decide()
    m.evict(1)
    m.piece_lease[21], m.piece_place[21] = 11, 21
    m.job_request[3] = 22
    store(m, 3, 21, 21)


def what_failed_is_not_asked_for_again(m: Machine) -> None:
    stored(m)
    m.free(0, 1)
    m.piece_job[11], m.piece_lease[11], m.piece_place[11] = 2, 11, 1
    load(m, 2, 1, (11, 1))
    execute(m)
    run(m, 2, 11, ok=False)
    m.report(0, 2)
    refused(lambda: m.unpin(2, 1), "unpin", 1)
    m.mark_failed(2, 1)
    m.unpin(2, 1)
    m.end_job(2)
    m.release(11)
    m.ask(22)
    m.look(22)
    refused(lambda: m.hit(22, 1), "hit", 0)


def a_reset_kills_what_is_under_way(m: Machine) -> None:
    enter(m, 0, 1)
    m.decide()
    store(m, 1, 1, 1)
    execute(m, 1)
    m.reset()
    refused(m.decide, "decide", 1)
    m.flush(1)
    m.decide()
    m.close_window()
    m.launch(0)
    run(m, 1, 1)
    m.clear(0)
    m.wait_all(0)
    m.report(0, 1)
    assert (m.listed, m.ready) == (set(), set())


def a_load_that_no_worker_has_is_given_up(m: Machine) -> None:
    stored(m)
    m.ask(0)
    m.look(0)
    m.hit(0, 1)
    m.answer(0, 0, 1, 9, 9)
    m.open_load(2)
    m.pin(2, 1)
    m.reset()
    refused(m.decide, "decide", 1)
    m.give_up(2)
    m.decide()


def keys_are_made_of_the_hashes_that_are_known(m: Machine) -> None:
    refused(lambda: m.use_key(7, 7), "use_key", 0)
    m.name_prefix(7, 7)
    m.use_key(7, 7)


SCENES: tuple[Scene, ...] = (
    a_block_is_handed_out_under_a_store_which_is_flushed_first,
    what_was_handed_out_last_time_flushes_nothing,
    an_ended_request_is_stored_from_the_table_that_it_ended_with,
    a_preempted_request_is_not_stored,
    what_is_shared_is_stored,
    a_chunk_is_whole_before_the_window_closes,
    what_was_loaded_counts_as_computed,
    what_failed_is_not_asked_for_again,
    a_reset_kills_what_is_under_way,
    a_load_that_no_worker_has_is_given_up,
    keys_are_made_of_the_hashes_that_are_known,
)
