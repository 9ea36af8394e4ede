"""What the engine does, as far as the scheduler sees it.

Conditions here are the order in which the engine calls, and what its own numbers mean: blocks are
handed out before ``build_connector_meta``, which ends each window; resets come between steps; every
launched step calls the worker's hook before anything changes a block; what a step computes is in
its blocks before the next step begins.
"""

from __future__ import annotations

from kvproof.spec.contract.sorts import Content, Lease, Position, Request, Worker
from kvproof.spec.lang import (
    ANY,
    EACH,
    Expr,
    Int,
    action,
    assume,
    both,
    every,
    forall,
    negate,
    none,
)
from kvproof.spec.mechanism.state import MechanismState


class EngineCalls(MechanismState):
    """The contract's engine moves, and two things that the engine tells: ``foresee``, ``take``."""

    # --- requests ---

    @action(by="engine")
    def finish(self, r: Expr[Request]) -> None:
        """``OffloadScheduler.finish``: it waits for the next plan; its answers are gone."""
        super().finish(r)
        self.ending.add(r, when=self.tracked[r])
        self.tracked.discard(r)
        self.found.discard(r, ANY)
        self.looked_at.discard(r)
        self.refused.discard(r, ANY)

    @action(by="engine")
    def preempt(self, r: Expr[Request]) -> None:
        """It is asked again before it runs; what was found before that covers no load."""
        super().preempt(r)
        self.found.discard(r, ANY)

    @action(by="engine")
    def extend(self, r: Expr[Request]) -> None:
        """A longer request asks another question: ``Loads._answer`` compares its length."""
        super().extend(r)
        self.found.discard(r, ANY)

    @action(by="engine")
    def name_prefix(self, named: Expr[Content], own: Expr[Content]) -> None:
        """``RequestView.block_hashes`` grows."""
        super().name_prefix(named, own)
        self.hashed.add(named, own)

    # --- blocks ---

    @action(by="engine")
    def lease(self, r: Expr[Request], l: Expr[Lease]) -> None:
        """Blocks are handed out before the step is planned; ``Step.leased`` has them."""
        assume(self.decided_in.value < self.now.value)
        super().lease(r, l)
        self.lists.add(r, self.lease_position[l], l)
        self.leased.add(self.lease_block[l])

    @action(by="engine")
    def share(self, r: Expr[Request], l: Expr[Lease]) -> None:
        """Only blocks of known content are shared, so no destination of a load is."""
        assume(none(self.fresh.match(EACH, EACH, l)))
        super().share(r, l)
        self.lists.add(r, self.lease_position[l], l)

    @action(by="engine")
    def free(self, r: Expr[Request], l: Expr[Lease]) -> None:
        """What a load was just given is not taken back before its plan.

        ``request_finished`` comes before the request's blocks are given up, and brings its table.
        """
        assume(none(self.fresh.match(r, EACH, l)))
        super().free(r, l)
        self.last_table.add(r, self.lease_position[l], l, when=self.ending[r])
        self.lists.discard(r, ANY, l)

    @action(by="engine")
    def take(self, r: Expr[Request], q: Expr[Position], l: Expr[Lease]) -> None:
        """``update_state_after_alloc`` comes with a block whose content nobody knows: a new one."""
        assume(self.decided_in.value < self.now.value)
        assume(both(self.lists[r, q, l], self.handed_at[l] == self.now.value))
        assume(every(self.holds.match(EACH, l), lambda other: other == r))
        self.fresh.add(r, q, l)

    # --- steps ---

    @action(by="engine")
    def foresee(self, l: Expr[Lease], c: Expr[Content], n: Int) -> None:
        """Step ``n``, scheduled or just executed, brings content: ``num_computed_tokens`` says so.

        Of tokens that were sampled ahead of the scheduler the content is known only then.
        """
        assume(negate(self.due_in.has(l, c)))
        assume(n <= self.now.value)
        assume(forall(Worker, lambda w: self.at[w] <= n))
        self.due.add(l, c, n)
        self.due_in[l, c] = n

    @action(by="engine")
    def close_window(self) -> None:
        """Every window ends with a plan, and the plan is whole.

        ``Stores._store`` puts all blocks of all chunks that the tier took into one store.
        """
        assume(self.decided_in.value == self.now.value)
        assume(both(none(self.granted.match(EACH)), none(self.laying.match(EACH))))
        super().close_window()
        self.leased.discard(ANY)
        self.last_table.discard(ANY, ANY, ANY)
        self.fresh.discard(ANY, ANY, ANY)
        self.offered.discard(ANY, ANY)

    @action(by="engine")
    def reset(self) -> None:
        """``OffloadScheduler.reset``: all is forgotten, what is under way is dead.

        Resets come between steps.
        """
        assume(self.decided_in.value < self.now.value)
        super().reset()
        self.fence.discard(ANY, ANY)
        self.to_complete.discard(ANY, ANY)
        self.to_unpin.discard(ANY, ANY)
        self.awaited.discard(ANY, ANY)
        self.all_reported.discard(ANY)
        self.refused.discard(ANY, ANY)
        self.missing.discard(ANY)
        self.losses.set(self.losses.value + 1)

    @action(by="worker")
    def launch(self, w: Expr[Worker]) -> None:
        """Every step calls the worker's hook; the forward of the last one is over."""
        assume(self.waited_to[w] == self.at[w])
        assume(every(self.due.match(EACH, EACH, self.at[w]), lambda l, c: self.settled[l, w, c]))
        super().launch(w)

    # --- changes of blocks come after the hook ---

    @action(by="engine")
    def compute(self, w: Expr[Worker], l: Expr[Lease], c: Expr[Content]) -> None:
        """Forwards come after the hook,"""
        assume(self.waited_to[w] == self.at[w])
        super().compute(w, l, c)

    @action(by="engine")
    def zero(self, w: Expr[Worker], l: Expr[Lease]) -> None:
        """so does clearing,"""
        assume(self.waited_to[w] == self.at[w])
        super().zero(w, l)

    @action(by="engine")
    def copy_slot(
        self, w: Expr[Worker], source: Expr[Lease], l: Expr[Lease], c: Expr[Content]
    ) -> None:
        """and so do block copies."""
        assume(self.waited_to[w] == self.at[w])
        super().copy_slot(w, source, l, c)
