"""What a campaign's child process is given, and the lines that it says: one JSON document each."""

from __future__ import annotations

import msgspec

from kvproof.conformance.fuzz.campaign import CampaignProgress, CampaignResult
from kvproof.conformance.fuzz.shrink import DEFAULT_REPLAYS
from kvproof.conformance.matrix.budgets import Asked


class Task(msgspec.Struct, frozen=True):
    """One campaign: on which release, what it is asked, and the folder for what it finds.

    ``max_replays`` bounds the shrinking of each finding.
    """

    release: str
    asked: Asked
    out: str
    max_replays: int = DEFAULT_REPLAYS


class Standing(msgspec.Struct, frozen=True, tag="standing"):
    """Where the campaign stands."""

    now: CampaignProgress


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """The last line of a campaign that was carried out."""

    result: CampaignResult


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The last line of one that could not be; ``problem`` is one line."""

    problem: str


Message = Standing | Ended | Failed


class CampaignFailed(Exception):
    """A campaign could not be carried out; the text is one line that says why."""
