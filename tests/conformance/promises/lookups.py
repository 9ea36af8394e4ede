"""Promises about lookups, and about coming to rest."""

from __future__ import annotations

from kvproof.model.contract import Job, Residency
from tests.conformance.promises.begins import looked_up
from tests.conformance.promises.table import Move, breaks
from tests.model.scene import R, Scene


@breaks("S5")
def an_answer_of_an_earlier_lookup_is_loaded(s: Scene) -> Move:
    s.stored()
    s.ask(R)
    s.hit(R, Residency(1))
    s.ask(R)
    s.answer(R, 0, 4, 8, 8)
    s.open_load(Job(101))
    return s.pin, Job(101), Residency(1)


@breaks("S5")
def an_answer_of_before_a_preemption_is_loaded(s: Scene) -> Move:
    s.stored()
    s.ask(R)
    s.hit(R, Residency(1))
    s.preempt(R)
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
