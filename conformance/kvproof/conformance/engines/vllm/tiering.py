"""A second tier behind the CPU tier: the release's own manager of tiers, over files in a folder.

Nothing of it is replaced. Its file tier works with threads, so a run would depend on their pace;
what is changed is only when their work is waited for, and when the manager hears of it:

- Lookups are answered from the files between two steps: the first one of a key says "retry", the
  next one knows.
- Copies to and from files are carried out at once. Whether the manager hears that they have ended
  is the history's choice, like that of the workers' copies (``Step.finish``): "stores" are those to
  files, "loads" those that come back.
"""

from __future__ import annotations

import importlib.util
import inspect
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from kvproof.conformance.engines.base import Setup
from kvproof.conformance.engines.vllm.release import module

_PACKAGE = "vllm.v1.kv_offload.tiering"


def exists() -> bool:
    """Whether the release has such a manager, a file tier, and the calls that are tapped."""
    for name in (_PACKAGE, f"{_PACKAGE}.fs"):
        if importlib.util.find_spec(name) is None:
            return False
    manager = inspect.getsource(module(f"{_PACKAGE}.manager"))
    files = module(f"{_PACKAGE}.fs.manager").FileSystemTierManager
    needed = ("self.prepare_write", "self.complete_write", "def on_schedule_end", "self._jobs")
    return all(text in manager for text in needed) and hasattr(files, "drain_jobs")


class Folder:
    """Where a run's second tier keeps its files; made on first use, gone after ``remove``."""

    def __init__(self) -> None:
        self._made: tempfile.TemporaryDirectory[str] | None = None

    def configure(self, transfer: Any, setup: Setup) -> None:
        """Name the second tier in a run's ``KVTransferConfig``, where the setup has one."""
        if setup.tier != "tiering":
            return
        self._made = tempfile.TemporaryDirectory(prefix="kvproof-tier-", ignore_cleanup_errors=True)
        path = Path(self._made.name)
        # The CPU tier is a shared file here, called after the engine.
        transfer.engine_id = path.name
        transfer.kv_connector_extra_config |= {
            "spec_name": "TieringOffloadingSpec",
            "secondary_tiers": [
                {"type": "fs", "root_dir": str(path), "n_read_threads": 1, "n_write_threads": 1}
            ],
        }

    def remove(self) -> None:
        """The run is over."""
        if self._made is not None:
            self._made.cleanup()
            self._made = None


class Pace:
    """When the manager of tiers hears of what its file tiers have done.

    Attributes:
        finish: which copies the manager may hear of, as in ``Step.finish``.
    """

    def __init__(self, manager: Any) -> None:
        """Wrap the file tiers of ``manager`` in place; a manager without any is left alone."""
        self.finish = "all"
        self._manager = manager
        for tier in getattr(manager, "secondary_tiers", ()):
            held: list[Any] = []
            tier.get_finished_jobs = self._heard(tier, tier.get_finished_jobs, held)
            tier.on_schedule_end = self._settled(tier, tier.on_schedule_end)
        if hasattr(manager, "secondary_tiers"):
            manager.reset_cache = self._unhindered(manager.reset_cache)

    def _heard(
        self, tier: Any, inner: Callable[[], Iterable[Any]], held: list[Any]
    ) -> Callable[[], list[Any]]:
        def get_finished_jobs() -> list[Any]:
            tier.drain_jobs()
            # Two threads end jobs in either order; their numbers have but one.
            held.extend(sorted(inner(), key=lambda result: int(result.job_id)))
            told = [result for result in held if self._tells(result, held)]
            held[:] = [result for result in held if result not in told]
            return told

        return get_finished_jobs

    def _tells(self, result: Any, held: list[Any]) -> bool:
        if self.finish == "oldest":
            return result is held[0]
        promotion = self._manager._jobs[result.job_id].transfer_job.is_promotion
        return self.finish in ("all", "loads" if promotion else "stores")

    def _unhindered(self, inner: Callable[[], Any]) -> Callable[[], Any]:
        """A reset hears of everything: it waits for it."""

        def reset_cache() -> Any:
            before, self.finish = self.finish, "all"
            try:
                return inner()
            finally:
                self.finish = before

        return reset_cache

    @staticmethod
    def _settled(tier: Any, inner: Callable[[Any], None]) -> Callable[[Any], None]:
        """The step's lookups find what was stored before them, and are answered before the next."""
        lookups = tier._lookup_manager

        def on_schedule_end(context: Any) -> None:
            tier.drain_jobs()
            inner(context)
            while _unanswered(lookups):
                time.sleep(0.0001)

        return on_schedule_end


def _unanswered(lookups: Any) -> bool:
    """Whether the lookup thread still has the batch that it was given."""
    if not lookups._pending_results.empty():
        return False
    return any(state.phase.name == "IN_FLIGHT" for state in lookups._lookup_state.values())
