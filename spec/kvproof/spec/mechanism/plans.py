"""What a plan is made of: the flush set first, then loads and stores."""

from __future__ import annotations

from kvproof.spec.contract.sorts import Content, Job, Piece, Residency
from kvproof.spec.lang import (
    ANY,
    EACH,
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


class Plans(MechanismState):
    """``decide`` and ``give_up`` are the mechanism's own."""

    # --- flush ---

    @action(by="scheduler")
    def decide(self) -> None:
        """``OffloadScheduler.plan``: stores that read a block handed out since, and dead jobs."""
        assume(
            every(
                self.fence.match(EACH, EACH),
                lambda b, j: implies(self.leased[b], self.flush_at.has(j)),
            )
        )
        assume(
            every(
                self.listed.match(EACH),
                lambda j: negate(self.job_epoch[j] < self.epoch.value),
            )
        )
        self.decided_in.set(self.now.value)

    @action(by="scheduler")
    def flush(self, j: Expr[Job]) -> None:
        """A job of an earlier step, or a store of this one that ``Stores.end`` makes (M5).

        ``JobTable.take_dead`` names a dead job once.
        """
        assume(self.job_step.has(j))
        assume(
            either(
                self.job_step[j] < self.now.value,
                both(self.store[j], none(self.pieces.match(j, EACH))),
            )
        )
        super().flush(j)
        self.listed.discard(j, when=self.job_epoch[j] < self.epoch.value)

    @action(by="scheduler")
    def give_up(self, j: Expr[Job]) -> None:
        """``OffloadScheduler.reset``: a load that no worker has yet is just forgotten."""
        assume(both(self.listed[j], negate(self.job_step.has(j))))
        assume(self.job_epoch[j] < self.epoch.value)
        self.listed.discard(j)

    # --- loads ---

    @action(by="scheduler")
    def issue_load(self, j: Expr[Job]) -> None:
        """``Plan.loads``: loads go out with the plan."""
        assume(self.decided_in.value == self.now.value)
        super().issue_load(j)
        self.awaited.add(j, ANY)
        self.to_submit.add(j, ANY)

    @action(by="scheduler")
    def load_state(self, p: Expr[Piece], named: Expr[Content]) -> None:
        """``keys_of`` takes the hash that ends where the answer does, a boundary of chunks."""
        assume(self.hashed[self.place_content[self.piece_place[p]], named])
        super().load_state(p, named)

    @action(by="scheduler")
    def plan_load(self, p: Expr[Piece]) -> None:
        """``Loads._plan``: from a chunk of the load to the block that came for that position.

        ``_Search._lower`` counts on no block that the chunk was stored without. A place is a chunk
        and an offset.
        """
        j, l, y = self.piece_job[p], self.piece_lease[p], self.piece_place[p]
        r, x, n = self.job_request[j], self.place_residency[y], self.place_offset[y]
        assume(self.to_unpin[j, x])
        assume(self.fresh[r, self.place_position[y], l])
        assume(both(self.missing.has(x), self.missing[x] <= n, n < self.chunk_blocks[x]))
        assume(implies(self.stored_at.has(x, n), self.stored_at[x, n] == y))
        super().plan_load(p)
        self.fresh.discard(r, self.place_position[y], l)

    # --- stores ---

    @action(by="tier")
    def admit(self, x: Expr[Residency]) -> None:
        """``Stores._ask``: the tier is offered chunks while a plan is made."""
        assume(self.decided_in.value == self.now.value)
        super().admit(x)
        self.granted.add(x)

    @action(by="scheduler")
    def issue_store(self, j: Expr[Job]) -> None:
        """``Plan.stores``: so do stores; ``JobTable.issue`` lists the job."""
        assume(self.decided_in.value == self.now.value)
        super().issue_store(j)
        self.listed.add(j)
        self.awaited.add(j, ANY)
        self.to_submit.add(j, ANY)

    @action(by="scheduler")
    def make(self, j: Expr[Job], x: Expr[Residency]) -> None:
        """``Stores._store``: one store makes what the tier has just taken."""
        assume(self.granted[x])
        super().make(j, x)
        self.granted.discard(x)
        self.laying.add(x)
        self.to_complete.add(j, x)

    @action(by="scheduler")
    def plan_store(self, p: Expr[Piece]) -> None:
        """``Stores._collect``: block by block, what the table lists at the chunk's positions.

        Of a request that has ended it is the table that came with its end; if the block is somebody
        else's by now, ``Stores.end`` flushes the store in this very step. All that is read is
        computed by the end of this step, or of an earlier one when the store is flushed in this.
        From here on the block is fenced (``Ledger.issue_store``).
        """
        j, l, y = self.piece_job[p], self.piece_lease[p], self.piece_place[p]
        r, x = self.job_request[j], self.place_residency[y]
        b, q = self.lease_block[l], self.place_position[y]
        c, n = self.place_content[y], self.place_offset[y]
        assume(self.to_complete[j, x])
        assume(either(self.lists[r, q, l], self.last_table[r, q, l]))
        assume(implies(both(self.last_table[r, q, l], self.leased[b]), self.flush_at.has(j)))
        assume(self.due_in.has(l, c))
        assume(implies(self.flush_at.has(j), self.due_in[l, c] < self.now.value))
        assume(implies(self.next_offset.has(x), self.next_offset[x] == n))
        super().plan_store(p)
        self.fence.add(b, j)
        self.missing.put(x, n, when=negate(self.next_offset.has(x)))
        self.stored_at[x, n] = y
        self.next_offset[x] = n + 1
        self.laying.discard(x, when=self.chunk_blocks[x] <= n + 1)
