"""What happens in the tier: slots are handed out, chunks become readable, leave, are forgotten."""

from __future__ import annotations

from kvproof.spec.contract.sorts import Job, Request, Residency
from kvproof.spec.contract.state import State
from kvproof.spec.lang import (
    ANY,
    EACH,
    Expr,
    action,
    assume,
    both,
    conclude,
    implies,
    negate,
    none,
    oblige,
)


class TierMoves(State):
    """Admission, completion, eviction, reset."""

    @action(by="tier")
    def admit(self, x: Expr[Residency]) -> None:
        """The tier hands a free slot to a key that it does not have."""
        k = self.residency_key[x]
        s = self.residency_slot[x]
        assume(negate(self.admitted_in.has(x)))
        assume(
            implies(
                self.latest.has(s),
                self.residency_seq[self.latest[s]] < self.residency_seq[x],
            )
        )
        oblige("S8", self.slot_exists[s])
        oblige("S8", negate(self.where.has(k)))
        oblige("S8", negate(self.occupant.has(s)))
        self.admitted_in[x] = self.epoch.value
        self.resident.add(x)
        self.storing.add(x)
        self.where[k] = x
        self.occupant[s] = x
        self.latest[s] = x
        self.told.discard(ANY)

    @action(by="tier")
    def evict(self, x: Expr[Residency]) -> None:
        """The tier takes a slot back: nobody writes it, nobody reads it."""
        oblige("S8", self.resident[x])
        oblige("S7", negate(self.storing[x]))
        oblige("S7", none(self.pinned.match(x, EACH)))
        self.leave(x)
        self.ready.discard(x)
        self.answered.discard(ANY, x)
        self.told.discard(ANY)

    def leave(self, x: Expr[Residency]) -> None:
        """Key and slot part."""
        self.resident.discard(x)
        self.where.discard(self.residency_key[x])
        self.occupant.discard(self.residency_slot[x])

    @action(by="scheduler")
    def publish(self, j: Expr[Job], x: Expr[Residency]) -> None:
        """A store is completed: a key of it becomes readable."""
        oblige("P5", both(self.job_epoch.has(j), self.job_epoch[j] == self.epoch.value))
        oblige("P4", both(self.storing[x], self.maker.has(x), self.maker[x] == j))
        oblige("P4", none(self.unreported.match(j, EACH)))
        conclude("S6", none(self.pending.match(j, EACH)))
        oblige("S6", none(self.failed.match(j, EACH)))
        self.storing.discard(x)
        self.ready.add(x)
        self.told.discard(ANY)

    @action(by="scheduler")
    def drop(self, j: Expr[Job], x: Expr[Residency]) -> None:
        """A store has failed: a key of it goes."""
        oblige("P5", both(self.job_epoch.has(j), self.job_epoch[j] == self.epoch.value))
        oblige("P4", both(self.storing[x], self.maker.has(x), self.maker[x] == j))
        oblige("P4", none(self.unreported.match(j, EACH)))
        oblige("P14", negate(none(self.failed.match(j, EACH))))
        self.storing.discard(x)
        self.leave(x)
        self.told.discard(ANY)

    @action(by="scheduler")
    def unpin(self, j: Expr[Job], x: Expr[Residency]) -> None:
        """A load is completed: a key of it may go again."""
        oblige("P5", both(self.job_epoch.has(j), self.job_epoch[j] == self.epoch.value))
        oblige("P4", self.pinned[x, j])
        oblige("P4", both(self.job_step.has(j), none(self.unreported.match(j, EACH))))
        self.pinned.discard(x, j)

    # --- what the tier is told of requests ---

    @action(by="scheduler")
    def tier_new(self, r: Expr[Request]) -> None:
        """The tier is told of a request, once."""
        oblige("P6", negate(self.announced[r]))
        self.announced.add(r)

    @action(by="scheduler")
    def tier_call(self, r: Expr[Request]) -> None:
        """The scheduler looks up, prepares or touches for a request: between its two ends."""
        oblige("P6", both(self.announced[r], negate(self.concluded[r])))

    @action(by="scheduler")
    def tier_finished(self, r: Expr[Request]) -> None:
        """The tier is told that a request has ended, once."""
        oblige("P6", both(self.announced[r], negate(self.concluded[r])))
        self.concluded.add(r)

    @action(by="engine")
    def reset(self) -> None:
        """Everything stored, or issued to be stored, is forgotten."""
        self.epoch.set(self.epoch.value + 1)
        self.resident.discard(ANY)
        self.storing.discard(ANY)
        self.ready.discard(ANY)
        self.where.discard(ANY)
        self.occupant.discard(ANY)
        self.pinned.discard(ANY, ANY)
        self.answered.discard(ANY, ANY)
        self.told.discard(ANY)
        self.reading.discard(ANY, ANY, ANY, ANY)
