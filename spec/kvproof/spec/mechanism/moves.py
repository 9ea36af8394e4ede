"""What the scheduler and its worker do beyond the contract's moves.

Conditions on the scheduler's and the worker's own moves are what the code sees to. Conditions on
the engine's moves are the order in which it calls: blocks are handed out before
``build_connector_meta``, which ends each window; resets come between steps; every launched step
calls the worker's hook before anything changes a block.
"""

from __future__ import annotations

from kvproof.spec.contract.sorts import (
    Content,
    Job,
    Lease,
    Piece,
    Request,
    Residency,
    Worker,
)
from kvproof.spec.lang import (
    ANY,
    EACH,
    Bool,
    Expr,
    action,
    assume,
    both,
    either,
    every,
    implies,
    negate,
    none,
)
from kvproof.spec.mechanism.state import MechanismState


class MechanismMoves(MechanismState):
    """Each method extends the contract's move of its name; ``decide``, ``clear`` and ``wait_all``
    are the mechanism's own.
    """

    # --- the engine calls in order ---

    @action(by="engine")
    def lease(self, r: Expr[Request], l: Expr[Lease]) -> None:
        """Blocks are handed out before the step's transfers are planned."""
        assume(self.decided_in.value < self.now.value)
        super().lease(r, l)

    @action(by="engine")
    def close_window(self) -> None:
        """Every window ends with a plan."""
        assume(self.decided_in.value == self.now.value)
        super().close_window()

    @action(by="engine")
    def reset(self) -> None:
        """Resets come between steps; the fence is forgotten, what is under way is dead."""
        assume(self.decided_in.value < self.now.value)
        super().reset()
        self.fence.discard(ANY, ANY)
        self.to_complete.discard(ANY, ANY)
        self.to_unpin.discard(ANY, ANY)

    @action(by="worker")
    def launch(self, w: Expr[Worker]) -> None:
        """Every step calls the worker's hook."""
        assume(self.waited_to[w] == self.at[w])
        super().launch(w)

    @action(by="engine")
    def compute(self, w: Expr[Worker], l: Expr[Lease], c: Expr[Content]) -> None:
        """Forwards come after the hook."""
        assume(self.waited_to[w] == self.at[w])
        super().compute(w, l, c)

    @action(by="engine")
    def zero(self, w: Expr[Worker], l: Expr[Lease]) -> None:
        """So does clearing,"""
        assume(self.waited_to[w] == self.at[w])
        super().zero(w, l)

    @action(by="engine")
    def copy_slot(
        self, w: Expr[Worker], source: Expr[Lease], l: Expr[Lease], c: Expr[Content]
    ) -> None:
        """and so do block copies."""
        assume(self.waited_to[w] == self.at[w])
        super().copy_slot(w, source, l, c)

    # --- the scheduler plans ---

    @action(by="scheduler")
    def decide(self) -> None:
        """The flush set: stores that read a block handed out in this window, and dead jobs."""
        assume(self.decided_in.value < self.now.value)
        assume(
            every(
                self.fence.match(EACH, EACH),
                lambda b, j: implies(
                    both(
                        self.current.has(b),
                        self.handed_at.has(self.current[b]),
                        self.handed_at[self.current[b]] == self.now.value,
                    ),
                    self.flush_at.has(j),
                ),
            )
        )
        assume(
            every(
                self.unreported.match(EACH, EACH),
                lambda j, w: implies(
                    both(self.job_epoch.has(j), self.job_epoch[j] < self.epoch.value),
                    self.flush_at.has(j),
                ),
            )
        )
        self.decided_in.set(self.now.value)

    @action(by="scheduler")
    def flush(self, j: Expr[Job]) -> None:
        """Only jobs that were issued are flushed."""
        assume(self.job_step.has(j))
        super().flush(j)

    @action(by="scheduler")
    def issue_load(self, j: Expr[Job]) -> None:
        """Loads go out with the plan."""
        assume(self.decided_in.value == self.now.value)
        super().issue_load(j)

    @action(by="scheduler")
    def issue_store(self, j: Expr[Job]) -> None:
        """So do stores."""
        assume(self.decided_in.value == self.now.value)
        super().issue_store(j)

    @action(by="scheduler")
    def plan_store(self, p: Expr[Piece]) -> None:
        """A store reads what the block table lists, or what an ended request has just given up.

        In the latter case, if the block is somebody else's by now, the store is flushed in this
        very step. From here on the block is fenced.
        """
        j, l = self.piece_job[p], self.piece_lease[p]
        r = self.job_request[j]
        x = self.place_residency[self.piece_place[p]]
        assume(self.storing[x])
        assume(both(self.maker.has(x), self.maker[x] == j))
        assume(
            either(
                self.holds[r, l],
                both(self.given_up_at.has(r, l), self.given_up_at[r, l] == self.now.value),
            )
        )
        assume(implies(self.superseded_at.has(l), self.flush_at.has(j)))
        super().plan_store(p)
        self.fence.add(self.lease_block[l], j)

    @action(by="scheduler")
    def make(self, j: Expr[Job], x: Expr[Residency]) -> None:
        """A store makes what the tier has just accepted for it."""
        assume(both(self.storing[x], negate(self.maker.has(x))))
        super().make(j, x)
        self.to_complete.add(j, x)

    @action(by="scheduler")
    def pin(self, j: Expr[Job], x: Expr[Residency]) -> None:
        """What a load is promised it lets go of when it completes."""
        super().pin(j, x)
        self.to_unpin.add(j, x)

    # --- the worker keeps its order ---

    def has_waited(self, w: Expr[Worker], j: Expr[Job], before: Bool) -> Bool:
        """A job of the flush sets so far does not count as running, if ``before`` holds of it."""
        return negate(both(self.flush_at.has(j), self.flush_at[j] <= self.at[w], before))

    @action(by="worker")
    def clear(self, w: Expr[Worker]) -> None:
        """Earlier stores are submitted, and the flushed jobs of earlier steps have ended."""
        assume(
            every(
                self.using.match(EACH, w, EACH, EACH),
                lambda s, j, x: self.has_waited(
                    w, j, both(self.job_step.has(j), self.job_step[j] < self.at[w])
                ),
            )
        )
        self.cleared_to[w] = self.at[w]

    @action(by="worker")
    def wait_all(self, w: Expr[Worker]) -> None:
        """The whole flush set has ended: blocks may change, and loads may start."""
        assume(
            every(
                self.using.match(EACH, w, EACH, EACH),
                lambda s, j, x: self.has_waited(w, j, self.job_step.has(j)),
            )
        )
        assume(
            every(
                self.reading.match(EACH, w, EACH, EACH),
                lambda b, j, l: self.has_waited(w, j, self.job_step.has(j)),
            )
        )
        self.waited_to[w] = self.at[w]

    @action(by="worker")
    def start_store(self, w: Expr[Worker], p: Expr[Piece]) -> None:
        """A store goes out a step later, or in its own step when that flushes it, once cleared."""
        j = self.piece_job[p]
        assume(both(self.job_step.has(j), self.pieces[j, p]))
        assume(
            either(
                self.job_step[j] < self.at[w],
                both(self.cleared_to[w] == self.at[w], self.job_step[j] == self.at[w]),
            )
        )
        super().start_store(w, p)

    @action(by="worker")
    def start_load(self, w: Expr[Worker], p: Expr[Piece]) -> None:
        """Loads start after all waits of their step."""
        assume(self.waited_to[w] == self.at[w])
        super().start_load(w, p)

    # --- ends ---

    @action(by="worker")
    def report(self, w: Expr[Worker], j: Expr[Job]) -> None:
        """A worker reports each job once, when its copier says that it has ended."""
        assume(both(self.unreported[j, w], negate(self.pending[j, w])))
        super().report(w, j)

    @action(by="scheduler")
    def publish(self, j: Expr[Job], x: Expr[Residency]) -> None:
        """The last report of a store has come, and none said that it failed (M2)."""
        assume(both(self.to_complete[j, x], none(self.unreported.match(j, EACH))))
        assume(none(self.failed.match(j, EACH)))
        super().publish(j, x)
        self.to_complete.discard(j, x)

    @action(by="scheduler")
    def drop(self, j: Expr[Job], x: Expr[Residency]) -> None:
        """The last report of a store has come, and one said that it failed."""
        assume(both(self.to_complete[j, x], none(self.unreported.match(j, EACH))))
        assume(negate(none(self.failed.match(j, EACH))))
        super().drop(j, x)
        self.to_complete.discard(j, x)

    @action(by="scheduler")
    def unpin(self, j: Expr[Job], x: Expr[Residency]) -> None:
        """The last report of a load has come."""
        assume(both(self.to_unpin[j, x], self.job_step.has(j)))
        assume(none(self.unreported.match(j, EACH)))
        super().unpin(j, x)
        self.to_unpin.discard(j, x)

    @action(by="scheduler")
    def lift(self, j: Expr[Job]) -> None:
        """A store has completed: all its workers have reported, so nothing reads its blocks."""
        assume(every(self.unreported.match(j, EACH), lambda w: negate(self.unreported[j, w])))
        self.fence.discard(ANY, j)
