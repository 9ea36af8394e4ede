"""A second connector beside the release's own, composed by the release's ``MultiConnector``.

It stands for the other connectors that deployments combine with offloading: one that brings KV
from elsewhere and writes it into a request's blocks while the request waits. It knows a prompt once
a request with just this prompt has ended, and then answers for all its whole blocks; it is asked
first, so the offloading connector is told of no external tokens for such a request. What it writes
is right, and each worker has written it when it starts its step; only the word that it has may come
late.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable
from typing import Any

import msgspec

from kvproof.conformance.engines.base import Emit, Setup
from kvproof.conformance.engines.vllm.copier import RecordingCopier
from kvproof.conformance.engines.vllm.release import Release
from kvproof.conformance.trace.events import Filled

NAME = "SecondConnector"
OFFLOADING = 1
"""Place of the offloading connector among the children of a ``MultiConnector``."""


class Fill(msgspec.Struct, frozen=True):
    """Tokens ``[start, end)`` of a request are to be written; ``name`` is its incarnation."""

    identity: str
    name: str
    start: int
    end: int


class SecondConnector:
    """What it does, in both roles; ``connector_class`` puts the release's bases under it.

    Attributes:
        metadata: makes the release's kind of metadata, with ``planned``.
        name_of: how the trace calls a request object. Set for the scheduler role.
        tokens_per_hit: what it answers is a multiple of this.
        copier: the copier of the same worker, which knows the step and which copies end in it. Set
            for the worker role, like ``emit`` and ``rank``.
    """

    metadata: Callable[[list[Fill]], Any]
    name_of: Callable[[Any], str]
    tokens_per_hit: int
    copier: RecordingCopier
    emit: Emit
    rank: int
    _connector_metadata: Any

    def begin(self) -> None:
        """Know nothing yet."""
        self._known: set[tuple[int, ...]] = set()
        self._asked: dict[str, int] = {}
        self._planned: list[Fill] = []
        self._ended: list[str] = []

    # --- scheduler -------------------------------------------------------------------------------

    def get_num_new_matched_tokens(self, request: Any, computed: int) -> tuple[int, bool]:
        """All whole blocks of a known prompt but its last token, loaded asynchronously."""
        prompt = tuple(request.prompt_token_ids)
        self._asked[request.request_id] = computed
        if prompt not in self._known:
            return 0, False
        # At least one token is left to compute: somebody must say the first new one.
        found = (len(prompt) - 1) // self.tokens_per_hit * self.tokens_per_hit
        return (found - computed, True) if found > computed else (0, False)

    def update_state_after_alloc(self, request: Any, blocks: Any, external: int) -> None:
        """Plan to write what was answered."""
        if external:
            start = self._asked[request.request_id]
            name = self.name_of(request)
            self._planned.append(Fill(request.request_id, name, start, start + external))

    def build_connector_meta(self, output: Any) -> Any:
        """Hand the plans of this step to the workers."""
        planned, self._planned = self._planned, []
        return self.metadata(planned)

    def request_finished(self, request: Any, blocks: Any) -> tuple[bool, None]:
        """Know its prompt from now on; its blocks are free at once."""
        self._known.add(tuple(request.prompt_token_ids))
        self._asked.pop(request.request_id, None)
        return False, None

    request_finished_all_groups = request_finished

    def reset_cache(self) -> bool:
        """Forget all prompts."""
        self._known.clear()
        return True

    # --- worker ----------------------------------------------------------------------------------

    def start_load_kv(self, forward_context: Any, **_kwargs: Any) -> None:
        """Write what was planned for this step."""
        for fill in self._connector_metadata.planned:
            self.emit(Filled(self.copier.step, self.rank, fill.name, fill.start, fill.end))
            self._ended.append(fill.identity)

    def get_finished(self, finished: set[str]) -> tuple[None, set[str] | None]:
        """The requests whose blocks are written, when this step's copies end; told once."""
        finish = self.copier.finish
        if not (finish in ("all", "loads") or (finish == "rank0" and self.rank == 0)):
            told = self._ended[:1] if finish == "oldest" else []
        else:
            told = self._ended
        self._ended = self._ended[len(told) :]
        return None, set(told) or None

    def wait_for_layer_load(self, layer_name: str) -> None:
        """Nothing is loaded by layers."""

    def save_kv_layer(self, *_args: Any, **_kwargs: Any) -> None:
        """Nothing is saved."""

    def wait_for_save(self) -> None:
        """Nothing is saved."""


@functools.cache
def connector_class(release: Release) -> type[Any]:
    """The second connector as a connector of this release, registered under ``NAME``."""
    base = release.connector_base
    kind: Any = type("SecondMetadata", (release.connector_metadata,), {})

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        base.__init__(self, *args, **kwargs)
        self.begin()

    def metadata(planned: list[Fill]) -> Any:
        made = kind()
        made.planned = planned
        return made

    made = type(
        NAME,
        (SecondConnector, base, release.supports_hma),
        {"__init__": __init__, "metadata": staticmethod(metadata)},
    )
    release.connector_factory._registry[NAME] = lambda: made
    return made


def compose(release: Release, transfer: Any) -> None:
    """Turn a run's ``KVTransferConfig`` for one connector into one for both."""
    connector_class(release)
    first = {"kv_connector": NAME, "kv_role": "kv_both"}
    second = {
        "kv_connector": transfer.kv_connector,
        "kv_role": transfer.kv_role,
        "kv_connector_extra_config": transfer.kv_connector_extra_config,
    }
    if transfer.kv_connector_module_path:
        second["kv_connector_module_path"] = transfer.kv_connector_module_path
    transfer.kv_connector, transfer.kv_connector_module_path = "MultiConnector", None
    transfer.kv_connector_extra_config = {"connectors": [first, second]}


def offloading(connector: Any) -> Any:
    """The offloading connector: ``connector`` itself, or a child of a ``MultiConnector``."""
    children = getattr(connector, "_connectors", None)
    return connector if children is None else children[OFFLOADING]


def offloading_part(metadata: Any) -> Any:
    """The offloading connector's part of a metadata object of either direction."""
    parts = getattr(metadata, "metadata", None)
    return parts[OFFLOADING] if isinstance(parts, tuple) else metadata


def with_offloading_part(metadata: Any, part: Any) -> Any:
    """``metadata`` with another part for the offloading connector."""
    if offloading_part(metadata) is metadata:
        return part
    whole = copy.copy(metadata)
    whole.metadata = (*metadata.metadata[:OFFLOADING], part, *metadata.metadata[OFFLOADING + 1 :])
    return whole


def attach_scheduler(connector: Any, setup: Setup, name_of: Callable[[Any], str]) -> None:
    """Tell the second connector's scheduler role, if there is one, what it needs of a run."""
    for child in getattr(connector, "_connectors", ()):
        if isinstance(child, SecondConnector):
            child.name_of = name_of
            child.tokens_per_hit = math.lcm(*(g.tokens_per_block for g in setup.groups))


def attach_worker(connector: Any, rank: int, copier: RecordingCopier, emit: Emit) -> None:
    """The same for the worker role of one rank."""
    for child in getattr(connector, "_connectors", ()):
        if isinstance(child, SecondConnector):
            child.rank, child.copier, child.emit = rank, copier, emit
