"""Promises about lookups, and about coming to rest."""

from __future__ import annotations

from kvproof.model.contract import Job, Residency
from tests.conformance.promises.begins import failed_store, looked_up
from tests.conformance.promises.table import Move, breaks, holds
from tests.model.scene import OTHER, R, Scene


@breaks("P13")
def a_key_is_looked_up_for_nobody(s: Scene) -> Move:
    return s.look, R


@breaks("S5")
def an_answer_of_an_earlier_lookup_is_loaded(s: Scene) -> Move:
    s.stored()
    s.ask(R)
    s.hit(R, Residency(1))
    s.ask(R)
    s.look(R)
    s.answer(R, 0, 4, 8, 8)
    s.open_load(Job(101))
    return s.pin, Job(101), Residency(1)


@breaks("S5")
def an_answer_is_loaded_after_the_request_has_ended(s: Scene) -> Move:
    s.stored()
    looked_up(s)
    s.open_load(Job(101))
    s.finish(R)
    return s.pin, Job(101), Residency(1)


@breaks("A-stall")
def a_lookup_that_was_asked_again_puts_nothing_off(s: Scene) -> Move:
    s.arrive(R)
    s.defer(R, 1, 0, 1, 0)
    s.ask(R)
    return (s.stall,)


@breaks("A-stall")
def a_lookup_of_before_a_preemption_puts_nothing_off(s: Scene) -> Move:
    s.arrive(R)
    s.defer(R, 1, 0, 1, 0)
    s.preempt(R)
    return (s.stall,)


@breaks("L2")
def a_lookup_of_a_request_that_has_ended_puts_nothing_off(s: Scene) -> Move:
    s.arrive(R)
    s.defer(R, 1, 0, 1, 0)
    s.finish(R)
    return (s.stall,)


@breaks("A-stall")
def the_engine_stalls_while_a_copy_goes_on(s: Scene) -> Move:
    s.computed()
    s.issued_store()
    s.finish(R)
    return (s.stall,)


@breaks("L2")
def nothing_is_left_to_do_but_a_report(s: Scene) -> Move:
    s.computed()
    s.issued_store()
    return s.drained, 0


@breaks("P12")
def a_store_is_left_uncompleted(s: Scene) -> Move:
    s.computed()
    p = s.issued_store()
    s.step()
    s.carried_out(p)
    return s.drained, 0


@breaks("P12")
def a_pin_is_left(s: Scene) -> Move:
    s.stored()
    s.carried_out(s.issued_load())
    return s.drained, 0


@breaks("P12")
def the_scheduler_keeps_something(s: Scene) -> Move:
    return s.drained, 1


@holds
def what_is_loaded_is_looked_up_after_the_answer(s: Scene) -> None:
    s.stored()
    s.ask(R)
    s.answer(R, 0, 4, 8, 8)
    s.look(R)
    s.hit(R, Residency(1))
    s.open_load(Job(101))
    s.pin(Job(101), Residency(1))


@breaks("S5")
def an_answer_of_before_a_preemption_is_loaded(s: Scene) -> Move:
    s.stored()
    looked_up(s)
    s.preempt(R)
    s.open_load(Job(101))
    return s.pin, Job(101), Residency(1)


@breaks("S6")
def a_chunk_is_found_that_is_still_being_stored(s: Scene) -> Move:
    s.computed()
    s.issued_store()
    return s.hit, R, Residency(1)


# --- the same question ---------------------------------------------------------------------------


@breaks("P16")
def the_same_question_has_another_answer(s: Scene) -> Move:
    s.arrive(R)
    s.answer(R, 0, 4, 8, 8)
    return s.answer, R, 0, 0, 8, 8


@holds
def another_question_has_another_answer(s: Scene) -> None:
    s.arrive(R)
    s.answer(R, 0, 4, 8, 8)
    s.answer(R, 4, 0, 8, 8)


@holds
def an_answer_may_change_when_a_slot_is_handed_out(s: Scene) -> None:
    s.arrive(R)
    s.answer(R, 0, 4, 8, 8)
    s.admit(Residency(1))
    s.answer(R, 0, 0, 8, 8)


@holds
def an_answer_may_change_when_a_store_is_completed(s: Scene) -> None:
    s.computed()
    p = s.issued_store()
    s.step()
    s.carried_out(p)
    s.answer(R, 0, 0, 8, 8)
    s.publish(Job(1), Residency(1))
    s.answer(R, 0, 4, 8, 8)


@holds
def an_answer_may_change_when_a_chunk_is_dropped(s: Scene) -> None:
    failed_store(s)
    s.answer(R, 0, 4, 8, 8)
    s.drop(Job(1), Residency(1))
    s.answer(R, 0, 0, 8, 8)


@holds
def an_answer_may_change_when_a_chunk_is_evicted(s: Scene) -> None:
    s.stored()
    s.answer(R, 0, 4, 8, 8)
    s.evict(Residency(1))
    s.answer(R, 0, 0, 8, 8)


@holds
def an_answer_may_change_at_a_reset(s: Scene) -> None:
    s.stored()
    s.answer(R, 0, 4, 8, 8)
    s.reset()
    s.answer(R, 0, 0, 8, 8)


@holds
def an_answer_may_change_at_a_preemption(s: Scene) -> None:
    s.arrive(R)
    s.answer(R, 0, 4, 8, 8)
    s.preempt(R)
    s.answer(R, 0, 0, 8, 8)


@holds
def an_answer_may_change_when_a_session_goes_on(s: Scene) -> None:
    s.arrive(R)
    s.answer(R, 0, 4, 8, 8)
    s.extend(R)
    s.answer(R, 0, 0, 8, 8)


# --- sessions ------------------------------------------------------------------------------------


@breaks("A-extend")
def a_session_goes_on_that_has_ended(s: Scene) -> Move:
    return s.extend, R


@breaks("S5")
def an_answer_of_before_a_session_went_on_is_loaded(s: Scene) -> Move:
    s.stored()
    looked_up(s)
    s.extend(R)
    s.open_load(Job(101))
    return s.pin, Job(101), Residency(1)


@breaks("A-stall")
def a_lookup_of_before_a_session_went_on_puts_nothing_off(s: Scene) -> Move:
    s.arrive(R)
    s.defer(R, 1, 0, 1, 0)
    s.extend(R)
    return (s.stall,)


@holds
def a_session_that_goes_on_asks_nothing(s: Scene) -> None:
    s.arrive(R)
    s.ask(R)
    s.extend(R)
    s.open_load(Job(101))


# --- waiting -------------------------------------------------------------------------------------


@breaks("P13")
def a_key_is_waited_for_by_nobody(s: Scene) -> Move:
    s.computed()
    s.issued_store()
    return s.await_key, OTHER, Residency(1)


@breaks("L4")
def a_key_of_before_a_reset_is_waited_for(s: Scene) -> Move:
    s.computed()
    s.issued_store()
    s.reset()
    return s.await_key, R, Residency(1)


@breaks("L1")
def a_lookup_is_put_off_once_too_often(s: Scene) -> Move:
    s.arrive(R)
    for _ in range(3):
        s.defer(R, 2, 0, 1, 0)
    return s.defer, R, 2, 0, 1, 0


@holds
def a_lookup_may_be_put_off_while_a_job_of_then_goes_on(s: Scene) -> None:
    s.computed()
    s.issued_store()
    s.defer(R, 0, 0, 1, 0)
    s.defer(R, 0, 0, 1, 0)


@holds
def a_lookup_that_is_put_off_asks_nothing(s: Scene) -> None:
    s.arrive(R)
    s.ask(R)
    s.defer(R, 1, 0, 1, 0)
    s.open_load(Job(101))


@holds
def a_preempted_request_is_not_being_asked_about(s: Scene) -> None:
    s.stored()
    s.ask(R)
    s.preempt(R)
    s.open_load(Job(101))
