"""L3: A lookup is put off only while waiting can enlarge its answer, or a key of it is on its way to the GPU.

Found on vllm:0.32.0, and shrunk to the moves below. Needs a vLLM release that is importable, and
pytest; no GPU, no weights. The release's scheduler, KV-cache manager and offloading connector (both
roles) run for real and only bytes are played: a forward writes into each slot of a block a number
that names the token prefix ending there, and copies carry these numbers to the tier and back. The
test fails when a call raises, when a chunk becomes readable with other bytes than its key names,
when a load brings them to a live request, when a forward reads them, or when the engine never rests.
"""

import dataclasses
import functools
import importlib.util
import inspect
import json
import math
import os
import subprocess
import sys
import tempfile
import traceback
import zlib
from contextlib import nullcontext

# Blocks and windows in tokens, the GPU pool in blocks, the tier (slots) in chunks.
SETUP = {'groups': ({'kind': 'window', 'tokens_per_block': 2, 'window': 4, 'draft': True},),
 'blocks_per_chunk': 1,
 'num_gpu_blocks': 64,
 'num_slots': 64,
 'max_batch_tokens': 64,
 'max_running': 2,
 'num_workers': 1,
 'asynchronous': False,
 'prompt_only': False,
 'prefix_caching': True,
 'retention_interval': None,
 'kv_role': 'kv_both',
 'store_threshold': 0,
 'eviction': 'lru',
 'sync_load_bytes': 0,
 'load_failure': 'recompute',
 'second_connector': False,
 'tier': 'cpu'}

# add: id, prompt, tokens to generate, what else is asked for; extend: a session's id, more input
# (none: it is over), tokens to generate; step: which copies end in it, which of them fail; reset:
# the tier too?, preempt?
MOVES = [
    ('add', 'a', [1], 1),
    ('add', 'b', [1, 8], 1),
    ('add', 'c', [1, 8, 2], 1),
    ('reset', True, False),
    ('step', 'all'),
    ('step', 'all'),
]


def test_L3_628aa329():
    # A process of its own: vLLM iterates over sets of strings, whose order must repeat.
    fixed = {"PYTHONHASHSEED": "0", "VLLM_LOGGING_LEVEL": "ERROR", "VLLM_NO_USAGE_STATS": "1",
             "HF_HUB_OFFLINE": "1", "VLLM_USE_V2_MODEL_RUNNER": "0", "VLLM_TARGET_DEVICE": "cpu",
             "VLLM_ENABLE_V1_MULTIPROCESSING": "0", "OMP_NUM_THREADS": "1"}  # fmt: skip
    if SETUP["retention_interval"] is not None:  # where it is no option yet
        fixed["VLLM_PREFIX_CACHE_RETENTION_INTERVAL"] = str(SETUP["retention_interval"])
    run = subprocess.run([sys.executable, __file__], env={**os.environ, **fixed},
                         capture_output=True, text=True)  # fmt: skip
    assert run.returncode == 0, f"{run.stdout}\n{run.stderr[-2000:] if not run.stdout else ''}"


if __name__ != "__main__":
    import pytest

    if importlib.util.find_spec("vllm") is None:
        pytest.skip("no vLLM release is importable", allow_module_level=True)
else:
    import torch
    from vllm import SamplingParams
    from vllm import config as vc
    from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory
    from vllm.distributed.kv_transfer.kv_connector.utils import KVOutputAggregator
    from vllm.distributed.kv_transfer.kv_connector.v1 import KVConnectorRole
    from vllm.utils.hashing import sha256
    from vllm.v1 import kv_cache_interface as kv
    from vllm.v1.core import kv_cache_utils
    from vllm.v1.core.sched.async_scheduler import AsyncScheduler
    from vllm.v1.core.sched.scheduler import Scheduler
    from vllm.v1.kv_offload.cpu.spec import CPUOffloadingSpec
    from vllm.v1.kv_offload.factory import OffloadingSpecFactory
    from vllm.v1.outputs import ModelRunnerOutput
    from vllm.v1.request import Request, RequestStatus
    from vllm.v1.structured_output import StructuredOutputManager
    from vllm.v1.worker import kv_connector_model_runner_mixin as runner

    class SmallTier(CPUOffloadingSpec):
        """The CPU tier, its capacity given in chunks rather than in bytes."""

        def get_manager(self):
            self.num_blocks = self.num_chunks = SETUP["num_slots"]
            return super().get_manager()


BPC, GROUPS = SETUP["blocks_per_chunk"], SETUP["groups"]


def build(make, **wanted):
    """Call ``make`` with those arguments that this release knows."""
    known = inspect.signature(make).parameters
    return make(**{name: value for name, value in wanted.items() if name in known})


def offloading(connector):
    """The offloading connector: the last one, where several are composed."""
    return getattr(connector, "_connectors", [connector])[-1]


def part(meta):
    """Its part of the workers' metadata."""
    return getattr(meta, "metadata", [meta])[-1]


def configure():
    """The (VllmConfig, KVCacheConfig) of SETUP, for a model that is never built."""
    sizes = [group["tokens_per_block"] for group in GROUPS]
    recurrent = [group["tokens_per_block"] for group in GROUPS if group["kind"] == "recurrent"]
    blocks, page = SETUP["num_gpu_blocks"] + 1, 4096  # one more: the null block
    extra = {"spec_name": "SmallTier", "cpu_bytes_to_use": 1 << 30,
             "offload_prompt_only": SETUP["prompt_only"],
             "store_threshold": SETUP["store_threshold"], "eviction_policy": SETUP["eviction"],
             "sync_load_budget_bytes": SETUP["sync_load_bytes"]}  # fmt: skip
    if BPC > 1:
        mixed = len(set(sizes)) > 1  # only later releases can say that
        extra.update({"blocks_per_chunk": BPC} if mixed else {"block_size": BPC * sizes[0]})
    OffloadingSpecFactory._registry["SmallTier"] = lambda: SmallTier
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "config.json"), "w") as file:
            json.dump({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
                       "hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 4,
                       "num_key_value_heads": 4, "num_hidden_layers": 2, "vocab_size": 256,
                       "max_position_embeddings": 4096, "torch_dtype": "float32"}, file)  # fmt: skip
        config = vc.VllmConfig(
            model_config=build(vc.ModelConfig, model=folder, skip_tokenizer_init=True, seed=0,
                               dtype="float32", max_model_len=4096),
            scheduler_config=build(vc.SchedulerConfig, max_num_seqs=8, max_model_len=4096,
                                   max_num_batched_tokens=4096, enable_chunked_prefill=True,
                                   is_encoder_decoder=False, async_scheduling=False),
            cache_config=vc.CacheConfig(block_size=16, enable_prefix_caching=True),
            kv_transfer_config=vc.KVTransferConfig(
                kv_connector="OffloadingConnector", kv_role=SETUP["kv_role"],
                kv_connector_extra_config=extra, kv_load_failure_policy=SETUP["load_failure"]),
            device_config=vc.DeviceConfig("cpu"),
        )  # fmt: skip
    # Set afterwards, past the checks that ask for sizes a real model would have.
    cache, scheduling = config.cache_config, config.scheduler_config
    cache.block_size = recurrent[0] if recurrent else math.gcd(*sizes)
    cache.num_gpu_blocks, cache.enable_prefix_caching = blocks, SETUP["prefix_caching"]
    cache.mamba_cache_mode = "align" if recurrent else "none"
    cache.prefix_cache_retention_interval = SETUP["retention_interval"]
    scheduling.max_num_batched_tokens = SETUP["max_batch_tokens"]
    scheduling.max_num_seqs = SETUP["max_running"]
    scheduling.async_scheduling = SETUP["asynchronous"]
    if any(group["draft"] for group in GROUPS):
        config.speculative_config = drafter()
    if SETUP["second_connector"]:
        ours = {"kv_connector": "OffloadingConnector", "kv_role": SETUP["kv_role"],
                "kv_connector_extra_config": extra}  # fmt: skip
        transfer = config.kv_transfer_config
        transfer.kv_connector = "MultiConnector"
        transfer.kv_connector_extra_config = {
            "connectors": [{"kv_connector": "Second", "kv_role": "kv_both"}, ours]
        }
    config.parallel_config.world_size = SETUP["num_workers"]
    config.parallel_config.tensor_parallel_size = SETUP["num_workers"]

    specs = []
    for group in GROUPS:
        size = {"block_size": group["tokens_per_block"], "page_size_padded": page}
        heads = {"num_kv_heads": 1, "head_size": 8, "dtype": torch.float16}
        specs.append({
            "full": lambda: kv.FullAttentionSpec(**size, **heads),
            "window": lambda: kv.SlidingWindowSpec(sliding_window=group["window"], **size, **heads),
            "chunked": lambda: kv.ChunkedLocalAttentionSpec(
                attention_chunk_size=group["window"], **size, **heads),
            "recurrent": lambda: kv.MambaSpec(shapes=((16,),), dtypes=(torch.float32,),
                                              mamba_cache_mode="align", **size),
        }[group["kind"]]())  # fmt: skip
    names = [f"layers.{i}" for i in range(len(specs))]
    tensor = build(kv.KVCacheTensor, size=page * blocks, shared_by=names, layers=names,
                   layer_stride=0, block_stride=page)  # fmt: skip
    groups = [
        kv.KVCacheGroupSpec([name], spec, **({"is_eagle_group": True} if group["draft"] else {}))
        for name, spec, group in zip(names, specs, GROUPS)
    ]
    caches = build(kv.KVCacheConfig, num_blocks=blocks, kv_cache_tensors=[tensor],
                   kv_cache_groups=groups,
                   prefix_cache_retention_interval=SETUP["retention_interval"])  # fmt: skip
    return config, caches


def drafter():
    """A drafter of one token, which here never proposes any; its model is never looked for."""
    config = object.__new__(vc.SpeculativeConfig)
    for field in dataclasses.fields(vc.SpeculativeConfig):
        if field.default is not dataclasses.MISSING:
            object.__setattr__(config, field.name, field.default)
    config.method, config.num_speculative_tokens = "eagle", 1
    return config


class Contents:
    """Numbers for token prefixes, and which of them a block hash stands for."""

    def __init__(self):
        self.ids, self.parent, self.of_hash = {}, {0: 0}, {}

    def chain(self, tokens):
        """The numbers of all non-empty prefixes of ``tokens``, the longest last."""
        ids = [0]
        for token in tokens:
            new = self.ids.setdefault((ids[-1], token), len(self.ids) + 1)
            self.parent[new] = ids[-1]
            ids.append(new)
        return ids[1:]

    def wrong(self, key, offset, cells):
        """Whether ``cells`` differ from what ``key`` names at block ``offset`` of its chunk."""
        group = GROUPS[int.from_bytes(key[-4:], "big")]
        if group["kind"] == "recurrent":  # one state a chunk, in its last block
            return offset == BPC - 1 and list(cells[-1:]) != [self.of_hash[key[:-4]]]
        last, want = self.of_hash[key[:-4]], []
        for _ in range((BPC - offset) * group["tokens_per_block"]):
            want.append(last)
            last = self.parent[last]
        return list(cells) != want[::-1][: group["tokens_per_block"]]


@dataclasses.dataclass
class Copy:
    """A job in flight at a worker. ``pieces`` are (group, block, slot, offset, key)."""

    store: bool
    pieces: list
    before: list  # what each piece held when the job was submitted


@dataclasses.dataclass
class Result:
    """A finished job, as the release's connector worker wants it."""

    job_id: int
    success: bool = True
    transfer_size: int | None = None
    transfer_time: float | None = None
    transfer_type: tuple | None = None


class Copier:
    """Takes the place of a connector worker's byte mover; a lane a direction, in order."""

    def __init__(self, engine, rank):
        self.engine, self.rank, self.finish, self.fail = engine, rank, "all", ""
        self.jobs, self.ended = {}, []
        self.blocks = {}  # block -> (group, contents of its slots): all groups share the memory
        self.tier, self.fresh = {}, set()  # (slot, offset) -> contents; copied since hand-out

    def transfer_async(self, job, spec):  # up to 0.25
        return self.submit(job, *spec, store=hasattr(spec[0], "group_sizes"))

    def submit_store(self, job, src, dst):  # from 0.26
        return self.submit(job, src, dst, store=True)

    def submit_load(self, job, src, dst, **_):
        return self.submit(job, src, dst, store=False)

    def submit(self, job, src, dst, store):
        pieces = list(self.engine.pieces(*((src, dst) if store else (dst, src))))
        copy = self.jobs[job] = Copy(store, pieces, [])
        copy.before = [self.read(copy, piece) for piece in pieces]
        if not store:  # from here on the blocks may hold anything
            for group, block, *_ in pieces:
                self.blocks.pop(block, None)
        return True

    def held(self, group, block):
        """The contents of a block, as far as this group wrote it last."""
        owner, cells = self.blocks.get(block, (group, []))
        return cells if owner == group else []

    def read(self, copy, piece):
        group, block, slot, offset, _ = piece
        return list(self.held(group, block) if copy.store else self.tier.get((slot, offset), ()))

    def end(self, jobs):
        """End jobs. Each piece was read at some moment since the submission: take the worse."""
        for job in jobs:
            copy = self.jobs.pop(job)
            failed = self.fail in ("all", "stores" if copy.store else "loads")
            self.ended.append((job, not failed))
            for piece, before in zip(copy.pieces, copy.before):
                group, block, slot, offset, key = piece
                bad = self.engine.contents.wrong(key, offset, before)
                value = before if bad else self.read(copy, piece)
                if failed:  # it may have left anything
                    value = []
                if copy.store:
                    self.tier[slot, offset] = value
                    self.fresh.add((slot, offset))
                elif not failed:
                    self.blocks[block] = (group, value)
                    self.engine.loaded(job, piece, value)

    def lane(self, store):
        return [job for job, copy in self.jobs.items() if copy.store == store]

    def wait(self, jobs):
        for lane in (self.lane(True), self.lane(False)):
            self.end(lane[: max((n + 1 for n, job in enumerate(lane) if job in jobs), default=0)])

    def get_finished(self):
        for name, lane in (("stores", self.lane(True)), ("loads", self.lane(False))):
            if self.finish in ("all", name) or (self.finish == "rank0" and self.rank == 0):
                self.end(lane)
            elif self.finish == "oldest":
                self.end(lane[:1])
        ended, self.ended = self.ended, []
        return [Result(job, ok) for job, ok in ended]

    def shutdown(self):
        pass


class Engine:
    """The release's scheduler and connectors, with played workers."""

    def __init__(self):
        self.config, caches = configure()
        size, self.hashed = kv_cache_utils.resolve_kv_cache_block_sizes(caches, self.config)
        if hasattr(caches, "cache_hit_alignment_tokens"):
            caches.hash_block_size = self.hashed
            caches.cache_hit_alignment_tokens = kv_cache_utils.resolve_cache_hit_alignment_tokens(
                caches, self.config, size, self.hashed
            )
        kv_cache_utils.init_none_hash(sha256)
        self.hasher = kv_cache_utils.get_request_block_hasher(self.hashed, sha256)
        self.scheduler = (AsyncScheduler if SETUP["asynchronous"] else Scheduler)(
            vllm_config=self.config, kv_cache_config=caches, block_size=size,
            hash_block_size=self.hashed, log_stats=False,
            structured_output_manager=StructuredOutputManager(self.config),
        )  # fmt: skip
        self.connector = offloading(self.scheduler.connector).connector_scheduler
        self.watch(self.connector.manager)
        self.contents, self.failure, self.queue = Contents(), None, []
        self.requests, self.known = {}, {}  # id -> request object; id -> tokens that workers know
        self.stops, self.sessions = {}, {}  # id -> place of its stop token; id -> open session
        self.slot_of, self.keys_of, self.loader = {}, {}, {}
        self.copiers, self.connectors = [], []
        for rank in range(SETUP["num_workers"]):
            worker = KVConnectorFactory.create_connector(
                config=self.config, role=KVConnectorRole.WORKER, kv_cache_config=caches
            )
            self.copiers.append(Copier(self, rank))
            offloading(worker).connector_worker.worker = self.copiers[-1]
            for other in getattr(worker, "_connectors", [])[:-1]:
                other.copier = self.copiers[-1]
            self.connectors.append(worker)
        self.aggregator = KVOutputAggregator(SETUP["num_workers"])

    def fail(self, text):
        self.failure = self.failure or text

    def watch(self, manager):
        """Learn which slot has which key, and check the bytes when a key becomes readable."""

        def stores(stock, keys, context):
            output = stock(keys, context)
            if output is not None:
                taken = list(output.keys_to_store)
                self.keys_of[id(output.store_spec)] = output.store_spec, taken
                for slot, key in zip(output.store_spec.block_ids.tolist(), taken):
                    self.slot_of[key] = slot
                    for copier in self.copiers:
                        copier.fresh = {cell for cell in copier.fresh if cell[0] != slot}
            return output

        def loads(stock, keys, context):
            keys = list(keys)
            spec = stock(keys, context)
            self.keys_of[id(spec)] = spec, keys
            return spec

        def completes(stock, keys, context, *rest, **options):
            keys = list(keys)
            stock(keys, context, *rest, **options)
            for key in keys:
                answer = manager.lookup(key, context)
                if answer is True or getattr(answer, "name", "") == "HIT":
                    self.readable(key)

        for name, tap in (("store", stores), ("load", loads)):
            stock = getattr(manager, f"prepare_{name}")
            setattr(manager, f"prepare_{name}", functools.partial(tap, stock))
        manager.complete_store = functools.partial(completes, manager.complete_store)

    def readable(self, key):
        for rank, copier in enumerate(self.copiers):
            for slot, offset in sorted(copier.fresh):
                cells = copier.tier[slot, offset]
                if slot == self.slot_of[key] and self.contents.wrong(key, offset, cells):
                    self.fail(f"slot {slot} of the tier (block {offset} of the chunk, worker "
                              f"{rank}) became readable with the wrong bytes: {cells}")  # fmt: skip

    def loaded(self, job, piece, cells):
        request, (_, block, slot, offset, key) = self.loader[job], piece
        if request and not request.is_finished() and self.contents.wrong(key, offset, cells):
            self.fail(f"load job {job} brought the wrong bytes into block {block}: {cells}")

    def pieces(self, gpu, tier):
        """What a job copies, by the rule of the release's byte mover (the same in all releases)."""
        blocks, slots = gpu.block_ids.tolist(), tier.block_ids.tolist()
        keys, block, chunk = self.keys_of[id(tier)][1], 0, 0
        for group, (size, index) in enumerate(zip(gpu.group_sizes, gpu.block_indices)):
            skip = index % BPC
            for i in range(size):
                at, offset = chunk + (skip + i) // BPC, (skip + i) % BPC
                yield group, blocks[block + i], slots[at], offset, keys[at]
            block, chunk = block + size, chunk + (-(-(skip + size) // BPC) if size else 0)
        assert (block, chunk) == (len(blocks), len(slots)), "blocks and slots of a job differ"

    # --- a step, as the engine core and the model runner take it ---

    def step(self, finish, fail=""):
        """Synchronous: schedule, execute, update. Asynchronous: schedule one step ahead."""
        if self.queue or self.scheduler.has_requests():
            self.turn(finish, fail)

    def turn(self, finish, fail=""):
        if not self.queue or self.scheduler.has_requests():
            output = self.scheduler.schedule()
            table = self.scheduler.kv_cache_manager.get_block_ids
            tables = {request: table(request) for request in output.num_scheduled_tokens}
            for job, entry in part(output.kv_connector_metadata).load_jobs.items():
                self.loader[job] = self.requests.get(entry.req_id)
            self.queue.append((output, tables))
            ahead = SETUP["asynchronous"] and len(self.queue) < 2
            if ahead and output.total_num_scheduled_tokens:
                return
        output, tables = self.queue.pop(0)
        computing, sampled = self.plan(output)
        results = [
            self.execute(rank, output, tables, computing, sampled, finish, fail)
            for rank in range(len(self.copiers))
        ]
        result = self.aggregator.aggregate(results) if len(results) > 1 else results[0]
        self.note_hashes()
        self.scheduler.update_from_output(output, result)
        self.note_hashes()

    def plan(self, output):
        """[(request, its tokens, start, end)] of this forward, and what it samples."""
        cached = output.scheduled_cached_reqs
        starts = dict(zip(cached.req_ids, cached.num_computed_tokens))
        for request in output.scheduled_new_reqs:
            starts[request.req_id] = request.num_computed_tokens
            if request.req_id in self.known:  # a session went on
                self.stops.pop(request.req_id, None)
            self.known[request.req_id] = list(request.prompt_token_ids)
        for request in cached.resumed_req_ids:
            self.known[request] = list(cached.all_token_ids[request])
        computing, sampled = [], {}
        for request, count in output.num_scheduled_tokens.items():
            tokens, start = self.known[request], starts[request]
            computing.append((request, list(tokens), start, start + count))
            sampled[request] = []
            if start + count >= len(tokens):
                stops = len(tokens) == self.stops.get(request)
                tokens.append(STOP if stops else next_token(tokens))
                sampled[request] = tokens[-1:]
        return computing, sampled

    def execute(self, rank, output, tables, computing, sampled, finish, fail):
        connector, copier = self.connectors[rank], self.copiers[rank]
        copier.finish, copier.fail = finish, fail
        runner.get_kv_transfer_group, runner.has_kv_transfer_group = lambda: connector, lambda: True
        runner.get_forward_context = lambda: None
        runner.set_forward_context = lambda *_, **__: nullcontext()
        whole = output.kv_connector_metadata  # workers take their metadata apart: a copy for each
        meta = part(whole)
        meta = dataclasses.replace(
            meta, load_jobs=dict(meta.load_jobs), store_jobs=dict(meta.store_jobs),
            jobs_to_flush=set(meta.jobs_to_flush or ()),
        )  # fmt: skip
        if part(whole) is not whole:
            meta = dataclasses.replace(whole, metadata=(*whole.metadata[:-1], meta))
        output = dataclasses.replace(output, kv_connector_metadata=meta)
        connector.handle_preemptions(meta)
        for block in output.new_block_ids_to_zero or ():
            copier.blocks.pop(block, None)
        for source, target in getattr(output, "kv_cache_block_copies", None) or ():
            group, cells = copier.blocks.get(source, (0, []))
            copier.blocks[target] = (group, list(cells))
        mixin = runner.KVConnectorModelRunnerMixin
        if not computing:
            return dataclasses.replace(mixin.kv_connector_no_forward(output, self.config))
        with mixin.maybe_get_kv_connector_output(output) as report:
            for request, tokens, start, end in computing:
                self.forward(copier, request, tables[request], tokens, start, end)
        return ModelRunnerOutput(
            req_ids=list(sampled), req_id_to_index={r: i for i, r in enumerate(sampled)},
            sampled_token_ids=[list(tokens) for tokens in sampled.values()],
            kv_connector_output=report,
        )  # fmt: skip

    def forward(self, copier, request, table, tokens, start, end):
        """Read what tokens ``[start, end)`` need of those before them; write their own slots."""
        chain = self.contents.chain(tokens)
        for number, (ids, group) in enumerate(zip(table, GROUPS)):
            size, recurrent = group["tokens_per_block"], group["kind"] == "recurrent"
            first = start + 1 - (group["window"] or start + 1)
            if group["kind"] == "chunked":
                first = start // group["window"] * group["window"]
            for position in range(max(start - 1 if recurrent else first, 0), start):
                cells = copier.held(number, ids[position // size])
                at = size - 1 if recurrent else position % size
                if cells[at : at + 1] != [chain[position]]:
                    self.fail(f"the forward of {request} reads position {position} in block "
                              f"{ids[position // size]} of {group}, which holds {cells}")  # fmt: skip
        self.write(copier, table, chain, start, end)

    def write(self, copier, table, chain, start, end):
        """Write the slots of tokens ``[start, end)``."""
        for number, (ids, group) in enumerate(zip(table, GROUPS)):
            size, recurrent = group["tokens_per_block"], group["kind"] == "recurrent"
            for position in range(end - 1 if recurrent else start, end):
                cells = copier.held(number, ids[position // size])
                cells.extend([0] * (size - len(cells)))
                copier.blocks[ids[position // size]] = (number, cells)
                cells[size - 1 if recurrent else position % size] = chain[position]

    def note_hashes(self):
        """Remember which prefix each block hash stands for."""
        for request in list(self.requests.values()):
            chain = self.contents.chain(request.all_token_ids)
            for i, digest in enumerate(request.block_hashes):
                # A hash that outlives the tokens that it was made of keeps its meaning.
                self.contents.of_hash.setdefault(digest, chain[(i + 1) * self.hashed - 1])

    # --- the other moves ---

    def add(self, name, tokens, max_tokens, asked={}):
        self.requests[name] = self.request(name, tokens, max_tokens, **asked)
        self.known.pop(name, None)
        self.stops.pop(name, None)
        if "stop_after" in asked:
            self.stops[name] = len(tokens) + asked["stop_after"] - 1
        if "session" in asked:
            self.sessions[name] = self.requests[name]
        self.note_hashes()
        self.scheduler.add_request(self.requests[name])

    def request(self, name, tokens, max_tokens, skip_reading=False, stop_after=None,
                session=False, **caps):  # fmt: skip
        caps = {f"{cap}_tokens": tokens for cap, tokens in caps.items()}
        return build(
            Request, request_id=name, prompt_token_ids=list(tokens), pooling_params=None,
            sampling_params=SamplingParams(
                max_tokens=max_tokens, ignore_eos=True, stop_token_ids=[STOP] * bool(stop_after),
                skip_reading_prefix_cache=skip_reading,
                extra_args={"kv_transfer_params": caps} if caps else None),
            arrival_time=0.0, block_hasher=self.hasher, resumable=session,
        )  # fmt: skip

    def extend(self, name, tokens, max_tokens):
        """More input for a session; none says that it is over."""
        if not tokens:
            del self.sessions[name]
        more = self.request(name, tokens or [0], max_tokens, session=bool(tokens))
        self.scheduler.add_request(more)
        self.note_hashes()

    def abort(self, name):
        self.scheduler.finish_requests(name, RequestStatus.FINISHED_ABORTED)

    def reset(self, tier, running):
        try:
            self.scheduler.reset_prefix_cache(reset_running_requests=running, reset_connector=tier)
        except RuntimeError as error:  # the core's own refusal, while a load holds blocks
            if not str(error).startswith("Failed to reset KV cache"):
                raise

    def drain(self):
        for name, request in list(self.sessions.items()):
            if self.scheduler.requests.get(name) is request and not request.is_finished():
                self.extend(name, [], 1)
        self.sessions.clear()
        limit = 500 + 2 * sum(
            request.num_prompt_tokens + request.max_tokens
            for request in self.scheduler.requests.values()
        )
        while limit > 0 and (self.queue or self.scheduler.has_requests()):
            self.turn("all")
            limit -= 1
        if limit == 0:
            self.fail("the engine never comes to rest")
        for _ in range(8):  # early releases do not ask for the steps that their last jobs need
            if self.connector._jobs:
                self.turn("all")


STOP = 16  # beyond what the played model says otherwise


def next_token(tokens):
    """What the played model samples after ``tokens``."""
    return zlib.crc32(b"".join(token.to_bytes(4, "little") for token in tokens)) % 16


def play():
    engine = Engine()
    # The drain at the end lets copies in flight end: what they took shows only then.
    for number, (move, *arguments) in enumerate([*MOVES, ("drain",)], start=1):
        try:
            getattr(engine, move)(*arguments)
        except Exception as error:
            traceback.print_exc(file=sys.stdout)
            return f"move {number}, {move}{tuple(arguments)}, raised {error!r}"
        if engine.failure:
            return f"move {number}, {move}{tuple(arguments)}: {engine.failure}"
    return None


if __name__ == "__main__":
    broken = play()
    print(broken or "nothing broke")
    sys.exit(broken is not None)
