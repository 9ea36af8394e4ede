"""Tiny models, one for each mixture of KV-cache groups, with random weights that are saved.

``python -m kvproof.conformance.e2e.models MODEL FOLDER`` makes one, for trying things out.

The weights are large on purpose: with those that vLLM makes up itself, tokens hardly depend on the
KV cache, and a control would show nothing.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

VOCABULARY = 512
"""Token ids of every model."""


@dataclass(frozen=True)
class Model:
    """One tiny model.

    Attributes:
        groups: what its KV-cache groups are, for people.
        architecture: names of the configuration class and the model class of ``transformers``.
        sizes: arguments of the configuration that differ from ``_SIZES``.
        deviation: standard deviation of its weights.
        dtype: the data type of its weights and of its KV cache.
        blocks: blocks of the GPU's pool. With a window, loading takes fewer of them than computing.
            A request whose load has failed goes to the head of the core's queue; when it does not
            fit beside the loads that have arrived behind it, vLLM 0.32.0 never gets to those, and
            steps for ever. So models with windows have room for both.
        engine: arguments of ``vllm.LLM`` beyond those that all models have.
        offload: keys of ``kv_connector_extra_config`` beyond those that all models have.
        splits: whether two workers can share it: not when there is one head of a kind.
    """

    groups: str
    architecture: tuple[str, str]
    sizes: Mapping[str, Any] = field(default_factory=dict)
    deviation: float = 0.25
    dtype: str = "float32"
    blocks: int = 40
    engine: Mapping[str, Any] = field(default_factory=dict)
    offload: Mapping[str, Any] = field(default_factory=dict)
    splits: bool = True


_SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 2048,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
    "tie_word_embeddings": False,
}

MODELS: dict[str, Model] = {
    "llama": Model(
        "full",
        ("LlamaConfig", "LlamaForCausalLM"),
        offload={"blocks_per_chunk": 2},
    ),
    "mistral": Model(
        "window",
        ("MistralConfig", "MistralForCausalLM"),
        {"sliding_window": 100},
        blocks=64,
    ),
    "gemma3": Model(
        "full + window",
        ("Gemma3TextConfig", "Gemma3ForCausalLM"),
        {
            "num_hidden_layers": 4,
            "sliding_window": 64,
            "query_pre_attn_scalar": 32,
            "layer_types": ["sliding_attention"] * 3 + ["full_attention"],
        },
        blocks=200,
        offload={"blocks_per_chunk": 2},
    ),
    "gpt-oss": Model(
        "full + window",
        ("GptOssConfig", "GptOssForCausalLM"),
        {
            "intermediate_size": 128,
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "sliding_window": 128,
            "layer_types": ["sliding_attention", "full_attention"],
        },
        deviation=0.05,
        blocks=160,
    ),
    "qwen3-next": Model(
        "full + recurrent",
        ("Qwen3NextConfig", "Qwen3NextForCausalLM"),
        {
            "num_hidden_layers": 4,
            "head_dim": 128,
            "linear_num_key_heads": 1,
            "linear_num_value_heads": 2,
            "linear_key_head_dim": 128,
            "linear_value_head_dim": 128,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 128,
            "shared_expert_intermediate_size": 128,
        },
        deviation=0.1,
        dtype="bfloat16",
        engine={"mamba_cache_mode": "align"},
        splits=False,
    ),
}
"""By name, the quickest first."""


def save(model: Model, folder: Path) -> None:
    """Make a model's weights, the same every time, and save it for ``vllm.LLM(model=folder)``.

    Its tokenizer knows bytes, so that it takes any text.
    """
    torch: Any = importlib.import_module("torch")
    transformers: Any = importlib.import_module("transformers")
    config, made = (getattr(transformers, name) for name in model.architecture)
    torch.manual_seed(0)
    network = made(config(**_SIZES | dict(model.sizes)))
    for parameter in network.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, 0, model.deviation)
    network.to(getattr(torch, model.dtype)).save_pretrained(folder)
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=_bytes_tokenizer(), pad_token="<pad>", bos_token="<s>", eos_token="</s>"
    ).save_pretrained(folder)


def _bytes_tokenizer() -> Any:
    tokenizers: Any = importlib.import_module("tokenizers")
    tokens = ["<pad>", "<s>", "</s>", *sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    return tokenizer


if __name__ == "__main__":
    save(MODELS[sys.argv[1]], Path(sys.argv[2]))
