"""A request is given blocks to load for a window's chunk that its lookup did not look at (S5)."""

from __future__ import annotations

from kvproof.conformance.monitor.finding import Finding
from kvproof.conformance.trace import events as ev
from kvproof.conformance.trace.events import SCHEDULER_RANK as S

from .story import Story, tokens

WINDOW = ev.GroupGeometry("window", 4, 4)


def raises_at(boundary: int, *hits: int) -> Finding:
    """Chunks ``hits`` are found, ``boundary`` tokens are to be loaded, and taking note raises.

    The window ends three tokens before the boundary: of two chunks where the boundary lies in the
    midst of one.
    """
    s = Story(groups=(WINDOW,))
    keys = s.stored("a#0", tokens(0, 8))
    s.arrive("b#0", tokens(0, 9))
    s.question("b#0")
    for chunk in hits:
        s.probe("b#0", keys[chunk], "hit")
    s.answer("b#0", boundary)
    s.emit(ev.Allocated(s.step, S, "b#0", boundary))
    s.emit(ev.Raised(s.step, S, "update_state_after_alloc", "AssertionError", "x.py:1", "b#0"))
    finding = s.finding()
    assert finding is not None
    return finding


def test_the_window_of_a_boundary_in_mid_chunk_reaches_into_a_chunk_that_was_not_seen() -> None:
    unseen = raises_at(6, 1)
    assert (unseen.id, unseen.explained_by) == ("P11", "S5")
    assert unseen.facts["request"] == "b#0"


def test_a_raise_is_unexplained_where_all_that_is_needed_was_found() -> None:
    assert (raises_at(6, 0, 1).id, raises_at(6, 0, 1).explained_by) == ("P11", None)
    assert (raises_at(8, 1).id, raises_at(8, 1).explained_by) == ("P11", None)
