"""Connector schedulers over one engine's objects: block tables, requests, configuration."""

from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kvproof.conformance.engines.base import GroupSetup, Setup
from kvproof.conformance.engines.vllm import configs, features, own
from kvproof.conformance.engines.vllm.release import load, module

BLOCK = 16
"""Tokens of a block, of a chunk and of a block hash."""

WINDOW = 1024
"""Tokens that a windowed group attends to."""

_LONGEST = 1 << 22
_OFFLOADING = "vllm.distributed.kv_transfer.kv_connector.v1.offloading"


@dataclass(frozen=True)
class Side:
    """One scheduler and its tier."""

    name: str
    scheduler: Any
    manager: Any

    def ask(self, request: Any) -> int | None:
        """How many tokens can be loaded for a request of which the GPU has nothing."""
        tokens: int | None
        tokens, _ = self.scheduler.get_num_new_matched_tokens(request, 0, None)
        return tokens

    def end(self, jobs: Any) -> None:
        """All workers report ``jobs``."""
        meta = module(f"{_OFFLOADING}.common").OffloadingWorkerMetadata(
            completed_jobs=dict.fromkeys(jobs, 1)
        )
        self.scheduler.update_connector_output(
            load().outputs.KVConnectorOutput(kv_connector_worker_meta=meta)
        )


class Scene:
    """All sides, and the core's KV-cache manager.

    Attributes:
        groups: how many KV-cache groups there are: one of full attention, the others windowed.
        sides: the release's own scheduler, kvproof's over the release's tier, and over its own.
        spare: a third tier of the same contents, for floors.
        tables: the core's KV-cache manager.
    """

    def __init__(self, windows: int, gpu_blocks: int, slots: int) -> None:
        release = load()
        full = GroupSetup("full", BLOCK)
        window = GroupSetup("window", BLOCK, WINDOW)
        setup = Setup((full, *[window] * windows), num_gpu_blocks=gpu_blocks, num_slots=slots)
        config = configs.build(release, features.detect(release), setup)
        # Nobody listens: events would only gather.
        config.vllm_config.kv_events_config = None
        self._config = config
        self.groups = windows + 1
        stock, stock_tier = self._side(release.offload_scheduler.OffloadingConnectorScheduler)
        kind = module("kvproof.impl.connector.scheduler").SchedulerRole
        ours, our_tier = self._side(kind)
        both_ours, own_tier = self._side(kind, "ours")
        self.sides = (
            Side(f"vLLM {release.version}", stock, stock_tier),
            Side("kvproof", ours, our_tier),
            Side("kvproof, own tier", both_ours, own_tier),
        )
        self.spare = self._spec().get_manager()
        self.tables = module("vllm.v1.core.kv_cache_manager").KVCacheManager(
            config.kv_cache_config,
            max_model_len=_LONGEST,
            scheduler_block_size=config.scheduler_block_size,
            hash_block_size=config.tokens_per_hash,
            enable_caching=False,
        )
        ours.tables.bind(self.tables)
        both_ours.tables.bind(self.tables)
        self._random = random.Random(0)
        self._names = itertools.count()

    def _spec(self, tier: str = "cpu") -> Any:
        config = self._config
        vllm_config = copy.copy(config.vllm_config)
        transfer = copy.copy(vllm_config.kv_transfer_config)
        own.configure(transfer, Setup((), tier=tier))
        vllm_config.kv_transfer_config = transfer
        made = module(f"{_OFFLOADING}.config").build_offloading_config(
            vllm_config, config.kv_cache_config
        )
        return module("vllm.v1.kv_offload.factory").OffloadingSpecFactory.create_spec(made)

    def _side(self, kind: Any, tier: str = "cpu") -> tuple[Any, Any]:
        spec = self._spec(tier)
        made = kind(spec, self._config.vllm_config, self._config.kv_cache_config)
        return made, made.manager

    def hashes(self, count: int) -> list[bytes]:
        """So many new block hashes; random ones, since neither side computes any."""
        data = self._random.randbytes(32 * count)
        return [data[at : at + 32] for at in range(0, len(data), 32)]

    def request(self, tokens: int, hashes: Sequence[bytes] = ()) -> Any:
        """A request with a prompt of so many tokens, which begins with the blocks of ``hashes``."""
        release = load()

        def hasher(request: Any) -> list[bytes]:
            known, complete = len(request.block_hashes), request.num_tokens // BLOCK
            shared = list(hashes[known:complete])
            return shared + self.hashes(complete - known - len(shared))

        request = release.request_class(
            f"r{next(self._names)}",
            [0] * tokens,
            release.sampling_params(max_tokens=1 << 20),
            None,
            block_hasher=hasher,
        )
        request.status = release.request_status.RUNNING
        return request

    def arrive(self, request: Any) -> None:
        """All sides are told of a request."""
        for side in self.sides:
            side.scheduler.on_new_request(request)

    def keys(self, hashes: Sequence[bytes]) -> Iterator[bytes]:
        """The offload keys of these blocks, group by group."""
        make = load().offload.make_offload_key
        for group in range(self.groups):
            for block_hash in hashes:
                yield make(block_hash, group)

    def fill(self, hashes: Sequence[bytes]) -> None:
        """Every tier holds the chunks of these blocks, of all groups."""
        keys = list(self.keys(hashes))
        for manager in (self.spare, *(side.manager for side in self.sides)):
            context = self.context("filler")
            manager.prepare_store(keys, context)
            manager.complete_store(keys, context)

    def context(self, name: str) -> Any:
        """What a tier knows a request by."""
        return load().offload.ReqContext(req_id=name)
