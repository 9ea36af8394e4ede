"""vLLM releases, installed side by side and each driven in a process of its own."""

from __future__ import annotations

from kvproof.conformance.releases.child import child_environment, run_in
from kvproof.conformance.releases.folders import locate

__all__ = ["child_environment", "locate", "run_in"]
