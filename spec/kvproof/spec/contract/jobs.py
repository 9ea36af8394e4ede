"""What the scheduler does: the jobs that it plans, and what must be left at the end."""

from __future__ import annotations

from kvproof.spec.contract.sorts import (
    Content,
    Job,
    Piece,
    Residency,
    Worker,
)
from kvproof.spec.contract.views import Views
from kvproof.spec.lang import (
    ANY,
    EACH,
    NEVER,
    Expr,
    Int,
    action,
    assume,
    both,
    conclude,
    either,
    every,
    forall,
    negate,
    none,
    oblige,
)


class JobMoves(Views):
    """Loads, stores, flushes, ends."""

    # --- loads ---

    @action(by="scheduler")
    def open_load(self, j: Expr[Job]) -> None:
        """A load is prepared for a request; its residencies are pinned one by one."""
        assume(negate(self.job_epoch.has(j)))
        oblige("P13", self.alive[self.job_request[j]])
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
