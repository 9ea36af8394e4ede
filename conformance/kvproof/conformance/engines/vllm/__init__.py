"""The engine that is a vLLM release: its core scheduler, its connector, its tier, its worker.

Real in a run: the core ``Scheduler`` with its ``KVCacheManager``, the release's
``OffloadingConnector`` in both roles, its CPU offloading manager and its connector worker. Faked:
the byte mover (``copier``) and the model's forward (``sampling``). One process runs one release,
the one that is importable; ``environment`` says what must be set before it is imported.

Reading order: ``release`` (what is imported), ``features`` (where releases differ), ``configs`` and
``groups`` (a run's configuration), the taps ``requests``, ``blocks``, ``connector`` and ``tier``,
``decode`` (what a job copies), ``copier`` and ``workers`` (the worker side), ``engine`` (the step
loop), ``target``.
"""

from __future__ import annotations

from kvproof.conformance.engines.vllm.environment import prepare
from kvproof.conformance.engines.vllm.target import VllmTarget

__all__ = ["VllmTarget", "prepare"]
