"""The order that a worker keeps."""

from __future__ import annotations

from kvproof.spec.contract.sorts import Job, Piece, Worker
from kvproof.spec.lang import (
    EACH,
    Bool,
    Expr,
    action,
    assume,
    both,
    either,
    every,
    negate,
)
from kvproof.spec.mechanism.state import MechanismState


class WorkerOrder(MechanismState):
    """``clear`` and ``wait_all`` are the mechanism's own: the two waits of a step."""

    def is_flushed(self, w: Expr[Worker], j: Expr[Job]) -> Bool:
        """A flush set so far names the job."""
        return both(self.flush_at.has(j), self.flush_at[j] <= self.at[w])

    @action(by="worker")
    def clear(self, w: Expr[Worker]) -> None:
        """``OffloadWorker.handle_preemptions``: the flushed jobs of earlier steps have ended."""
        assume(
            every(
                self.using.match(EACH, w, EACH, EACH),
                lambda s, j, x: negate(both(self.is_flushed(w, j), self.job_step[j] < self.at[w])),
            )
        )
        self.cleared_to[w] = self.at[w]

    @action(by="worker")
    def wait_all(self, w: Expr[Worker]) -> None:
        """``OffloadWorker.handle_preemptions`` returns: the whole flush set has ended."""
        assume(
            every(
                self.using.match(EACH, w, EACH, EACH),
                lambda s, j, x: negate(self.is_flushed(w, j)),
            )
        )
        assume(
            every(
                self.reading.match(EACH, w, EACH, EACH),
                lambda b, j, l: negate(self.is_flushed(w, j)),
            )
        )
        self.waited_to[w] = self.at[w]

    @action(by="worker")
    def start_store(self, w: Expr[Worker], p: Expr[Piece]) -> None:
        """``OffloadWorker._submit_stores``: each store once, a step later than it was planned.

        Or in its own step when that flushes it, after the wait for earlier ones.
        """
        j = self.piece_job[p]
        assume(self.to_submit[j, w])
        assume(
            either(
                self.job_step[j] < self.at[w],
                both(
                    self.cleared_to[w] == self.at[w],
                    self.flush_at.has(j),
                    self.flush_at[j] == self.at[w],
                ),
            )
        )
        super().start_store(w, p)

    @action(by="worker")
    def start_load(self, w: Expr[Worker], p: Expr[Piece]) -> None:
        """``OffloadWorker.start_kv_transfers``: each load once, after all waits of its step."""
        assume(self.to_submit[self.piece_job[p], w])
        assume(self.waited_to[w] == self.at[w])
        super().start_load(w, p)

    @action(by="worker")
    def submit(self, w: Expr[Worker], j: Expr[Job]) -> None:
        """``OffloadWorker._try``: from here on the copier has the job, and the worker has not."""
        assume(both(self.to_submit[j, w], self.job_step[j] <= self.at[w]))
        super().submit(w, j)
        self.to_submit.discard(j, w)

    @action(by="worker")
    def end(self, w: Expr[Worker], j: Expr[Job]) -> None:
        """``OffloadWorker._ended``: it goes into the next report."""
        super().end(w, j)
        self.to_report.add(j, w)

    @action(by="worker")
    def fail(self, w: Expr[Worker], j: Expr[Job]) -> None:
        """``OffloadWorker._ended``: so does a failure."""
        super().fail(w, j)
        self.to_report.add(j, w)
