"""What a simulated device has seen, as findings: it is broken as it stands, no state is needed."""

from __future__ import annotations

from kvproof.conformance.monitor.finding import Finding
from kvproof.conformance.trace.events import Raced, WrongBytes
from kvproof.spec.ids import CONTRACT


def seen(event: Raced | WrongBytes, index: int) -> Finding:
    """The finding that such an event is."""
    if isinstance(event, Raced):
        broken, action = _broken_by(event), "race"
        facts = {
            "earlier": f"{event.earlier} {event.earlier_does}",
            "later": f"{event.later} {event.later_does}",
            "bytes": event.where,
            "missing": f"the end of {event.earlier} before {event.later} {event.later_does}",
        }
        kind = (
            f"{_kind(event.earlier)} {event.earlier_does}, {_kind(event.later)} {event.later_does}"
        )
    else:
        broken, action = ("S14" if "forward" in event.what else "S10"), "bytes"
        facts, kind = {"what": event.what}, ""
    return Finding(
        id=broken,
        sentence=CONTRACT[broken].sentence,
        culprit="scheduler",
        severity="unsafe",
        index=index,
        step=event.step,
        action=action,
        event=str(event.__struct_config__.tag),
        facts=facts,
        kind=kind,
    )


def _kind(access: str) -> str:
    """Whose access it is: "store", "load", "forward" and the like."""
    words = access.removeprefix("the ").split()
    return words[0] if words else access


def _broken_by(race: Raced) -> str:
    """Which promise a race breaks, by who is in it and what they meet at."""
    earlier, later = _kind(race.earlier), _kind(race.later)
    if "tier" in race.where:
        return "S7"
    if "KV cache" not in race.where:
        return "S10"
    if later == "store":
        return "S2"
    return "S3" if earlier == "store" else "S11"
