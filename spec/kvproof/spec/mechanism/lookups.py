"""What the scheduler says and asks: to the tier of requests, of keys, and to the engine."""

from __future__ import annotations

from kvproof.spec.contract.sorts import Content, Job, Position, Request, Residency
from kvproof.spec.lang import (
    ANY,
    EACH,
    Expr,
    Int,
    action,
    assume,
    both,
    either,
    negate,
    none,
)
from kvproof.spec.mechanism.state import MechanismState


class Questions(MechanismState):
    """Requests, lookups, offers."""

    # --- requests ---

    @action(by="scheduler")
    def tier_new(self, r: Expr[Request]) -> None:
        """``OffloadScheduler.add``: a request enters the engine, and is not in the table yet."""
        assume(both(self.alive[r], negate(self.tracked[r])))
        super().tier_new(r)
        self.tracked.add(r)

    @action(by="scheduler")
    def tier_call(self, r: Expr[Request]) -> None:
        """Only for requests in the table, and in ``Stores.end`` for those that have just ended."""
        assume(either(self.tracked[r], self.ending[r]))
        super().tier_call(r)

    @action(by="scheduler")
    def tier_finished(self, r: Expr[Request]) -> None:
        """``Stores.end``: goodbye, once; or ``OffloadScheduler.reset``, in place of it."""
        assume(self.ending[r])
        super().tier_finished(r)
        self.ending.discard(r)

    # --- lookups ---

    @action(by="engine")
    def ask(self, r: Expr[Request]) -> None:
        """``Loads.lookup``: hits of an earlier question save asking, and cover no load."""
        super().ask(r)
        self.found.discard(r, ANY)

    @action(by="scheduler")
    def look(self, r: Expr[Request]) -> None:
        """``Loads._answer``: only requests in the table are looked up, and it notes when."""
        assume(self.tracked[r])
        super().look(r)
        self.found.discard(r, ANY)
        self.looked_at[r] = self.losses.value

    @action(by="scheduler")
    def hit(self, r: Expr[Request], x: Expr[Residency]) -> None:
        """``_Search._status`` asks for no key whose load has failed for the request.

        The tier finds what its table has and what is no longer being stored.
        """
        k = self.residency_key[x]
        assume(both(self.tracked[r], negate(self.refused[r, x])))
        assume(both(self.where.has(k), self.where[k] == x))
        assume(negate(self.storing[x]))
        super().hit(r, x)
        self.found.add(r, x)

    @action(by="scheduler")
    def await_key(self, r: Expr[Request], x: Expr[Residency]) -> None:
        """Lookups come before the plan, and when ``Ledger.report`` has dealt with what ended.

        The tier says so of what it took and what was not completed.
        """
        assume(both(self.tracked[r], self.storing[x]))
        assume(both(self.decided_in.value < self.now.value, none(self.all_reported.match(EACH))))
        super().await_key(r, x)

    @action(by="scheduler")
    def defer(self, r: Expr[Request], most: Int, now_best: Int, could_be: Int, moving: Int) -> None:
        """``OffloadScheduler.lookup`` returns to the engine, which asks of living requests."""
        assume(self.asking[r])
        super().defer(r, most, now_best, could_be, moving)

    @action(by="scheduler")
    def answer(self, r: Expr[Request], computed: Int, tokens: Int, known: Int, most: Int) -> None:
        """``OffloadScheduler.lookup`` returns, too."""
        assume(self.asking[r])
        super().answer(r, computed, tokens, known, most)

    # --- offers ---

    @action(by="scheduler")
    def use_key(self, named: Expr[Content], own: Expr[Content]) -> None:
        """``keys_of`` makes keys of the request's hashes as they are now."""
        assume(self.hashed[named, own])
        super().use_key(named, own)

    @action(by="scheduler")
    def offer(self, r: Expr[Request], q: Expr[Position], depth: Int, most: Int) -> None:
        """``chunks_on_offer``: the table, read now, has a block there; ``last_chunk``: computed.

        The table is the engine's, or of a request that has ended the one that came with its end.
        """
        assume(
            negate(
                both(none(self.lists.match(r, q, EACH)), none(self.last_table.match(r, q, EACH)))
            )
        )
        assume(both(self.computed_to.has(r), depth <= self.computed_to[r]))
        super().offer(r, q, depth, most)
        self.offered.add(r, depth)

    @action(by="scheduler")
    def offer_is_computed(self, r: Expr[Request], depth: Int) -> None:
        """What is judged was offered."""
        assume(self.offered[r, depth])
        super().offer_is_computed(r, depth)

    # --- answers that are taken ---

    @action(by="scheduler")
    def open_load(self, j: Expr[Job]) -> None:
        """``Loads.take``: for a request in the table; ``JobTable.issue`` lists the job."""
        assume(self.tracked[self.job_request[j]])
        super().open_load(j)
        self.listed.add(j)

    @action(by="scheduler")
    def pin(self, j: Expr[Job], x: Expr[Residency]) -> None:
        """``Loads._readable``: the latest lookup found the key, and nothing was lost since (M8)."""
        r = self.job_request[j]
        assume(both(self.found[r, x], self.looked_at.has(r)))
        assume(self.looked_at[r] == self.losses.value)
        super().pin(j, x)
        self.to_unpin.add(j, x)
