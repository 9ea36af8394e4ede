"""A short soak of our scheduler inside 0.32.0, and one of a scheduler that keeps what it must not.

The lives are drawn, so what is asserted of them is what holds for every life.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kvproof.conformance.releases.folders import installed

pytestmark = pytest.mark.vllm

RELEASE = "0.32.0"

LEAKY = '''
"""Our scheduler, but for one thing: it remembers every request that it was ever asked about."""

from kvproof.impl.connector.connector import OffloadingConnector as Ours


class OffloadingConnector(Ours):
    def get_num_new_matched_tokens(self, request, num_computed_tokens):
        told = self.connector_scheduler.__dict__.setdefault("remembered", [])
        told.append(request.request_id)
        return super().get_num_new_matched_tokens(request, num_computed_tokens)
'''


def soak(*arguments: object) -> tuple[int, Any]:
    if RELEASE not in installed():
        pytest.skip(f"vLLM {RELEASE} is not installed: kvproof releases add {RELEASE}")
    ended = subprocess.run(
        [sys.executable, "-m", "kvproof.conformance.cli", "soak", "--json", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode in (0, 1), ended.stderr
    return ended.returncode, json.loads(ended.stdout)


def test_our_scheduler_holds_nothing_at_rest(tmp_path: Path) -> None:
    code, result = soak(
        "--target", f"kvproof-on-vllm:{RELEASE}", "--steps", 1500, "--life", 500, "--seed", 5,
        "--severity", "unsafe", "--out", tmp_path,
    )  # fmt: skip
    assert (code, result["finding"], result["leaks"]) == (0, None, [])
    assert result["steps"] >= 1500
    assert result["lives"] >= 2
    assert result["rests"] >= 3
    assert list(tmp_path.iterdir()) == []


def test_a_table_that_grows_is_a_leak(tmp_path: Path) -> None:
    leaky = tmp_path / "leaky.py"
    leaky.write_text(LEAKY, encoding="utf-8")
    out = tmp_path / "out"
    code, result = soak(
        "--target", f"vllm:{RELEASE}", "--scheduler", f"{leaky}:OffloadingConnector",
        "--steps", 6600, "--life", 6600, "--seed", 1, "--severity", "unsafe", "--out", out,
    )  # fmt: skip
    assert code == 1
    assert result["finding"] is None
    assert [leak["what"] for leak in result["leaks"]] == ["table remembered"]
    assert [Path(file) for file in result["files"]] == list(out.glob("leak-*.history.json"))
