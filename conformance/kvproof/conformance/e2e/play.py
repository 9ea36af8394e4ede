"""Everything that is done with one model, in a process of its own that has a release on its path.

``python -m kvproof.conformance.e2e.play MODEL FILE CONNECTOR...`` writes what it saw to ``FILE``.
"""

from __future__ import annotations

import gc
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kvproof.conformance.e2e.faults import FAULTS, Faults
from kvproof.conformance.e2e.models import MODELS, Model, save
from kvproof.conformance.e2e.seen import EVERY, FAILING_ROUNDS, TIERS, Seen
from kvproof.conformance.e2e.workload import MAX_LENGTH, NEW_TOKENS, prompts
from kvproof.conformance.engines.vllm.release import module

Tokens = list[list[int]]

CONNECTORS: dict[str, str | None] = {"ours": "kvproof.impl.connector", "stock": None}
"""Each connector's ``kv_connector_module_path``."""


class Engine:
    """One vLLM engine, in this process but for its workers, if there are several of them.

    ``transfer`` is its ``kv_transfer_config``.
    """

    def __init__(
        self, model: Model, folder: Path, transfer: Mapping[str, Any] | None, workers: int = 1
    ) -> None:
        vllm = module("vllm")
        self._llm: Any = vllm.LLM(
            model=str(folder),
            dtype=model.dtype,
            skip_tokenizer_init=True,
            enforce_eager=True,
            block_size=32,
            num_gpu_blocks_override=model.blocks,
            kv_cache_memory_bytes=64 << 20,
            max_model_len=MAX_LENGTH,
            max_num_batched_tokens=256,
            enable_prefix_caching=True,
            disable_log_stats=False,
            kv_transfer_config=transfer,
            tensor_parallel_size=workers,
            **model.engine,
        )
        self._sampling = vllm.SamplingParams(
            temperature=0, max_tokens=NEW_TOKENS, ignore_eos=True, detokenize=False
        )

    def round(self) -> Tokens:
        """Forget what the GPU has, ask for everything; the tokens of each request."""
        if not self._llm.reset_prefix_cache():
            raise RuntimeError("the engine did not forget its prefix cache")
        asked = [{"prompt_token_ids": prompt} for prompt in prompts()]
        answers = self._llm.generate(asked, self._sampling, use_tqdm=False)
        return [list(answer.outputs[0].token_ids) for answer in answers]

    def count(self, name: str) -> int:
        """One of the counters that this process shows Prometheus.

        The engine's own list of metrics leaves out those of a connector.
        """
        shown = module("prometheus_client").REGISTRY.collect()
        samples = (sample for metric in shown for sample in metric.samples)
        return int(sum(sample.value for sample in samples if sample.name == f"{name}_total"))

    def end(self) -> None:
        """Give everything back, so that the next engine finds room."""
        self._llm.llm_engine.engine_core.shutdown()
        del self._llm
        gc.collect()


def play(name: str, folder: Path, connectors: Sequence[str]) -> list[Seen]:
    """Run a model that was saved in ``folder`` without a connector, and with each of these."""
    model = MODELS[name]
    reference = Engine(model, folder, None)
    tokens = reference.round()
    reference.end()
    return [_with_connector(model, folder, connector, tokens) for connector in connectors]


def _with_connector(model: Model, folder: Path, connector: str, tokens: Tokens) -> Seen:
    seen = Seen(connector, len(tokens))
    started = time.monotonic()
    engine = Engine(model, folder, _transfer(model, connector))
    computed = engine.round()
    before = engine.count("vllm:external_prefix_cache_hits")
    _order(Faults())
    loaded = engine.round()
    seen.external = engine.count("vllm:external_prefix_cache_hits") - before
    seen.loads = FAULTS.loads
    seen.equal = (equal(computed, tokens), equal(loaded, tokens))
    # The stock connector does not survive a failure, so the control comes first. The tier is not
    # harmed by it: what is computed on zeros has keys that are there already.
    _order(Faults(zero=True))
    seen.changed = seen.requests - equal(engine.round(), tokens)
    _order(Faults(every=EVERY))
    try:
        for _ in range(FAILING_ROUNDS):
            answers = engine.round()
            seen.failing += len(answers)
            seen.failing_equal += equal(answers, tokens)
    except Exception as error:
        seen.ended = f"{type(error).__name__}: {error}".rstrip(": ")
    seen.failed = dict(FAULTS.failed)
    seen.preempted = engine.count("vllm:num_preemptions")
    engine.end()
    seen.seconds = time.monotonic() - started
    return seen


def _transfer(model: Model, connector: str) -> dict[str, Any]:
    name, _, tier = connector.partition(":")
    transfer = transfer_over(model, TIERS[tier or "cpu"])
    path = CONNECTORS[name]
    return transfer if path is None else {**transfer, "kv_connector_module_path": path}


def transfer_over(model: Model, spec: str) -> dict[str, Any]:
    """The stock connector's ``kv_transfer_config`` with one of the faulty tiers."""
    return {
        "kv_connector": "OffloadingConnector",
        "kv_role": "kv_both",
        "kv_load_failure_policy": "recompute",
        "kv_connector_extra_config": {
            "spec_name": spec,
            "spec_module_path": "kvproof.conformance.e2e.faults",
            "cpu_bytes_to_use": 256 << 20,
            "offload_prompt_only": False,
            **model.offload,
        },
    }


def _order(faults: Faults) -> None:
    for name, value in vars(faults).items():
        setattr(FAULTS, name, value)


def equal(some: Tokens, others: Tokens) -> int:
    """How many requests have the same tokens in both."""
    return sum(one == other for one, other in zip(some, others, strict=True))


def main() -> None:
    """Play one model and write what was seen."""
    name, file, *connectors = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        save(MODELS[name], Path(folder))
        Path(file).write_bytes(msgspec.json.encode(play(name, Path(folder), connectors)))


if __name__ == "__main__":
    main()
