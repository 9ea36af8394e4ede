"""The target ``vllm:<release>``: whatever vLLM is importable in this process."""

from __future__ import annotations

from kvproof.conformance.engines.base import Emit, Setup, Unsupported
from kvproof.conformance.engines.vllm.engine import VllmEngine
from kvproof.conformance.engines.vllm.features import detect
from kvproof.conformance.engines.vllm.refusal import refusal
from kvproof.conformance.engines.vllm.release import load


class VllmTarget:
    """Implements ``Target``. Making one imports vLLM (seconds); ``start`` takes milliseconds.

    Raises:
        UsageError: no vLLM is importable, or this one cannot be driven.
    """

    def __init__(self) -> None:
        self._release = load()
        self._features = detect(self._release)
        self.name = f"vllm:{self._release.version}"

    def supports(self, setup: Setup) -> str | None:
        """None, or one line saying why this release cannot run ``setup``."""
        return refusal(setup, self._features)

    def start(self, setup: Setup, emit: Emit) -> VllmEngine:
        """A fresh engine.

        Raises:
            Unsupported: ``supports`` has a reason, or the release refuses while it is set up.
        """
        reason = self.supports(setup)
        if reason is not None:
            raise Unsupported(reason)
        return VllmEngine(self._release, self._features, self.name, setup, emit)
