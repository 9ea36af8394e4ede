"""Circumstances: faults that break one guard differ in kind; only its own id explains a finding."""

from __future__ import annotations

import pytest

from kvproof.conformance.monitor.finding import Finding
from kvproof.conformance.trace import events as ev
from kvproof.conformance.trace.events import SCHEDULER_RANK as S

from .story import FULL, WINDOW, Story, tokens


def stale(group: int = 0, ended: bool = False, again: bool = False, req: str = "a#0") -> Story:
    """A block slid away and was handed out again; then it is offered under its old position."""
    s = Story(groups=(FULL, WINDOW))
    if req.endswith("#1"):
        s.arrive(req.replace("#1", "#0"), tokens(50, 4))
        s.finish(req.replace("#1", "#0"))
    s.arrive(req, tokens(0, 12))
    s.lease(req, 0, 1, group)
    key = s.key(req, 0, group)
    if again:
        s.run((req, 0, 4, []))
        s.accept(req, (key, 0))
        s.issue(1, "store", req, (group, 1, 0, 0))
        s.reset()
    s.free(req, 1, why="slide")
    s.idle()
    if again:
        s.arrive("b#0", tokens(70, 4))
        s.lease("b#0", 0, 1, group)
        s.run(("b#0", 0, 4, [300]))
    else:
        s.lease(req, 2, 1, group)
    if ended:
        s.finish(req, 1)
    s.accept(req, (key, 0))
    s.issue(2, "store", req, (group, 1, 0, 0))
    return s


def broken(s: Story) -> Finding:
    finding = s.finding()
    assert finding is not None
    return finding


def kind(s: Story) -> str:
    finding = broken(s)
    assert (finding.id, finding.action) == ("S1", "plan_store")
    return finding.kind


def test_stores_of_stale_blocks_differ_by_group_end_and_repetition() -> None:
    assert kind(stale()) == "full, slid"
    assert kind(stale(group=1)) == "window, slid"
    assert kind(stale(group=1, ended=True)) == "window, slid, at the end"
    assert kind(stale(group=1, again=True)) == "window, slid, again"


def handed_out_unflushed(why: str) -> Story:
    """A block is given up while a store reads it, and the next owner computes into it."""
    s = Story()
    (block,) = s.compute_prompt("a#0", tokens(0, 4), first_block=1)
    s.offer(1, "a#0", [block])
    s.idle()
    if why == "finish":
        s.finish("a#0", block)
    else:
        s.free("a#0", block, why=why)
    s.arrive("b#0", tokens(40, 4))
    s.lease("b#0", 0, block)
    s.run(("b#0", 0, 4, [300]))
    return s


def test_a_change_under_a_reader_is_told_by_how_the_reader_s_block_went() -> None:
    for why, told in (("finish", "finished"), ("slide", "slid"), ("preempt", "preempted")):
        finding = broken(handed_out_unflushed(why))
        assert (finding.id, finding.kind) == ("S3", f"full, {told}")


def test_an_answer_is_told_by_the_life_of_its_request() -> None:
    s = Story()
    keys = s.stored("a#0", tokens(0, 4))
    s.arrive("b#0", tokens(0, 5))
    s.reset()
    s.ask("b#0", *keys)
    assert broken(s).kind == "full, across a reset"


def test_a_used_id_explains_what_goes_wrong_for_its_own_lives_only() -> None:
    again = broken(stale(req="a#1"))
    assert (again.id, again.explained_by) == ("S1", "P13")
    assert again.signature() != broken(stale()).signature()
    s = Story()
    s.arrive("c#0", tokens(60, 4))
    s.finish("c#0")
    s.arrive("c#1", tokens(60, 4))
    s.arrive("a#0", tokens(0, 12))
    s.lease("a#0", 0, 1)
    s.free("a#0", 1, why="slide")
    s.idle()
    s.lease("a#0", 2, 1)
    s.accept("a#0", (s.key("a#0", 0), 0))
    s.issue(2, "store", "a#0", (0, 1, 0, 0))
    finding = broken(s)
    assert (finding.id, finding.explained_by) == ("S1", None)


def test_the_former_life_of_a_used_id_is_explained_too() -> None:
    s = Story()
    (block,) = s.compute_prompt("a#0", tokens(0, 4), first_block=1)
    s.offer(1, "a#0", [block])
    s.idle()
    s.finish("a#0", block)
    s.arrive("a#1", tokens(40, 4))
    s.lease("a#1", 0, block)
    s.run(("a#1", 0, 4, [300]))
    finding = broken(s)
    assert (finding.id, finding.explained_by) == ("S3", "P13")


def a_job_that_outlives(req: str) -> Finding:
    """A job of a request that ended windows ago is reported, and taking note of that raises."""
    s = Story()
    (block,) = s.compute_prompt("a#0", tokens(0, 4), first_block=1)
    s.offer(1, "a#0", [block])
    s.idle()
    s.finish("a#0", block)
    s.arrive(req, tokens(40, 4))
    s.finish(req)
    s.idle()
    s.arrive("c#0", tokens(60, 4))
    s.submit(1)
    s.done(1)
    s.report(1)
    s.emit(ev.Raised(s.step, S, "update_connector_output", "KeyError: 'a'", "x.py:1"))
    finding = s.finding()
    assert finding is not None
    return finding


def test_a_raise_about_a_job_is_explained_by_the_id_of_its_own_request() -> None:
    again = a_job_that_outlives("a#1")
    assert (again.id, again.explained_by) == ("P11", "P13")
    other = a_job_that_outlives("b#0")
    assert (other.id, other.explained_by) == ("P11", None)


@pytest.mark.parametrize(
    ("group", "told"), [(0, "prefix"), (1, "")], ids=["of a prefix", "of a window"]
)
def test_a_wait_in_vain_is_told_by_what_the_lookup_found_on_its_way(group: int, told: str) -> None:
    """One group's first chunk is being stored, and nothing of the other: no boundary is served."""
    s = Story(groups=(FULL, WINDOW))
    s.arrive("a#0", tokens(0, 4))
    for number in (0, 1):
        s.lease("a#0", 0, 1 + number, number)
    s.run(("a#0", 0, 4, [999]))
    key = s.key("a#0", 0, group)
    s.accept("a#0", (key, 0))
    s.issue(1, "store", "a#0", (group, 1 + group, 0, 0))
    s.idle()
    s.arrive("b#0", tokens(0, 5))
    s.question("b#0")
    s.probe("b#0", key, "pending")
    s.probe("b#0", s.key("a#0", 0, 1 - group), "miss")
    s.answer("b#0", None)
    finding = broken(s)
    assert (finding.id, finding.action, finding.kind) == ("L3", "defer", told)
