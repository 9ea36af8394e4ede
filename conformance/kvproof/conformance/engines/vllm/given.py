"""Somebody else's class in the place of the release's own: a scheduler, a connector, or a spec.

A scheduler replaces ``OffloadingConnectorScheduler`` inside the release's connector; a connector is
loaded by module path, as vLLM loads it; an ``OffloadingSpec`` brings the tier. Everything else of
the engine stays the release's.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from kvproof.conformance.engines.names import place_and_name
from kvproof.conformance.engines.vllm.release import Release
from kvproof.conformance.errors import UsageError

_CALLS = (
    "get_num_new_matched_tokens",
    "update_state_after_alloc",
    "build_connector_meta",
    "update_connector_output",
    "request_finished",
)
"""What the release's connector asks of its scheduler in every release."""


class Given:
    """A class that takes part, loaded by the name that histories keep.

    Attributes:
        name: ``package.module:Class`` or ``file.py:Class``.
        kind: "scheduler", "connector" or "spec".
        file: the file that the class lies in, for the places of exceptions.

    Raises:
        UsageError: there is no such class, its import fails, or it is none of the three.
    """

    def __init__(self, release: Release, name: str) -> None:
        self.name = name
        self._release = release
        self._class = _load(name)
        self.kind = _kind(release, name, self._class)
        file = getattr(sys.modules.get(self._class.__module__), "__file__", None)
        self.file = Path(file) if file else None

    def configure(self, transfer: Any) -> None:
        """Name the class in a run's ``KVTransferConfig``, if that is where it is named."""
        place = self._class.__module__
        if self.kind == "connector":
            transfer.kv_connector = self._class.__name__
            transfer.kv_connector_module_path = place
        elif self.kind == "spec":
            extra = transfer.kv_connector_extra_config
            extra["spec_name"], extra["spec_module_path"] = self._class.__name__, place

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """While this is open, the release's connector makes schedulers of the given class."""
        connector: Any = sys.modules[self._release.connector_class.__module__]
        stock = connector.OffloadingConnectorScheduler
        if self.kind == "scheduler":
            connector.OffloadingConnectorScheduler = self._class
        try:
            yield
        finally:
            connector.OffloadingConnectorScheduler = stock


def _load(given: str) -> type[Any]:
    place, name = place_and_name(given)
    try:
        found: Any = _module(place)
        for part in name.split("."):
            found = getattr(found, part)
    except AttributeError:
        raise UsageError(f"{place} has no class {name}") from None
    except Exception as error:
        why = " ".join(str(error).split())
        raise UsageError(f"{place} cannot be imported: {type(error).__name__}: {why}") from error
    if not isinstance(found, type):
        raise UsageError(f"{given} is no class")
    return found


def _module(place: str) -> ModuleType:
    if not place.endswith(".py"):
        # Last on the path: the folder that one stands in brings modules and shadows none.
        if os.getcwd() not in sys.path:
            sys.path.append(os.getcwd())
        return importlib.import_module(place)
    file = Path(place).absolute()
    # vLLM loads connectors and specs by module name, so a file gets one of its own.
    name = f"{file.stem}_{hashlib.sha256(str(file).encode()).hexdigest()[:8]}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None and spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]


def _kind(release: Release, name: str, found: type[Any]) -> str:
    if issubclass(found, release.connector_base):
        return "connector"
    if issubclass(found, release.offloading_spec):
        return "spec"
    lacking = [call for call in _CALLS if not callable(getattr(found, call, None))]
    if lacking:
        raise UsageError(f"{name} is no connector scheduler: it lacks {', '.join(lacking)}")
    return "scheduler"
