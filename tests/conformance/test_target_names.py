"""Names of targets: what they stand for, and that a history's name leads back to its target."""

from __future__ import annotations

import pytest

from kvproof.conformance.engines.names import OURS, TargetName, given_in, parse
from kvproof.conformance.errors import UsageError


@pytest.mark.parametrize(
    ("name", "release", "given"),
    [
        ("vllm:0.32.0", "0.32.0", None),
        ("vllm:0.32.0+a.b:C", "0.32.0", "a.b:C"),
        ("vllm:0.32.0+some/file.py:C.D", "0.32.0", "some/file.py:C.D"),
        ("kvproof-on-vllm:0.32.0", "0.32.0", OURS),
    ],
)
def test_a_name_leads_to_a_target_and_back(name: str, release: str, given: str | None) -> None:
    assert parse(name) == TargetName(release, given)
    assert str(parse(name)) == name
    assert given_in(name) == given


def test_our_connector_given_by_hand_is_the_same_target() -> None:
    assert str(TargetName("0.32.0", OURS)) == "kvproof-on-vllm:0.32.0"
    assert parse(f"vllm:0.32.0+{OURS}") == parse("kvproof-on-vllm:0.32.0")


@pytest.mark.parametrize("name", ["kvproof-on-vllm", "kvproof-on-vllm:0.32.0+a.b:C", "vllm", "x:1"])
def test_anything_else_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(UsageError, match=f"unknown target '{name.replace('+', '.')}': expected"):
        parse(name)
    assert given_in(name) is None
