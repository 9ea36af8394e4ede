"""The importable vLLM release: its classes, by name.

vLLM ships no types and its modules move between releases, so they are looked up at run time; every
attribute below is ``Any``. Nothing outside this package imports vLLM.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kvproof.conformance.engines.vllm.environment import prepare
from kvproof.conformance.errors import UsageError
from kvproof.conformance.releases import importable

_OFFLOADING = "vllm.distributed.kv_transfer.kv_connector.v1.offloading"


class Release:
    """Classes and modules of one release; made once a process by ``load``.

    Raises:
        UsageError: no vLLM is importable, or it lacks a part that the engine drives.
    """

    def __init__(self) -> None:
        prepare()
        self.version = _version()
        try:
            self._import()
        except (ImportError, AttributeError) as error:
            absent = error.name if isinstance(error, ModuleNotFoundError) else None
            if absent is not None and absent.partition(".")[0] != "vllm":
                # A release that another environment installed brings no shared packages here.
                raise UsageError(
                    f"this environment lacks {absent}, which vLLM {self.version} needs:"
                    f" kvproof releases add {self.version}"
                ) from error
            raise UsageError(
                f"vLLM {self.version} cannot be driven by this kvproof: {error}"
            ) from error
        importlib.import_module("logging").getLogger("vllm").setLevel("CRITICAL")

    def _import(self) -> None:
        config = module("vllm.config")
        self.config = config
        self.scheduler_class: Any = module("vllm.v1.core.sched.scheduler").Scheduler
        self.async_scheduler_class: Any = module(
            "vllm.v1.core.sched.async_scheduler"
        ).AsyncScheduler
        self.structured_output: Any = module("vllm.v1.structured_output").StructuredOutputManager
        self.cache_utils = module("vllm.v1.core.kv_cache_utils")
        self.cache_interface = module("vllm.v1.kv_cache_interface")
        self.request_class: Any = module("vllm.v1.request").Request
        self.request_status: Any = module("vllm.v1.request").RequestStatus
        self.sampling_params: Any = module("vllm.sampling_params").SamplingParams
        self.outputs = module("vllm.v1.outputs")
        self.hashing = module("vllm.utils.hashing")
        connector = module("vllm.distributed.kv_transfer.kv_connector.v1.base")
        self.connector_base: Any = connector.KVConnectorBase_V1
        self.connector_metadata: Any = connector.KVConnectorMetadata
        self.supports_hma: Any = connector.SupportsHMA
        self.multi_connector: Any = module(
            "vllm.distributed.kv_transfer.kv_connector.v1.multi_connector"
        ).MultiConnector
        self.connector_role: Any = connector.KVConnectorRole
        self.connector_class: Any = module(
            "vllm.distributed.kv_transfer.kv_connector.v1.offloading_connector"
        ).OffloadingConnector
        self.connector_factory: Any = module(
            "vllm.distributed.kv_transfer.kv_connector.factory"
        ).KVConnectorFactory
        self.aggregator: Any = module(
            "vllm.distributed.kv_transfer.kv_connector.utils"
        ).KVOutputAggregator
        self.offload = _offload()
        self.offload_scheduler = module(f"{_OFFLOADING}.scheduler")
        self.offload_common = module(f"{_OFFLOADING}.common")
        self.numbers_jobs = hasattr(self.offload_common, "OffloadingWorkerMetadata")
        self.offloading_spec: Any = module("vllm.v1.kv_offload.cpu.spec").OffloadingSpec
        self.runner_mixin = module("vllm.v1.worker.kv_connector_model_runner_mixin")
        self.transfer_result: Any = _transfer_result(self.offload)
        self.hash_function: Callable[[Any], bytes] = self.hashing.sha256
        self.cache_utils.init_none_hash(self.hash_function)


def _version() -> str:
    """The release's own version number, whatever the wheel that carries it is called."""
    if importable.folder() is None:
        raise UsageError("vllm is not importable: pip install vllm, or set PYTHONPATH to a release")
    return importable.version() or str(module("vllm").__version__).split("+")[0]


def _offload() -> Any:
    """The module with the offloading interfaces; earlier releases call it by another name."""
    here = importlib.util.find_spec("vllm.v1.kv_offload.base") is not None
    return module(f"vllm.v1.kv_offload.{'base' if here else 'abstract'}")


def _transfer_result(offload: Any) -> Any:
    if hasattr(offload, "TransferResult"):
        return offload.TransferResult
    return module("vllm.v1.kv_offload.worker.worker").TransferResult


def module(name: str) -> Any:
    """Import a module of the release."""
    return importlib.import_module(name)


def call(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call with those keyword arguments that this release's signature knows."""
    known = _parameters(function)
    return function(*args, **{name: value for name, value in kwargs.items() if name in known})


@functools.cache
def _parameters(function: Any) -> frozenset[str]:
    return frozenset(inspect.signature(function).parameters)


@functools.cache
def load() -> Release:
    """The release of this process."""
    return Release()


def structured_output(release: Release, vllm_config: Any) -> Any:
    """The core's helper for grammars, shared by all runs: no request has a grammar."""
    if release not in _structured_output:
        _structured_output[release] = release.structured_output(vllm_config)
    return _structured_output[release]


_structured_output: dict[Release, Any] = {}


def place(error: BaseException, given: Path | None = None) -> str:
    """``vllm/path:line`` of the innermost frame inside the release; empty when there is none.

    A frame in the file ``given``, of a class that takes the place of the release's own, counts as
    well; it is told as ``file.py:line``.
    """
    root = Path(str(module("vllm").__file__)).parent.parent
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if given is not None and Path(frame.filename) == given:
            return f"{given.name}:{frame.lineno}"
        if Path(frame.filename).is_relative_to(root / "vllm"):
            return f"{Path(frame.filename).relative_to(root)}:{frame.lineno}"
    return ""
