"""Finished campaigns, kept so that they need not run again.

``<out>/<release>/budget1.campaign.json`` and ``budget2.campaign.json`` are results of campaigns as
`kvproof fuzz` writes them, with what was asked added.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from kvproof.conformance.errors import UsageError
from kvproof.conformance.fuzz.campaign import CampaignResult
from kvproof.conformance.matrix.budgets import NUMBERS, Asked
from kvproof.conformance.report.evidence import CAMPAIGN, write_text


class Stored(CampaignResult, frozen=True, kw_only=True):
    """A finished campaign, and what it was asked."""

    asked: Asked


def path_of(folder: Path, number: int) -> Path:
    """Where a release whose files are in ``folder`` keeps its campaign ``number``."""
    return folder / f"budget{number}{CAMPAIGN}"


def save(folder: Path, number: int, asked: Asked, result: CampaignResult) -> Stored:
    """Keep a finished campaign; the file is there whole or not at all."""
    stored = Stored(**msgspec.structs.asdict(result), asked=asked)
    text = msgspec.json.format(msgspec.json.encode(stored), indent=2).decode()
    write_text(path_of(folder, number), text + "\n")
    return stored


def load(folder: Path, number: int, asked: Asked) -> Stored | None:
    """The campaign that was kept; None when there is none.

    Raises:
        UsageError: what is there cannot be read, or was asked something else.
    """
    path = path_of(folder, number)
    try:
        stored = msgspec.json.decode(path.read_bytes(), type=Stored)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise UsageError(f"{path}: not a finished campaign: {error} ({_WAY_OUT})") from None
    if stored.asked != asked:
        differing = ", ".join(
            name
            for name in asked.__struct_fields__
            if getattr(stored.asked, name) != getattr(asked, name)
        )
        raise UsageError(f"{path}: finished with another {differing} ({_WAY_OUT})")
    return stored


_WAY_OUT = "--fresh runs it again, --out takes another folder"


def forget(folder: Path) -> None:
    """Drop the campaigns that were kept; the files of their findings stay."""
    for number in NUMBERS:
        path_of(folder, number).unlink(missing_ok=True)
