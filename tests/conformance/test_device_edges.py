"""Every edge is necessary, all of them together are enough, and a race is told by its two sides."""

from __future__ import annotations

import json
import sys

import pytest

from kvproof.conformance.device.__main__ import main
from kvproof.conformance.device.edges import WITNESSES, random_history, show
from kvproof.conformance.device.without import Care
from kvproof.impl.transfer.runtime import Edge

# edge -> (earlier access, later access, bytes)
RACES = {
    Edge.STORE_AFTER_COMPUTE: ("the model's write of block 0 writes", "store 1 reads", "KV cache"),
    Edge.LOAD_AFTER_COMPUTE: ("the model's write of block 0 writes", "load 1 writes", "KV cache"),
    Edge.STORE_AFTER_STORE: ("store 1 writes", "store 2 writes", "tier"),
    Edge.LOAD_AFTER_LOAD: ("load 1 writes", "load 2 writes", "KV cache"),
    Edge.STORE_AFTER_LOAD_OF_SLOT: ("load 1 reads", "store 1 writes", "tier"),
    Edge.STORE_AFTER_LOAD_OF_BLOCK: ("load 1 writes", "store 1 reads", "KV cache"),
    Edge.LOAD_AFTER_STORE_OF_SLOT: ("store 1 writes", "load 1 reads", "tier"),
    Edge.LOAD_AFTER_STORE_OF_BLOCK: ("store 1 reads", "load 1 writes", "KV cache"),
    Care.READ_IN_ORDER: ("store 1 writes", "load 1 reads", "tier"),
    Care.FLUSH_OF_STORE: ("store 1 reads", "the model's write of block 0 writes", "KV cache"),
    Care.FLUSH_OF_LOAD: ("load 1 writes", "the model's write of block 0 writes", "KV cache"),
    Care.TOLD_OF_LOAD: ("load 1 writes", "the model's read of block 0 reads", "KV cache"),
    Care.TOLD_OF_STORE: ("store 1 writes", "the host's read of slot 0 reads", "tier"),
}


@pytest.mark.parametrize("edge", list(RACES), ids=lambda edge: edge.name)
def test_without_an_edge_there_is_one_race_and_some_order_loses_bytes(edge: Edge | Care) -> None:
    earlier, later, where = RACES[edge]
    end_of = earlier.rsplit(" ", 1)[0]
    shown = show(edge)
    assert shown.races == [
        f"{earlier} and {later} 4 bytes of the {where} from 0;"
        f" missing: the end of {end_of} before {later}"
    ]
    assert 0 < shown.lost < shown.orders
    assert shown.orders_with > 0


def test_descriptors_that_are_written_too_early_send_a_copy_elsewhere() -> None:
    shown = show(Care.DESCRIPTORS)
    assert shown.races == [
        "store 1 reads and the host, for store 2, writes 8 bytes of descriptors from 504;"
        " missing: the end of store 1 before the host, for store 2, writes"
    ]
    assert 0 < shown.lost < shown.orders


def test_every_edge_of_the_engine_has_a_witness() -> None:
    assert set(WITNESSES) == {*Edge, *Care} == {*RACES, Care.DESCRIPTORS}


def test_with_all_edges_random_histories_have_no_race_and_the_right_bytes() -> None:
    assert [seed for seed in range(400) if random_history(seed)] == []


@pytest.mark.parametrize("edge", list(WITNESSES), ids=lambda edge: edge.name)
def test_random_histories_find_each_missing_edge(edge: Edge | Care) -> None:
    assert any(random_history(seed, edge) for seed in range(100))


def test_the_script_tells_every_edge(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json", "--seeds", "20"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["edge"] for one in told["edges"]] == [edge.name for edge in WITNESSES]
    assert (told["seeds"], told["complete"]) == (20, {})


def test_the_script_fails_where_an_edge_can_be_spared(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    harmless = WITNESSES[Edge.LOAD_AFTER_LOAD]
    only = {Edge.STORE_AFTER_STORE: harmless}
    for module in ("__main__", "edges"):
        monkeypatch.setattr(sys.modules[f"kvproof.conformance.device.{module}"], "WITNESSES", only)
    assert main(["--seeds", "1"]) == 1
    assert capsys.readouterr().err == "nothing is lost without STORE_AFTER_STORE\n"
