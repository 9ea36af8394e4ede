"""What all tests share: Hypothesis settings, the GPU marker, and a way to call the command line."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import hypothesis
import pytest

from kvproof.conformance.cli import main

# Repeatable, and without a clock: a shared machine is slow at times.
hypothesis.settings.register_profile("tests", deadline=None, derandomize=True)
hypothesis.settings.load_profile("tests")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") and not _has_gpu():
        pytest.skip("no CUDA device")


@functools.cache
def _has_gpu() -> bool:
    try:
        import torch
    except ModuleNotFoundError:
        return False
    return bool(torch.cuda.is_available())


@dataclass(frozen=True)
class Ended:
    """How one call of the command line ended."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


Kvproof = Callable[..., Ended]


@pytest.fixture
def kvproof(capfd: pytest.CaptureFixture[str]) -> Kvproof:
    """Call the command line in this process: ``kvproof("check-trace", path)``."""

    def call(*arguments: object) -> Ended:
        capfd.readouterr()
        code = main([str(argument) for argument in arguments])
        return Ended(code, *capfd.readouterr())

    return call


@pytest.fixture
def refuses(kvproof: Kvproof) -> Callable[..., str]:
    """Call the command line, insist on a clean refusal, and return its one line."""

    def call(*arguments: object) -> str:
        ended = kvproof(*arguments)
        assert ended.code == 2, ended
        assert ended.out == ""
        assert ended.err.startswith("kvproof: ")
        assert ended.err.count("\n") == 1
        assert ended.err.endswith("\n")
        assert "Traceback" not in ended.err
        assert "internal error" not in ended.err
        return ended.err.removeprefix("kvproof: ").rstrip()

    return call
