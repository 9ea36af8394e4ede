"""Known cases: what is one of them, and what only looks like it."""

from __future__ import annotations

import msgspec
import pytest

from kvproof.conformance.engines.base import Abort, GroupSetup, Move, ResetCache, Setup, Step
from kvproof.conformance.fuzz.campaign import Found
from kvproof.conformance.matrix.cases import CASES, recognised

from .matrix_stub import found as made

FULL = Setup((GroupSetup("full", 4),))
WINDOW = Setup((GroupSetup("full", 4), GroupSetup("window", 4, 9)))
CHUNKS = Setup((GroupSetup("full", 4),), blocks_per_chunk=4)
RESET = ResetCache()


def cases(
    id: str,
    action: str = "",
    explained_by: str | None = None,
    setup: Setup = FULL,
    moves: tuple[Move, ...] = (),
    kind: str = "",
    facts: dict[str, str] | None = None,
) -> list[str]:
    one: Found = made(id, action, 1.0, explained_by=explained_by, kind=kind)
    finding = msgspec.structs.replace(one.finding, facts=facts or {})
    return recognised(finding, msgspec.structs.replace(one.history, setup=setup, moves=moves))


def test_ids_are_those_of_the_table() -> None:
    assert [case.id for case in CASES] == [f"K{number}" for number in range(1, 11)]


def test_k1_blocks_that_slid_away_of_a_running_request() -> None:
    assert cases("S1", "plan_store", setup=WINDOW, kind="window, slid") == ["K1"]
    assert cases("S1", "plan_store", setup=WINDOW, kind="window, slid, at the end") == []
    assert cases("S1", "plan_store", setup=WINDOW, kind="window, slid, again") == []
    assert cases("S1", "plan_store", "P13", setup=WINDOW, kind="window, slid") == []
    assert cases("S1", "plan_store", kind="window, slid") == []


@pytest.mark.parametrize(
    ("lemma", "case"), [("M1", "K2"), ("M2", "K4"), ("S5", "K5"), ("S9", "K10")]
)
def test_calls_that_raise_in_the_state_of_a_case(lemma: str, case: str) -> None:
    assert cases("P11", "crash", lemma, setup=WINDOW) == [case]


def test_k3_only_of_a_request_that_was_never_scheduled() -> None:
    never = {"never scheduled": "a#0"}
    assert cases("P11", "crash", "P7", moves=(Abort("a"),), facts=never) == ["K3"]
    assert cases("P11", "crash", "P7", moves=(Abort("a"),)) == []


def test_k4_waiting_for_ever_only_after_a_reset() -> None:
    assert cases("L1", "stall", moves=(RESET, Step())) == ["K4"]
    assert cases("L1", "stall", moves=(ResetCache(connector=False), Step())) == []


def test_k5_and_k9_of_a_window_group() -> None:
    assert cases("S5", "pin", setup=WINDOW, kind="window") == ["K5"]
    assert cases("S5", "pin", setup=WINDOW, kind="full") == []
    assert cases("L3", "defer", setup=WINDOW) == ["K9"]
    assert cases("L3", "defer") == []


@pytest.mark.parametrize("why", ["forbidden", "drafts", "in part", "prefix", "one more"])
def test_k9_only_when_a_gap_is_all_that_is_to_blame(why: str) -> None:
    assert cases("L3", "defer", setup=WINDOW, kind=why) == []
    assert cases("L3", "defer", setup=WINDOW, kind=f"across a reset, {why}") == []


def test_k6_several_blocks_a_chunk_and_a_store() -> None:
    assert cases("S4", "plan_store", setup=CHUNKS) == ["K6"]
    assert cases("S4", "plan_store") == []
    assert cases("S4", "plan_load", setup=CHUNKS) == []


def test_k7_two_resets_with_no_step_between_them() -> None:
    assert cases("P11", "crash", "P10", moves=(RESET, RESET)) == ["K7"]
    assert cases("P11", "crash", "P10", moves=(RESET, Step(), RESET)) == []


def test_k8_what_another_connector_fills() -> None:
    one = made("S3", "compute", 1.0, kind="full, finished, filled")
    filled = msgspec.structs.replace(one.finding, event="filled")
    assert recognised(filled, one.history) == ["K8"]
    assert recognised(one.finding, one.history) == []


def test_k10_whatever_breaks_s9() -> None:
    assert cases("S9", "plan_load") == ["K10"]
