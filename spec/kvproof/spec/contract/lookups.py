"""What the scheduler does: it answers lookups, and offers chunks for storing."""

from __future__ import annotations

from kvproof.spec.contract.sorts import Content, Position, Request, Residency
from kvproof.spec.contract.views import Views
from kvproof.spec.lang import (
    ANY,
    EACH,
    Bool,
    Expr,
    Int,
    action,
    assume,
    both,
    either,
    every,
    implies,
    negate,
    none,
    oblige,
)


class LookupMoves(Views):
    """Questions, answers, and what comes of waiting; offers."""

    # --- lookups ---

    @action(by="engine")
    def ask(self, r: Expr[Request]) -> None:
        """The engine asks what can be loaded: what earlier lookups found counts no more."""
        assume(self.alive[r])
        self.asking.add(r)
        self.answered.discard(r, ANY)
        self.deferred.discard(r, ANY)

    @action(by="scheduler")
    def look(self, r: Expr[Request]) -> None:
        """The first key of a lookup is looked up."""
        oblige("P13", self.alive[r])

    @action(by="scheduler")
    def await_key(self, r: Expr[Request], x: Expr[Residency]) -> None:
        """A lookup finds a key that is still being stored, which it may wait for."""
        oblige("P13", self.alive[r])
        oblige("L4", both(self.storing[x], self.maker.has(x)))
        oblige("L4", negate(none(self.unreported.match(self.maker[x], EACH))))

    @action(by="scheduler")
    def defer(self, r: Expr[Request], most: Int, now_best: Int, could_be: Int, moving: Int) -> None:
        """The scheduler puts an answer off: the engine is to ask again later.

        It waits for the jobs that were in flight when it did so first; with none of them left it
        may do so ``most`` times more. ``now_best`` is the greatest boundary that can be served,
        ``could_be`` the same with all that is being stored; ``moving`` is 1 when a key that the
        answer needs is on its way to the GPU.
        """
        busy = self.has_own_job(r)
        waits = negate(self.outlasted(r))
        oblige("P13", self.alive[r])
        oblige("L1", either(waits, self.polls[r] < most))
        oblige("L3", either(now_best < could_be, moving == 1, busy))
        self.polls.put(r, 0, when=negate(self.polls.has(r)))
        self.polls.put(r, self.polls[r] + 1, when=self.outlasted(r))
        self.putting_off.put(r, self.issued.value, when=negate(self.putting_off.has(r)))
        self.deferred.add(r, self.now.value)
        self.asking.discard(r)

    def has_own_job(self, r: Expr[Request]) -> Bool:
        """A job of the request itself is in flight."""
        return negate(
            every(self.unreported.match(EACH, EACH), lambda j, w: negate(self.job_request[j] == r))
        )

    def outlasted(self, r: Expr[Request]) -> Bool:
        """It has been put off, and the jobs that were in flight at first have all ended."""
        return both(
            self.putting_off.has(r),
            every(
                self.unreported.match(EACH, EACH),
                lambda j, w: self.putting_off[r] < self.job_number[j],
            ),
        )

    @action(by="scheduler")
    def judge_own_wait(self, r: Expr[Request], now_best: Int, could_be: Int, moving: Int) -> None:
        """An answer is put off while a job of the request itself is in flight."""
        oblige("L3.1", either(now_best < could_be, moving == 1))

    @action(by="scheduler")
    def answer(self, r: Expr[Request], computed: Int, tokens: Int, known: Int, most: Int) -> None:
        """An answer: ``tokens`` beyond ``computed``, of a request of which ``known`` are known.

        ``most`` is how many it lets itself be given.
        """
        oblige("P13", self.alive[r])
        oblige("P16", both(negate(tokens < 0), computed + tokens <= known))
        oblige("P15", tokens <= most)
        oblige(
            "P16",
            implies(
                both(self.told.has(r), self.told_from.has(r), self.told_from[r] == computed),
                self.told[r] == tokens,
            ),
        )
        self.told[r] = tokens
        self.told_from[r] = computed
        self.putting_off.discard(r)
        self.polls.discard(r)
        self.asking.discard(r)

    # --- offers ---

    @action(by="scheduler")
    def offer(self, r: Expr[Request], q: Expr[Position], depth: Int, most: Int) -> None:
        """A chunk is offered for storing: it ends with token ``depth``, ``q`` lies in it.

        ``most`` is how many tokens the request, and the engine's options, let be stored.
        """
        oblige("P7", self.had[r, q])
        oblige("P15", depth <= most)

    @action(by="scheduler")
    def offer_is_computed(self, r: Expr[Request], depth: Int) -> None:
        """The step of an offer has been scheduled: it computes what was offered, if not before."""
        oblige("P7", both(self.computed_to.has(r), depth <= self.computed_to[r]))

    @action(by="scheduler")
    def use_key(self, named: Expr[Content], own: Expr[Content]) -> None:
        """The scheduler uses a key for a request whose own content at that depth is ``own``."""
        oblige("S12", named == own)

    @action(by="scheduler")
    def hit(self, r: Expr[Request], x: Expr[Residency]) -> None:
        """A lookup finds a key readable."""
        oblige("S6", self.admitted_in.has(x))
        oblige("S13", self.admitted_in[x] == self.epoch.value)
        oblige("S6", self.ready[x])
        self.answered.add(r, x)
