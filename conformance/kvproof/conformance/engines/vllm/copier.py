"""The recording byte mover: it takes the place of a release's copy worker and copies nothing.

Order promised, as by the stock copier: copies of one direction end in the order of their
submission on a worker. Which copies end before a poll is the fuzzer's choice (``Step.finish``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kvproof.conformance.engines.base import Emit
from kvproof.conformance.engines.vllm import decode
from kvproof.conformance.trace.events import Computing, Done, Submit, Wait

LANES = "direction"


class RecordingCopier:
    """Stands in as ``connector_worker.worker`` of one rank.

    Attributes:
        step: the step that the worker executes; set by the worker side.
        finish: which copies end at the next poll, as in ``Step.finish``.
        fail: which of the copies that end fail, as in ``Step.fail``.
        failed: the jobs that failed.
        refused: a job was turned away, since its blocks and slots do not match.
    """

    def __init__(
        self,
        rank: int,
        blocks_per_chunk: int,
        swallows: bool,
        result: Callable[..., Any],
        emit: Emit,
    ) -> None:
        """A copier without copies.

        Args:
            rank: the worker's rank.
            blocks_per_chunk: blocks of one slot.
            swallows: answer False where the copy worker would raise, as the release's dispatcher.
            result: the release's ``TransferResult``.
            emit: where events go.
        """
        self.step = 0
        self.finish = "all"
        self.fail = ""
        self.failed: set[int] = set()
        self.refused = False
        self._rank = rank
        self._blocks_per_chunk = blocks_per_chunk
        self._swallows = swallows
        self._result = result
        self._emit = emit
        # Dictionaries as ordered sets: jobs in flight, in the order of submission.
        self._stores: dict[int, None] = {}
        self._loads: dict[int, None] = {}
        self._ended: list[int] = []

    # --- the release's interface -----------------------------------------------------------------

    def submit_store(self, job_id: int, src_spec: Any, dst_spec: Any) -> bool:
        """Take a store: GPU blocks to slots."""
        return self._submit(self._stores, job_id, src_spec, dst_spec)

    def submit_load(
        self, job_id: int, src_spec: Any, dst_spec: Any, expedited: bool = False
    ) -> bool:
        """Take a load: slots to GPU blocks. ``expedited`` asks for speed, which is all the same."""
        return self._submit(self._loads, job_id, dst_spec, src_spec)

    def transfer_async(self, job_id: int, spec: tuple[Any, Any]) -> bool:
        """Take a job in the older form: a pair of specs, of which one has GPU blocks."""
        source, target = spec
        if hasattr(source, "group_sizes"):
            return self.submit_store(job_id, source, target)
        return self.submit_load(job_id, source, target)

    def wait(self, job_ids: Iterable[int]) -> None:
        """End the named copies, and those before them in their direction."""
        jobs = {int(job) for job in job_ids}
        for lane in (self._stores, self._loads):
            last = max((n for n, job in enumerate(lane) if job in jobs), default=-1)
            self._end(lane, list(lane)[: last + 1])
        self._emit(Wait(self.step, self._rank, sorted(jobs)))

    def get_finished(self) -> list[Any]:
        """End what the step's policy says, then hand over all that has ended."""
        for name, lane in (("stores", self._stores), ("loads", self._loads)):
            if self.finish in ("all", name) or (self.finish == "rank0" and self._rank == 0):
                self._end(lane, list(lane))
            elif self.finish == "oldest":
                self._end(lane, list(lane)[:1])
        ended, self._ended = self._ended, []
        return [self._result(job_id=job, success=job not in self.failed) for job in ended]

    def shutdown(self) -> None:
        """Nothing is held."""

    # --- the model, for a copier that has bytes -------------------------------------------------

    def changes(self, output: Any) -> None:
        """What happens to blocks before a step's copies are submitted: here, nothing is there."""

    def forward(self, output: Any, computing: list[Computing]) -> None:
        """What the model computes: likewise."""

    # --- what it does ----------------------------------------------------------------------------

    def _submit(self, lane: dict[int, None], job: int, blocks: Any, slots: Any) -> bool:
        try:
            decode.pieces(
                blocks.block_ids.tolist(),
                blocks.group_sizes,
                blocks.block_indices,
                slots.block_ids.tolist(),
                self._blocks_per_chunk,
            )
        except decode.SizesDiffer as error:
            self.refused = True
            if self._swallows:
                return False
            raise AssertionError(f"the copy worker refuses job {job}: {error}") from None
        lane[int(job)] = None
        self._emit(Submit(self.step, self._rank, int(job)))
        return True

    def _end(self, lane: dict[int, None], jobs: list[int]) -> None:
        fails = self.fail in ("all", "stores" if lane is self._stores else "loads")
        for job in jobs:
            del lane[job]
            self._ended.append(job)
            if fails:
                self.failed.add(job)
            self._emit(Done(self.step, self._rank, job, not fails))
