"""Two workers, each in a process of its own, with the tier's bytes in one file that they share.

``python -m kvproof.conformance.e2e.workers MODEL FILE`` serves a model with our connector over our
own tier in a process that has a release on its path, and writes what it saw to ``FILE``.
"""

from __future__ import annotations

import mmap
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from kvproof.conformance.e2e.models import MODELS, Model, save
from kvproof.conformance.e2e.play import CONNECTORS, Engine, equal, transfer_over
from kvproof.conformance.e2e.seen import WORKERS, SeenWorkers
from kvproof.impl.tier.region import PREFIX, SHARED, remove_left_over


@contextmanager
def _zeroed(file: Path, rank: int) -> Iterator[None]:
    """All that one worker has in the tier is zeros meanwhile."""
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as bytes_of_all:
        size = len(bytes_of_all) // WORKERS
        part = slice(rank * size, (rank + 1) * size)
        kept = bytes_of_all[part]
        bytes_of_all[part] = bytes(size)
        try:
            yield
        finally:
            bytes_of_all[part] = kept


def _files() -> set[Path]:
    return set(SHARED.glob(f"{PREFIX}*"))


def _engine(model: Model, folder: Path, spec: str) -> Engine:
    path = CONNECTORS["ours"]
    transfer = {**transfer_over(model, spec), "kv_connector_module_path": path}
    # A container's shared memory may be small.
    transfer["kv_connector_extra_config"]["cpu_bytes_to_use"] = 32 << 20
    return Engine(model, folder, transfer, WORKERS)


def _play(model: Model, folder: Path) -> SeenWorkers:
    before = _files()
    engine = _engine(model, folder, "FaultyOwnSpec")
    (file,) = _files() - before
    # Sums of two parts round otherwise than a whole one, so the reference is of two workers, too.
    tokens = engine.round()
    seen = SeenWorkers(len(tokens))
    hits = engine.count("vllm:external_prefix_cache_hits")
    seen.loaded = equal(engine.round(), tokens)
    seen.external = engine.count("vllm:external_prefix_cache_hits") - hits
    for rank in range(WORKERS):
        with _zeroed(file, rank):
            seen.changed.append(seen.requests - equal(engine.round(), tokens))
        seen.put_back.append(equal(engine.round(), tokens))
    engine.end()
    lame = _engine(model, folder, "LameRankSpec")
    lame.round()
    seen.failing = equal(lame.round(), tokens)
    seen.failed = lame.count("kvproof:kv_offload_failed_loads")
    lame.end()
    remove_left_over()
    seen.left = len(_files() - before)
    return seen


def main() -> None:
    """Play one model and write what was seen."""
    name, file = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        save(MODELS[name], Path(folder))
        Path(file).write_bytes(msgspec.json.encode(_play(MODELS[name], Path(folder))))


if __name__ == "__main__":
    main()
