"""What the record of partly stored chunks says, and which places are filled."""

from __future__ import annotations

from kvproof.spec.contract.sorts import Place, Residency
from kvproof.spec.lang import Bool, both, either, forall, implies, invariant
from kvproof.spec.mechanism.state import MechanismState


class CoverageInvariants(MechanismState):
    """Each method is one invariant; its docstring is its sentence."""

    @invariant("S4")
    def chunks_are_laid_down_in_order(self) -> Bool:
        """A place is filled only when the blocks before it are, as far as they are there."""
        return both(
            forall(
                Place,
                lambda y: implies(
                    self.cover.has(y),
                    both(
                        self.next_offset.has(self.place_residency[y]),
                        self.place_offset[y] < self.next_offset[self.place_residency[y]],
                    ),
                ),
            ),
            forall(
                Residency,
                int,
                lambda x, n: implies(
                    both(
                        self.missing.has(x),
                        self.next_offset.has(x),
                        self.missing[x] <= n,
                        n < self.next_offset[x],
                    ),
                    both(self.stored_at.has(x, n), self.cover.has(self.stored_at[x, n])),
                ),
            ),
        )

    @invariant("P12")
    def what_is_missing_is_of_chunks_in_the_tier(self) -> Bool:
        """Nothing is remembered of a chunk that has gone."""
        return forall(Residency, lambda x: implies(self.missing.has(x), self.resident[x]))

    @invariant("S4")
    def chunks_are_whole(self) -> Bool:
        """A chunk reaches to its end, except while its store is being planned."""
        return forall(
            Residency,
            lambda x: both(
                implies(
                    self.laying[x],
                    both(
                        self.maker.has(x),
                        self.to_complete[self.maker[x], x],
                        self.job_step[self.maker[x]] == self.now.value,
                        self.decided_in.value == self.now.value,
                    ),
                ),
                implies(
                    self.maker.has(x),
                    either(
                        self.laying[x],
                        both(self.next_offset.has(x), self.chunk_blocks[x] <= self.next_offset[x]),
                    ),
                ),
            ),
        )
