"""What becomes of what workers report, and of loads; and what is left at the end."""

from __future__ import annotations

from kvproof.spec.contract.sorts import Job, Piece, Residency, Worker
from kvproof.spec.lang import (
    ANY,
    EACH,
    Expr,
    Int,
    action,
    assume,
    both,
    conclude,
    either,
    every,
    negate,
    none,
)
from kvproof.spec.mechanism.state import MechanismState


class Ends(MechanismState):
    """``mark_failed`` and ``end_job`` are the mechanism's own."""

    @action(by="worker")
    def report(self, w: Expr[Worker], j: Expr[Job]) -> None:
        """``OffloadWorker.build_connector_worker_meta`` tells once; ``JobTable.report`` counts.

        A report for a job that is not live changes no table.
        """
        assume(self.to_report[j, w])
        super().report(w, j)
        self.to_report.discard(j, w)
        self.said_failed.add(j, w, when=self.failed[j, w])
        self.all_reported.add(
            j,
            when=both(
                self.awaited[j, w],
                every(self.awaited.match(j, EACH), lambda v: v == w),
            ),
        )
        self.awaited.discard(j, w)

    @action(by="scheduler")
    def publish(self, j: Expr[Job], x: Expr[Residency]) -> None:
        """``Ledger._end_store``: the last report of a store has come, and none said it failed."""
        assume(both(self.all_reported[j], self.to_complete[j, x]))
        assume(none(self.said_failed.match(j, EACH)))
        super().publish(j, x)
        self.to_complete.discard(j, x)

    @action(by="scheduler")
    def drop(self, j: Expr[Job], x: Expr[Residency]) -> None:
        """``Ledger._end_store``: the last report of a store has come, and one said it failed."""
        assume(both(self.all_reported[j], self.to_complete[j, x]))
        assume(negate(none(self.said_failed.match(j, EACH))))
        super().drop(j, x)
        self.to_complete.discard(j, x)
        self.missing.discard(x)

    @action(by="tier")
    def evict(self, x: Expr[Residency]) -> None:
        """``Ledger.gone``: what is known of the key goes with it."""
        super().evict(x)
        self.missing.discard(x)
        self.refused.discard(ANY, x)
        self.losses.set(self.losses.value + 1)

    @action(by="scheduler")
    def mark_failed(self, j: Expr[Job], x: Expr[Residency]) -> None:
        """``Ledger.refuse``: a load has failed, and its keys are not to be tried again (L5).

        That is remembered of requests in the table alone: others ask for nothing any more.
        """
        assume(both(self.to_unpin[j, x], self.tracked[self.job_request[j]]))
        self.refused.add(self.job_request[j], x)
        self.losses.set(self.losses.value + 1)

    @action(by="scheduler")
    def unpin(self, j: Expr[Job], x: Expr[Residency]) -> None:
        """``Ledger._end_load``: the last report of a load has come."""
        assume(both(self.all_reported[j], self.to_unpin[j, x]))
        r = self.job_request[j]
        assume(
            either(
                none(self.said_failed.match(j, EACH)),
                self.refused[r, x],
                negate(self.tracked[r]),
            )
        )
        super().unpin(j, x)
        self.to_unpin.discard(j, x)

    @action(by="scheduler")
    def end_job(self, j: Expr[Job]) -> None:
        """``Ledger.report`` is done with a job: it is off the table, and its blocks are free."""
        assume(self.all_reported[j])
        assume(both(none(self.to_complete.match(j, EACH)), none(self.to_unpin.match(j, EACH))))
        self.all_reported.discard(j)
        self.listed.discard(j)
        self.fence.discard(ANY, j)

    @action(by="scheduler")
    def settle(self, p: Expr[Piece]) -> None:
        """A load counts as ended when all ranks have said so, and well when none said it failed.

        From then on the engine counts its tokens as computed.
        """
        j, l, y = self.piece_job[p], self.piece_lease[p], self.piece_place[p]
        c = self.place_content[y]
        assume(none(self.unreported.match(j, EACH)))
        assume(none(self.said_failed.match(j, EACH)))
        super().settle(p)
        self.due.add(l, c, self.job_step[j])
        self.due_in[l, c] = self.job_step[j]

    @action(by="scheduler")
    def release(self, p: Expr[Piece]) -> None:
        """``OffloadWorker.results``: one said that it failed; ``Ledger.report`` comes first."""
        j = self.piece_job[p]
        assume(none(self.unreported.match(j, EACH)))
        assume(negate(none(self.said_failed.match(j, EACH))))
        assume(none(self.all_reported.match(EACH)))
        super().release(p)

    @action(by="scheduler")
    def drained(self, residue: Int) -> None:
        """``OffloadScheduler.has_work`` is false, between steps, and no request is left.

        The outputs of all steps have been taken in, so what was flushed has been reported.
        """
        assume(both(none(self.alive.match(EACH)), self.decided_in.value < self.now.value))
        assume(both(none(self.listed.match(EACH)), none(self.ending.match(EACH))))
        assume(every(self.unreported.match(EACH, EACH), lambda j, w: negate(self.flush_at.has(j))))
        super().drained(residue)
        conclude("P12", both(none(self.tracked.match(EACH)), none(self.all_reported.match(EACH))))
        conclude(
            "P12", both(none(self.found.match(EACH, EACH)), none(self.awaited.match(EACH, EACH)))
        )
        conclude("P12", none(self.fence.match(EACH, EACH)))
        conclude("P12", none(self.to_complete.match(EACH, EACH)))
        conclude("P12", none(self.to_unpin.match(EACH, EACH)))
        conclude("P12", both(none(self.granted.match(EACH)), none(self.laying.match(EACH))))
        conclude("P12", none(self.refused.match(EACH, EACH)))
        conclude("P12", none(self.to_submit.match(EACH, EACH)))
        conclude("P12", none(self.to_report.match(EACH, EACH)))
