"""What the engine does: requests come and go, blocks are handed out, steps are computed."""

from __future__ import annotations

from kvproof.spec.contract.sorts import Content, Lease, Piece, Request, Worker
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
    conclude,
    either,
    forall,
    implies,
    negate,
    none,
    oblige,
)


class EngineMoves(Views):
    """Requests, leases, and what forwards do to blocks."""

    # --- requests ---

    @action(by="engine")
    def arrive(self, r: Expr[Request]) -> None:
        """A request enters; its incarnation is new."""
        assume(both(negate(self.alive[r]), negate(self.ended[r])))
        self.alive.add(r)

    @action(by="engine")
    def finish(self, r: Expr[Request]) -> None:
        """A request ends (stop, length, abort); its leases are given up one by one."""
        assume(self.alive[r])
        self.alive.discard(r)
        self.ended.add(r)
        self.forget_lookup(r)

    @action(by="engine")
    def preempt(self, r: Expr[Request]) -> None:
        """A running request is put back; nothing that it was answered counts any more."""
        assume(self.alive[r])
        self.forget_lookup(r)

    @action(by="engine")
    def name_prefix(self, named: Expr[Content], own: Expr[Content]) -> None:
        """The engine's hash of a request's prefix ``own``, which it gave ``named`` so far."""
        assume(named == own)

    @action(by="engine")
    def extend(self, r: Expr[Request]) -> None:
        """A session goes on with other tokens than were known."""
        assume(self.alive[r])
        self.forget_lookup(r)

    def forget_lookup(self, r: Expr[Request]) -> None:
        """What the request was answered, and how long it was put off, counts no more."""
        self.answered.discard(r, ANY)
        self.deferred.discard(r, ANY)
        self.putting_off.discard(r)
        self.polls.discard(r)
        self.asking.discard(r)
        self.told.discard(r)

    # --- leases ---

    @action(by="engine")
    def lease(self, r: Expr[Request], l: Expr[Lease]) -> None:
        """A block that nobody holds is handed out for one position of one request."""
        b = self.lease_block[l]
        assume(self.alive[r])
        assume(negate(self.handed_at.has(l)))
        assume(
            implies(
                self.current.has(b),
                both(
                    self.lease_seq[self.current[b]] < self.lease_seq[l],
                    none(self.holds.match(EACH, self.current[b])),
                    none(self.incoming.match(self.current[b], EACH)),
                ),
            )
        )
        self.superseded_at.put(self.current[b], self.now.value, when=self.current.has(b))
        self.current[b] = l
        self.handed_at[l] = self.now.value
        self.holds.add(r, l)
        self.had.add(r, self.lease_position[l])

    @action(by="engine")
    def share(self, r: Expr[Request], l: Expr[Lease]) -> None:
        """A request also holds a lease whose content the GPU prefix cache knows."""
        b = self.lease_block[l]
        assume(both(self.alive[r], negate(self.holds[r, l])))
        assume(both(self.current.has(b), self.current[b] == l))
        assume(none(self.incoming.match(l, EACH)))
        self.holds.add(r, l)
        self.had.add(r, self.lease_position[l])

    @action(by="engine")
    def free(self, r: Expr[Request], l: Expr[Lease]) -> None:
        """A request lets go of a lease: it ended, was preempted, or its window slid on."""
        assume(self.holds[r, l])
        assume(none(self.incoming.match(l, EACH)))
        self.holds.discard(r, l)
        self.given_up_at[r, l] = self.now.value

    @action(by="engine")
    def expect(self, l: Expr[Lease]) -> None:
        """The engine takes an answer: a load is to bring what this lease holds."""
        assume(self.handed_at.has(l))
        self.expected.add(l)

    # --- steps ---

    @action(by="engine")
    def schedule_to(self, r: Expr[Request], end: Int) -> None:
        """A step being scheduled, or a load or fill that has ended, brings a request's first
        ``end`` tokens.
        """
        assume(self.alive[r])
        self.computed_to.put(
            r, end, when=either(negate(self.computed_to.has(r)), self.computed_to[r] < end)
        )

    @action(by="engine")
    def close_window(self) -> None:
        """``schedule()`` ends; what comes now belongs to the next window."""
        self.now.set(self.now.value + 1)

    @action(by="worker")
    def launch(self, w: Expr[Worker]) -> None:
        """A worker begins the next step; it can only be one that was scheduled."""
        assume(self.at[w] + 1 < self.now.value)
        self.at[w] = self.at[w] + 1

    # --- changes of blocks ---

    def may_change(self, w: Expr[Worker], l: Expr[Lease]) -> None:
        """The guards of everything that changes a block on a worker, on behalf of lease ``l``."""
        assume(both(self.handed_at.has(l), self.handed_at[l] <= self.at[w]))
        assume(negate(self.over(w, l)))
        oblige("S3", self.no_earlier_lease_is_read(w, l))

    def over(self, w: Expr[Worker], l: Expr[Lease]) -> Bool:
        """Whether, for the step that the worker executes, the block has been handed out again."""
        return both(self.superseded_at.has(l), self.superseded_at[l] <= self.at[w])

    @action(by="engine")
    def compute(self, w: Expr[Worker], l: Expr[Lease], c: Expr[Content]) -> None:
        """A forward writes one slot: content ``c``, in lease ``l``."""
        self.may_change(w, l)
        assume(none(self.incoming.match(l, EACH)))
        self.owner[self.lease_block[l], w] = l
        self.written.add(l, w, c)
        self.settled.add(l, w, c)

    @action(by="engine")
    def zero(self, w: Expr[Worker], l: Expr[Lease]) -> None:
        """A worker clears a block that was just handed out."""
        self.may_change(w, l)
        assume(none(self.incoming.match(l, EACH)))
        assume(none(self.settled.match(l, w, EACH)))
        self.owner[self.lease_block[l], w] = l

    @action(by="engine")
    def copy_slot(
        self, w: Expr[Worker], source: Expr[Lease], l: Expr[Lease], c: Expr[Content]
    ) -> None:
        """A block copy brings content ``c`` from one lease to another (copy-on-write)."""
        self.may_change(w, l)
        assume(none(self.incoming.match(l, EACH)))
        assume(negate(self.over(w, source)))
        assume(either(self.settled[source, w, c], self.expected[source]))
        oblige("S14", self.settled[source, w, c])
        conclude("S14", both(self.written[source, w, c], self.owns(w, source)))
        assume(negate(self.lease_block[source] == self.lease_block[l]))
        self.owner[self.lease_block[l], w] = l
        self.written.add(l, w, c)
        self.settled.add(l, w, c)

    @action(by="engine")
    def attend(self, w: Expr[Worker], l: Expr[Lease], c: Expr[Content]) -> None:
        """A forward reads content ``c`` from lease ``l``, as its request's position demands.

        What the engine computed itself is its own promise; what lies in the range that was
        answered for is the scheduler's. A recurrent state that is advanced in place is read from
        the lease that this very step has replaced: nothing else may have changed the block yet.
        """
        assume(either(self.settled[l, w, c], self.expected[l]))
        assume(negate(both(self.superseded_at.has(l), self.superseded_at[l] < self.at[w])))
        oblige("S14", self.settled[l, w, c])
        oblige("S14", implies(self.over(w, l), self.owns(w, l)))
        conclude("S14", both(self.written[l, w, c], self.owns(w, l)))

    # --- ends of loads ---

    @action(by="scheduler")
    def settle(self, p: Expr[Piece]) -> None:
        """The engine is told that a load ended well and takes one of its pieces for computed."""
        j = self.piece_job[p]
        l = self.piece_lease[p]
        c = self.place_content[self.piece_place[p]]
        assume(both(self.load[j], self.pieces[j, p], self.incoming[l, j]))
        oblige("S11", none(self.pending.match(j, EACH)))
        oblige("S10", none(self.failed.match(j, EACH)))
        conclude("S10", forall(Worker, lambda w: both(self.written[l, w, c], self.owns(w, l))))
        self.settled.add(l, ANY, c)
        self.incoming.discard(l, j)

    @action(by="scheduler")
    def release(self, p: Expr[Piece]) -> None:
        """The engine is told that a load failed: it computes that piece's tokens itself."""
        j = self.piece_job[p]
        l = self.piece_lease[p]
        assume(both(self.load[j], self.pieces[j, p], self.incoming[l, j]))
        oblige("S11", none(self.pending.match(j, EACH)))
        oblige("P14", negate(none(self.failed.match(j, EACH))))
        self.incoming.discard(l, j)
        self.spoiled.add(self.job_request[j], self.place_residency[self.piece_place[p]])
        self.told.discard(self.job_request[j])
