"""Environment variables that must be set before vLLM is imported: offline, quiet, repeatable.

``PYTHONHASHSEED=0`` is the launcher's to set, since an interpreter reads it when it starts: vLLM
iterates over sets of request ids and of keys, and only under a fixed seed does a history replay to
the same events.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def prepare() -> None:
    """Set what the user or the launcher has not set."""
    for name, value in {
        # The hash of the empty prefix is drawn at random without it.
        "PYTHONHASHSEED": "0",
        "VLLM_CACHE_ROOT": str(Path(tempfile.gettempdir()) / "kvproof-vllm-cache"),
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        # The worker side follows the first model runner. The second one keeps requests in another
        # shape (resumed ones count as new) and has a connector life cycle of its own.
        "VLLM_USE_V2_MODEL_RUNNER": "0",
        "VLLM_TARGET_DEVICE": "cpu",
        # Emitted events carry whole hashes, which tell the key.
        "VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES": "0",
        "VLLM_LOGGING_LEVEL": "ERROR",
        "OMP_NUM_THREADS": "1",
    }.items():
        os.environ.setdefault(name, value)
