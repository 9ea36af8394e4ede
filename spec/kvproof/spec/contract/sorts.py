"""The words of the contract. Each sort is one kind of thing; none is ever re-used."""

from __future__ import annotations

from kvproof.spec.lang import Sort


class Request(Sort):
    """One life of a request id."""


class Block(Sort):
    """A GPU block."""


class Lease(Sort):
    """One hand-out of a GPU block."""


class Position(Sort):
    """A place in a request's block table: a group and an index."""


class Content(Sort):
    """What a slot can hold: the hash of a token prefix (with adapter, media and salt)."""


class Worker(Sort):
    """A rank."""


class Job(Sort):
    """A transfer job, load or store."""


class Lane(Sort):
    """Copies of one lane run in the order of their submission; lanes are unordered."""


class Piece(Sort):
    """One block's worth of a job: a lease and a place."""


class Key(Sort):
    """An offload key: block hash and group."""


class Slot(Sort):
    """Where a chunk lies in the tier."""


class Residency(Sort):
    """One hand-out of a slot to a key."""


class Place(Sort):
    """One offset of a residency: room for one block."""
