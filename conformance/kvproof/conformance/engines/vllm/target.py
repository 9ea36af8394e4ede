"""The target ``vllm:<release>``: whatever vLLM is importable in this process."""

from __future__ import annotations

from kvproof.conformance.engines.base import Emit, GroupSetup, Setup, Unsupported
from kvproof.conformance.engines.names import TargetName
from kvproof.conformance.engines.vllm.engine import VllmEngine
from kvproof.conformance.engines.vllm.features import detect
from kvproof.conformance.engines.vllm.given import Given
from kvproof.conformance.engines.vllm.refusal import refusal
from kvproof.conformance.engines.vllm.release import load, place
from kvproof.conformance.errors import UsageError


class VllmTarget:
    """Implements ``Target``. Making one imports vLLM (seconds); ``start`` takes milliseconds.

    ``given`` names a class that takes the place of the release's own scheduler, connector or spec:
    ``package.module:Class`` or ``file.py:Class``. With ``tells_caught``, what a scheduler catches
    of its own faults, to go on without its tier, is told as if it had been raised.

    Raises:
        UsageError: no vLLM is importable, or this one cannot be driven; or the given class is not
            there, or cannot be put in place.
    """

    def __init__(self, given: str | None = None, tells_caught: bool = False) -> None:
        self._release = load()
        self._features = detect(self._release)
        self._tells_caught = tells_caught
        self._given = Given(self._release, given) if given is not None else None
        self.name = str(TargetName(self._release.version, given))
        if self._given is not None:
            self._try_out(self._given)

    def _try_out(self, given: Given) -> None:
        """Build one plain engine, so that a class which does not fit is refused in one line."""
        try:
            self.start(Setup(groups=(GroupSetup("full", 4),)), lambda _event: None).close()
        except Unsupported as refused:
            raise UsageError(f"{given.name} cannot take part: {refused}") from None
        except Exception as error:
            why = " ".join(f"{type(error).__name__}: {error}".split())
            at = place(error, given.file)
            raise UsageError(
                f"{given.name} cannot take part: {why}" + (f" (at {at})" if at else "")
            ) from error

    def plain(self) -> VllmTarget | None:
        """The same release with its own scheduler; None when this is it."""
        return VllmTarget() if self._given is not None else None

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
        return VllmEngine(
            self._release,
            self._features,
            self.name,
            setup,
            emit,
            self._given,
            self._tells_caught,
        )
