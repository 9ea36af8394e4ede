"""The tap on the tier: every call on the release's offloading manager, with its answers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from kvproof.conformance.engines.vllm.recorder import Recorder
from kvproof.conformance.trace.events import (
    SCHEDULER_RANK,
    CompleteLoad,
    CompleteStore,
    PrepareLoad,
    PrepareStore,
    Probe,
    Promote,
    Promoted,
    TierRequest,
    TierReset,
    Touch,
)

_ANSWERS = {
    "HIT": "hit",
    "MISS": "miss",
    "HIT_PENDING": "pending",
    "RETRY": "retry",
    "True": "hit",
    "False": "miss",
    "None": "pending",
}


class TierTap:
    """Wraps the public calls of one manager in place.

    ``owner`` maps the transfer spec that a prepare call returned to the incarnation that it was
    prepared for, since a job carries only a request id.
    """

    def __init__(self, recorder: Recorder, manager: Any, offload: Any) -> None:
        self._recorder = recorder
        self._offload = offload
        self._names: dict[bytes, str] = {}
        self.owner: dict[int, tuple[Any, str]] = {}
        for name, wrap in (
            ("lookup", self._lookup),
            ("touch", self._touch),
            ("prepare_load", self._prepare_load),
            ("prepare_store", self._prepare_store),
            ("complete_load", self._complete_load),
            ("complete_store", self._complete_store),
            ("on_new_request", self._phase("new")),
            ("on_request_finished", self._phase("finished")),
            ("reset_cache", self._reset),
        ):
            if hasattr(manager, name):
                setattr(manager, name, wrap(getattr(manager, name)))
        # A manager of several tiers uses its first one for itself as well, by these two calls.
        primary = getattr(manager, "primary_tier", None)
        if primary is not None:
            primary.prepare_write = self._promote(primary.prepare_write)
            primary.complete_write = self._promoted(primary.complete_write)

    def forget(self) -> None:
        """No key or transfer that was seen will be seen again."""
        self._names.clear()
        self.owner.clear()

    def key(self, key: bytes) -> str:
        """``<block hash in hex>:<group>`` of a release's key."""
        name = self._names.get(key)
        if name is None:
            offload = self._offload
            digest = bytes(offload.get_offload_block_hash(key)).hex()
            name = self._names[key] = f"{digest}:{offload.get_offload_group_idx(key)}"
        return name

    def _keys(self, keys: Iterable[bytes]) -> list[str]:
        return [self.key(key) for key in keys]

    def _lookup(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self._recorder

        def lookup(key: bytes, context: Any) -> Any:
            answer = inner(key, context)
            result = _ANSWERS[getattr(answer, "name", None) or str(answer)]
            recorder.emit(
                Probe(
                    recorder.step,
                    SCHEDULER_RANK,
                    recorder.of_context(context),
                    self.key(key),
                    result,
                )
            )
            return answer

        return lookup

    def _touch(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self._recorder

        def touch(keys: Iterable[bytes], *context: Any) -> Any:
            keys = list(keys)
            name = recorder.of_context(*context) if context else recorder.latest
            recorder.emit(Touch(recorder.step, SCHEDULER_RANK, name, self._keys(keys)))
            return inner(keys, *context)

        return touch

    def _prepare_load(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self._recorder

        def prepare_load(keys: Iterable[bytes], context: Any) -> Any:
            keys = list(keys)
            name = recorder.of_context(context)
            slots: list[int] = []
            try:
                spec = inner(keys, context)
                slots = [int(slot) for slot in spec.block_ids]
                self.owner[id(spec)] = (spec, name)
            finally:
                recorder.emit(
                    PrepareLoad(recorder.step, SCHEDULER_RANK, name, self._keys(keys), slots)
                )
            return spec

        return prepare_load

    def _prepare_store(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self._recorder

        def prepare_store(keys: Iterable[bytes], context: Any) -> Any:
            keys = list(keys)
            name = recorder.of_context(context)
            output = inner(keys, context)
            evicted: list[str] = []
            accepted: list[tuple[str, int]] = []
            if output is not None:
                self.owner[id(output.store_spec)] = (output.store_spec, name)
                evicted = self._keys(output.evicted_keys)
                slots = (int(slot) for slot in output.store_spec.block_ids)
                accepted = list(zip(self._keys(output.keys_to_store), slots, strict=True))
            recorder.emit(
                PrepareStore(
                    recorder.step,
                    SCHEDULER_RANK,
                    name,
                    self._keys(keys),
                    output is None,
                    evicted,
                    accepted,
                )
            )
            return output

        return prepare_store

    def _complete_load(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self._recorder

        def complete_load(keys: Iterable[bytes], *context: Any) -> Any:
            recorder.emit(CompleteLoad(recorder.step, SCHEDULER_RANK, sorted(self._keys(keys))))
            return inner(keys, *context)

        return complete_load

    def _complete_store(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self._recorder

        # Early managers take no context: then what follows the keys is the success.
        takes_context = "req_context" in inspect.signature(inner).parameters

        def complete_store(keys: Iterable[bytes], *rest: Any, **options: Any) -> Any:
            said = rest[1:] if takes_context else rest
            success = bool(said[0] if said else options.get("success", True))
            recorder.emit(
                CompleteStore(recorder.step, SCHEDULER_RANK, sorted(self._keys(keys)), success)
            )
            return inner(keys, *rest, **options)

        return complete_store

    def _promote(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self._recorder

        def prepare_write(keys: Iterable[bytes], context: Any) -> Any:
            output = inner(keys, context)
            if output is not None:
                slots = (int(slot) for slot in output.store_spec.block_ids)
                accepted = list(zip(self._keys(output.keys_to_store), slots, strict=True))
                name = recorder.of_context(context)
                evicted = self._keys(output.evicted_keys)
                recorder.emit(Promote(recorder.step, SCHEDULER_RANK, name, evicted, accepted))
            return output

        return prepare_write

    def _promoted(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self._recorder

        def complete_write(keys: Iterable[bytes], context: Any, success: bool = True) -> Any:
            names = sorted(self._keys(keys))
            recorder.emit(Promoted(recorder.step, SCHEDULER_RANK, names, bool(success)))
            return inner(keys, context, success)

        return complete_write

    def _phase(self, phase: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        recorder = self._recorder

        def wrap(inner: Callable[..., Any]) -> Callable[..., Any]:
            def announced(context: Any) -> Any:
                name = recorder.of_context(context)
                recorder.emit(TierRequest(recorder.step, SCHEDULER_RANK, name, phase))
                return inner(context)

            return announced

        return wrap

    def _reset(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self._recorder

        def reset_cache() -> Any:
            recorder.emit(TierReset(recorder.step, SCHEDULER_RANK))
            return inner()

        return reset_cache
