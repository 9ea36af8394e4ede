"""Which job touched a block or a slot last: what a job of the other direction has to wait for."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kvproof.impl.transfer.pieces import Pieces


class LastTouch:
    """For each block and each slot, the latest job of one direction that reads or writes it.

    Jobs are known by their place in the order of submission, from 1; 0 is no job. Both are as many
    numbers as there are blocks and slots, and each question is one look into them.
    """

    def __init__(self, blocks: int, slots: int) -> None:
        self._blocks = np.zeros(blocks, np.int64)
        self._slots = np.zeros(slots, np.int64)

    def note(self, place: int, moved: Iterable[Pieces]) -> None:
        """A job touches what it moves."""
        for one in moved:
            self._blocks[one.blocks] = place
            self._slots[one.slots] = place

    def of_blocks(self, moved: Iterable[Pieces]) -> int:
        """The latest job that touches one of these blocks."""
        return max((int(self._blocks[one.blocks].max(initial=0)) for one in moved), default=0)

    def of_slots(self, moved: Iterable[Pieces]) -> int:
        """The latest job that touches one of these slots."""
        return max((int(self._slots[one.slots].max(initial=0)) for one in moved), default=0)
