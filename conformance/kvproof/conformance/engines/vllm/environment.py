"""Environment variables of a process that drives a vLLM release."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def environment() -> dict[str, str]:
    """Variables for the process that will import vLLM: offline, quiet, repeatable.

    A launcher merges them into its child's environment. ``PYTHONHASHSEED`` works only there: vLLM
    iterates over sets of request ids and of keys, so a history replays to the same events only
    under a fixed seed, and an interpreter reads the seed when it starts.
    """
    return {
        "PYTHONHASHSEED": "0",
        "VLLM_CACHE_ROOT": str(Path(tempfile.gettempdir()) / "kvproof-vllm-cache"),
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        # The worker side below follows the first model runner; the second one keeps requests in
        # another shape (resumed ones count as new) and has a connector life cycle of its own.
        "VLLM_USE_V2_MODEL_RUNNER": "0",
        "VLLM_TARGET_DEVICE": "cpu",
        "VLLM_LOGGING_LEVEL": "ERROR",
        "OMP_NUM_THREADS": "1",
    }


def prepare() -> None:
    """Set in this process what can still be set; variables that the user chose stay."""
    for name, value in environment().items():
        os.environ.setdefault(name, value)
