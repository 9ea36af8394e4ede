"""What the scheduler does: lookups, and the jobs that it plans."""

from __future__ import annotations

from kvproof.spec.contract.sorts import (
    Content,
    Job,
    Piece,
    Position,
    Request,
    Residency,
    Worker,
)
from kvproof.spec.contract.views import Views
from kvproof.spec.lang import (
    ANY,
    EACH,
    NEVER,
    Bool,
    Expr,
    Int,
    action,
    assume,
    both,
    conclude,
    either,
    every,
    forall,
    implies,
    negate,
    none,
    oblige,
)


class JobMoves(Views):
    """Answers, loads, stores, flushes, and what must be left at the end."""

    # --- lookups ---

    @action(by="engine")
    def ask(self, r: Expr[Request]) -> None:
        """The engine asks what can be loaded."""
        assume(self.alive[r])
        self.asking.add(r)
        self.deferred.discard(r, ANY)

    @action(by="scheduler")
    def look(self, r: Expr[Request]) -> None:
        """The first key of a lookup is looked up: what earlier lookups found counts no more.

        A lookup that asks the tier nothing leans on the last one that did.
        """
        assume(self.alive[r])
        self.answered.discard(r, ANY)

    @action(by="scheduler")
    def await_key(self, r: Expr[Request], x: Expr[Residency]) -> None:
        """A lookup finds a key that is still being stored, which it may wait for."""
        assume(self.alive[r])
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
        assume(self.alive[r])
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
        assume(self.alive[r])
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

    # --- loads ---

    @action(by="scheduler")
    def open_load(self, j: Expr[Job]) -> None:
        """A load is prepared for a request; its residencies are pinned one by one."""
        assume(both(negate(self.job_epoch.has(j)), self.alive[self.job_request[j]]))
        assume(negate(self.store[j]))
        oblige("P16", none(self.asking.match(EACH)))
        self.load.add(j)
        self.job_epoch[j] = self.epoch.value

    @action(by="scheduler")
    def pin(self, j: Expr[Job], x: Expr[Residency]) -> None:
        """A load is promised a residency."""
        assume(both(self.load[j], self.job_epoch[j] == self.epoch.value))
        assume(negate(self.job_step.has(j)))
        oblige("S5", self.answered[self.job_request[j], x])
        oblige("L5", negate(self.spoiled[self.job_request[j], x]))
        conclude("S5", both(self.resident[x], self.ready[x]))
        self.pinned.add(x, j)

    @action(by="scheduler")
    def issue_load(self, j: Expr[Job]) -> None:
        """A load is handed to the workers; its pieces are planned one by one."""
        assume(both(self.load[j], negate(self.job_step.has(j))))
        assume(self.job_epoch[j] == self.epoch.value)
        self.job_step[j] = self.now.value
        self.number(j)
        self.pending.add(j, ANY)
        self.unreported.add(j, ANY)

    def number(self, j: Expr[Job]) -> None:
        """Jobs are numbered in the order in which they are issued."""
        self.issued.set(self.issued.value + 1)
        self.job_number[j] = self.issued.value

    @action(by="scheduler")
    def load_state(self, p: Expr[Piece], named: Expr[Content]) -> None:
        """A load brings a recurrent state: ``named`` is the prefix that the engine is told of."""
        oblige("S9", self.place_content[self.piece_place[p]] == named)

    @action(by="scheduler")
    def plan_load(self, p: Expr[Piece]) -> None:
        """One piece of a load: from a place of a pinned residency to a lease of the request."""
        j = self.piece_job[p]
        l = self.piece_lease[p]
        y = self.piece_place[p]
        x = self.place_residency[y]
        r = self.job_request[j]
        assume(both(self.load[j], self.job_step.has(j), self.job_step[j] == self.now.value))
        assume(both(none(self.submitted.match(j, EACH)), none(self.started.match(p, EACH))))
        assume(none(self.landed.match(p, EACH)))
        assume(self.job_epoch[j] == self.epoch.value)
        oblige("S5", self.pinned[x, j])
        oblige("S4", self.lease_position[l] == self.place_position[y])
        oblige("S4", self.cover.has(y))
        conclude(
            "S10",
            forall(
                Worker,
                lambda w: both(
                    self.placed[y, w],
                    self.slot_is(w, x),
                ),
            ),
        )
        oblige("S11", self.holds[r, l])
        oblige("S11", every(self.holds.match(EACH, l), lambda other: other == r))
        oblige("S11", none(self.settled.match(l, EACH, EACH)))
        oblige("S11", none(self.incoming.match(l, EACH)))
        self.pieces.add(j, p)
        self.using.add(self.residency_slot[x], ANY, j, x)
        self.incoming.add(l, j)

    # --- stores ---

    @action(by="scheduler")
    def issue_store(self, j: Expr[Job]) -> None:
        """A store is handed to the workers; its residencies and pieces follow one by one."""
        assume(both(negate(self.job_epoch.has(j)), negate(self.job_step.has(j))))
        assume(negate(self.load[j]))
        self.store.add(j)
        self.job_epoch[j] = self.epoch.value
        self.job_step[j] = self.now.value
        self.number(j)
        self.pending.add(j, ANY)
        self.unreported.add(j, ANY)

    @action(by="scheduler")
    def make(self, j: Expr[Job], x: Expr[Residency]) -> None:
        """A store takes a residency that the tier has just handed out upon itself."""
        assume(both(self.store[j], self.job_epoch[j] == self.epoch.value))
        assume(both(none(self.submitted.match(j, EACH)), self.job_step[j] == self.now.value))
        oblige("S7", both(self.storing[x], negate(self.maker.has(x))))
        self.maker[x] = j

    @action(by="scheduler")
    def plan_store(self, p: Expr[Piece]) -> None:
        """One piece of a store: from a lease of the request to a place of a residency it makes.

        A lease that the request does not hold is no fault by itself when its bytes are there, on
        every worker, and are the right ones (another request with the same prefix computed them).
        """
        j = self.piece_job[p]
        l = self.piece_lease[p]
        y = self.piece_place[p]
        x = self.place_residency[y]
        r = self.job_request[j]
        same_bytes = forall(
            Worker, lambda w: both(self.written[l, w, self.place_content[y]], self.owns(w, l))
        )
        assume(both(self.store[j], self.job_step[j] == self.now.value))
        assume(both(none(self.submitted.match(j, EACH)), none(self.started.match(p, EACH))))
        assume(none(self.landed.match(p, EACH)))
        assume(self.job_epoch[j] == self.epoch.value)
        oblige("S7", both(self.storing[x], self.maker.has(x), self.maker[x] == j))
        oblige(
            "S1",
            either(
                self.holds[r, l],
                both(self.given_up_at.has(r, l), self.given_up_at[r, l] == self.now.value),
                same_bytes,
            ),
        )
        oblige("S4", either(self.lease_position[l] == self.place_position[y], same_bytes))
        oblige("S1", self.handed_at.has(l))
        oblige("S4", negate(self.cover.has(y)))
        self.pieces.add(j, p)
        self.reading.add(self.lease_block[l], ANY, j, l)
        self.using.add(self.residency_slot[x], ANY, j, x)
        self.cover[y] = p

    # --- flushes, ends ---

    @action(by="scheduler")
    def flush(self, j: Expr[Job]) -> None:
        """The workers are told to wait for a job before this step changes any block.

        With asynchronous scheduling the next step may flush it again before a worker has come to
        this one: what counts is the first.
        """
        self.flush_at.put(j, self.now.value, when=negate(self.flush_at.has(j)))

    @action(by="scheduler")
    def judge_flush(self, j: Expr[Job]) -> None:
        """A flush makes the workers wait for a store: one of its blocks is another's by now."""
        oblige(
            "L6",
            either(
                none(self.unreported.match(j, EACH)),
                self.load[j],
                negate(self.job_epoch[j] == self.epoch.value),
                negate(
                    every(
                        self.pieces.match(j, EACH),
                        lambda p: negate(self.superseded_at.has(self.piece_lease[p])),
                    )
                ),
            ),
        )

    @action(by="scheduler")
    def refuse_reset(self) -> None:
        """The connector answers that it did not forget."""
        oblige("P10", NEVER)

    @action(by="scheduler")
    def crash(self) -> None:
        """A call into the scheduler or a worker raised."""
        oblige("P11", NEVER)

    @action(by="engine")
    def stall(self) -> None:
        """Every copy ends at once, and still the engine does not come to rest.

        The scheduler is at fault when it still puts a lookup off with nothing left to wait for, or
        when it keeps an engine without requests stepping; otherwise the engine itself is stuck (a
        request that it does not ask about any more is not put off by the scheduler).
        """
        assume(none(self.pending.match(EACH, EACH)))
        oblige(
            "L1",
            every(self.deferred.match(EACH, EACH), lambda r, n: n + 1 < self.now.value),
        )
        oblige("L2", negate(none(self.alive.match(EACH))))
        assume(NEVER)

    @action(by="scheduler")
    def drained(self, residue: Int) -> None:
        """Nothing is left to do; ``residue`` counts what the scheduler still keeps."""
        oblige("L2", none(self.unreported.match(EACH, EACH)))
        oblige("P12", none(self.storing.match(EACH)))
        oblige("P12", none(self.pinned.match(EACH, EACH)))
        oblige("P12", residue == 0)
        oblige("P6", every(self.announced.match(EACH), lambda r: self.concluded[r]))
