"""Why nobody waits for ever: sets of things to wait for that only shrink.

A lookup that is put off waits for the jobs that were in flight when it was put off first. That set
never grows (``jobs_waited_for``), each report takes a member out of it (an effect of ``report``),
and when it is empty the guard L1 of ``defer`` counts the polls that are left. A copy ends once on
each worker and is never taken up again (``copies_to_end``), and each is reported once
(``reports_to_come``), so with workers that go on, every such set is empty some day.
"""

from __future__ import annotations

from kvproof.spec.contract.sorts import Job, Piece, Request, Residency, Worker
from kvproof.spec.contract.views import Views
from kvproof.spec.lang import NEVER, Bool, Expr, both, measure, negate


class Progress(Views):
    """Each method is one measure; its docstring is its sentence."""

    @measure("L1")
    def jobs_waited_for(self, r: Expr[Request], j: Expr[Job], w: Expr[Worker]) -> tuple[Bool, Bool]:
        """What a lookup waits for never grows while it is put off."""
        rest = both(
            self.putting_off.has(r),
            self.job_number.has(j),
            self.job_number[j] <= self.putting_off[r],
            self.unreported[j, w],
        )
        return rest, negate(self.putting_off.has(r))

    @measure("L2")
    def copies_to_end(self, j: Expr[Job], w: Expr[Worker]) -> tuple[Bool, Bool]:
        """A copy that has ended on a worker never begins again there."""
        return self.pending[j, w], negate(self.job_step.has(j))

    @measure("L2")
    def reports_to_come(self, j: Expr[Job], w: Expr[Worker]) -> tuple[Bool, Bool]:
        """A job that a worker has reported is never awaited from it again."""
        return self.unreported[j, w], negate(self.job_step.has(j))

    @measure("L4")
    def submissions_to_come(self, j: Expr[Job], w: Expr[Worker]) -> tuple[Bool, Bool]:
        """A job that a worker's copier has is not taken back from it."""
        rest = both(self.job_step.has(j), negate(self.submitted[j, w]))
        return rest, negate(self.job_step.has(j))

    @measure("L4")
    def pieces_to_land(self, p: Expr[Piece], w: Expr[Worker]) -> tuple[Bool, Bool]:
        """A piece that has landed on a worker stays landed."""
        rest = both(self.pieces[self.piece_job[p], p], negate(self.landed[p, w]))
        return rest, negate(self.pieces[self.piece_job[p], p])

    @measure("L5")
    def chunks_to_try(self, r: Expr[Request], x: Expr[Residency]) -> tuple[Bool, Bool]:
        """Where a load of a chunk failed for a request, it is not tried again."""
        return negate(self.spoiled[r, x]), NEVER
