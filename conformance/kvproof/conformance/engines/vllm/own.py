"""Our own CPU tier behind whichever scheduler, and our own transfers below it, where they fit."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from kvproof.conformance.engines.base import Setup
from kvproof.conformance.engines.vllm.copier import RecordingCopier
from kvproof.conformance.engines.vllm.simulated import SimulatedCopier

_PLACE, _SPEC = "kvproof.impl.connector.own_tier", "KvproofOffloadingSpec"


def exists() -> bool:
    """Whether our spec can be loaded beside the release."""
    try:
        return hasattr(importlib.import_module(_PLACE), _SPEC)
    except ImportError:
        return False


def configure(transfer: Any, setup: Setup) -> None:
    """Name our spec in a run's ``KVTransferConfig``, where the setup has our tier."""
    if setup.tier == "ours":
        extra = {"spec_name": _SPEC, "spec_module_path": _PLACE}
        transfer.kv_connector_extra_config = {**transfer.kv_connector_extra_config, **extra}


def copier(setup: Setup) -> Callable[..., RecordingCopier]:
    """Makes the copier of a rank that a setup asks for."""
    if setup.device == "simulated":
        return functools.partial(SimulatedCopier, setup=setup)
    return RecordingCopier
