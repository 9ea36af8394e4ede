"""What a client asks of the tier for one request; whatever it sends, nothing here raises.

``kv_transfer_params`` comes from the network, so each value may be of any type. A value that makes
no sense is passed over with a warning, as if it had not been sent.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, TypeVar

from vllm.logger import init_logger
from vllm.v1.kv_offload.base import Locality, Medium, ReqContext, TierFilter, TierMatcher

from kvproof.impl.scheduler.request import Limits

logger = init_logger(f"vllm.{__name__}")  # vLLM shows what is below its own name

MAX_LOAD, MAX_STORE, LOAD_TIERS = "max_load_tokens", "max_offload_tokens", "kv_load_tiers"
"""The keys that are read here; a tier may read others."""

_Kind = TypeVar("_Kind", bound=Enum)


class _NoSuch(Exception):
    """A word that names nothing."""


def tidy(request: Any) -> None:
    """Take away parameters that are no mapping: the core itself would stumble over them next."""
    parameters = request.kv_transfer_params
    if parameters is not None and not isinstance(parameters, dict):
        logger.warning(
            "kv_transfer_params must be an object, not %s: they are passed over",
            type(parameters).__name__,
        )
        request.kv_transfer_params = None


def context_of(request: Any) -> ReqContext:
    """What the tier knows a request by. ``tidy`` came before."""
    return ReqContext(
        req_id=request.request_id,
        kv_transfer_params=request.kv_transfer_params,
        kv_hints=request.kv_hints,
        load_tier_filter=_load_tiers((request.kv_transfer_params or {}).get(LOAD_TIERS)),
    )


def limits_of(request: Any) -> Limits:
    """A client's caps and whether it forbids to read. ``tidy`` came before."""
    parameters = request.kv_transfer_params or {}
    return Limits(
        max_load=_cap(parameters, MAX_LOAD),
        max_store=_cap(parameters, MAX_STORE),
        skip_reading=bool(request.skip_reading_prefix_cache),
    )


def _cap(parameters: dict[str, Any], name: str) -> int | None:
    value = parameters.get(name)
    if value is None or (type(value) is int and value >= 0):
        return value
    logger.warning("%s must be an integer of at least 0, not %r: it is passed over", name, value)
    return None


def _load_tiers(value: Any) -> TierFilter:
    """Which tiers may be read: a list of ``{"medium": ..., "locality": ...}``, each key optional.

    An empty list is none of the tiers beyond host memory; a list of which no entry makes sense is
    all of them, as is no list.
    """
    if value is None:
        return TierFilter.ALL
    if not isinstance(value, list):
        logger.warning("%s must be a list, not %r: it is passed over", LOAD_TIERS, value)
        return TierFilter.ALL
    matchers = []
    for entry in value:
        try:
            if not isinstance(entry, dict):
                raise _NoSuch
            medium, locality = entry.get("medium"), entry.get("locality")
            matchers.append(TierMatcher(_named(Medium, medium), _named(Locality, locality)))
        except _NoSuch:
            logger.warning("%s: %r names no tier: it is passed over", LOAD_TIERS, entry)
    return TierFilter.ALL if value and not matchers else TierFilter(tuple(matchers))


def _named(kind: type[_Kind], word: Any) -> _Kind | None:
    """A member by its value, in either case; None for no word."""
    if word is None:
        return None
    found = [member for member in kind if isinstance(word, str) and member.value == word.upper()]
    if not found:
        raise _NoSuch
    return found[0]
