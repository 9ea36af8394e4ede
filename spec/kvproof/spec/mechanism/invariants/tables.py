"""What the scheduler reads and remembers of requests, and what is true of them."""

from __future__ import annotations

from kvproof.spec.contract.sorts import Content, Lease, Position, Request, Residency
from kvproof.spec.lang import (
    EACH,
    Bool,
    both,
    either,
    every,
    forall,
    implies,
    invariant,
    negate,
    none,
)
from kvproof.spec.mechanism.state import MechanismState


class RequestInvariants(MechanismState):
    """Each method is one invariant; its docstring is its sentence."""

    @invariant("P6")
    def the_tier_is_told_of_each_life_once(self) -> Bool:
        """A request in the table lives and was announced; one that waits for its goodbye, too."""
        return forall(
            Request,
            lambda r: both(
                implies(
                    self.tracked[r],
                    both(self.alive[r], self.announced[r], negate(self.concluded[r])),
                ),
                implies(
                    self.ending[r],
                    both(self.ended[r], self.announced[r], negate(self.concluded[r])),
                ),
                implies(
                    self.announced[r],
                    either(self.tracked[r], self.ending[r], self.concluded[r]),
                ),
                implies(self.concluded[r], self.ended[r]),
            ),
        )

    @invariant("S1")
    def tables_list_what_is_held(self) -> Bool:
        """M4: the engine's table lists what the request holds, each lease at its position."""
        return both(
            forall(
                Request,
                Position,
                Lease,
                lambda r, q, l: implies(
                    self.lists[r, q, l], both(self.holds[r, l], self.lease_position[l] == q)
                ),
            ),
            forall(
                Request,
                Position,
                Lease,
                lambda r, q, l: implies(
                    self.last_table[r, q, l],
                    both(
                        self.lease_position[l] == q,
                        self.given_up_at.has(r, l),
                        self.given_up_at[r, l] == self.now.value,
                        self.handed_at.has(l),
                        self.had[r, q],
                    ),
                ),
            ),
        )

    @invariant("S11")
    def destinations_are_new(self) -> Bool:
        """What comes with an answer that is taken was handed out in this window, to one request."""
        return forall(
            Request,
            Position,
            Lease,
            lambda r, q, l: implies(
                self.fresh[r, q, l],
                both(
                    self.holds[r, l],
                    self.lease_position[l] == q,
                    self.handed_at.has(l),
                    self.handed_at[l] == self.now.value,
                    every(self.holds.match(EACH, l), lambda other: other == r),
                    none(self.incoming.match(l, EACH)),
                ),
            ),
        )

    @invariant("S12")
    def hashes_name_their_prefix(self) -> Bool:
        """A hash of a request names the prefix that the request has."""
        return forall(Content, Content, lambda c, d: implies(self.hashed[c, d], c == d))

    @invariant("P7")
    def offers_are_computed(self) -> Bool:
        """What was offered is computed by the end of the step: the count never falls."""
        return forall(
            Request,
            int,
            lambda r, n: implies(
                self.offered[r, n], both(self.computed_to.has(r), n <= self.computed_to[r])
            ),
        )

    @invariant("S5")
    def what_was_found_is_there_while_nothing_is_lost(self) -> Bool:
        """M8: what the latest lookup found is still a hit, unless something was lost since."""
        return both(
            forall(
                Request,
                lambda r: implies(
                    self.looked_at.has(r),
                    both(self.tracked[r], self.looked_at[r] <= self.losses.value),
                ),
            ),
            forall(
                Request,
                Residency,
                lambda r, x: implies(
                    self.found[r, x],
                    both(
                        self.tracked[r],
                        implies(
                            both(self.looked_at.has(r), self.looked_at[r] == self.losses.value),
                            both(self.answered[r, x], negate(self.refused[r, x])),
                        ),
                    ),
                ),
            ),
        )

    @invariant("P12")
    def what_is_refused_is_there(self) -> Bool:
        """Failures are remembered of requests in the table, and of chunks in the tier."""
        return forall(
            Request,
            Residency,
            lambda r, x: implies(self.refused[r, x], both(self.tracked[r], self.ready[x])),
        )

    @invariant("L5")
    def what_failed_is_refused(self) -> Bool:
        """Where a load failed for a request, its key is refused while it lies where it lay."""
        return forall(
            Request,
            Residency,
            lambda r, x: implies(
                self.spoiled[r, x],
                both(
                    self.admitted_in.has(x),
                    either(self.refused[r, x], negate(self.resident[x]), self.ended[r]),
                ),
            ),
        )
