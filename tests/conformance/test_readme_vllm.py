"""The examples of the README that serve a model, run as they stand, but that nothing is compiled.

Compiling the model takes most of a minute and changes nothing that a connector sees.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from kvproof.conformance.e2e.models import MODELS, save
from kvproof.conformance.e2e.run import RELEASE
from kvproof.conformance.errors import UsageError
from kvproof.conformance.releases import locate

pytestmark = [pytest.mark.e2e, pytest.mark.vllm]

README = Path(__file__).parents[2] / "README.md"
PATIENCE = 300.0
"""Seconds that a server may take until it serves."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the model that the README makes."""
    try:
        locate(RELEASE)
    except UsageError as missing:
        pytest.skip(str(missing))
    folder = tmp_path_factory.mktemp("readme") / "model"
    save(MODELS["llama"], folder)
    return folder


def environment(**settings: str) -> dict[str, str]:
    """This one, with the commands of this Python's environment found first."""
    here = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": os.pathsep.join((here, os.environ["PATH"])), **settings}


def line(start: str, model: Path) -> str:
    """The README's command that begins so, up to the end of its block, for this model."""
    found = re.search(rf"^{re.escape(start)}.*?(?=^```)", README.read_text(), re.M | re.S)
    assert found, start
    return found[0].rstrip().replace("MODEL", str(model))


def test_the_offline_example(model: Path) -> None:
    example = re.search(r"```python\n(# offline\.py MODEL\n.*?)```", README.read_text(), re.S)
    assert example
    eager = example[1].replace("model=model,", "model=model, enforce_eager=True,")
    assert eager != example[1]
    (model.parent / "offline.py").write_text(eager)
    ended = subprocess.run(
        line("kvproof releases run 0.32.0 python", model),
        shell=True,
        cwd=model.parent,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    assert "640 of 700 prompt tokens were loaded\nsame tokens: True\n" in ended.stdout


@pytest.fixture
def server(model: Path) -> Iterator[str]:
    """The address of the README's server, which is asked to end as a terminal does.

    Its port differs from the README's, which may be taken.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = line("kvproof releases run 0.32.0 vllm serve", model)
    log = model.parent / "server.log"
    with (
        log.open("w") as output,
        subprocess.Popen(
            f"exec {command} --port {port} --enforce-eager",
            shell=True,
            cwd=model.parent,
            env=environment(VLLM_SERVER_DEV_MODE="1"),  # offers the reset of the prefix cache
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process,
    ):
        address = f"http://127.0.0.1:{port}"
        try:
            limit = time.monotonic() + PATIENCE
            while not answers(address):
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < limit, log.read_text()
                time.sleep(0.5)
            yield address
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise


def answers(address: str) -> bool:
    try:
        fetched(f"{address}/health")
    except OSError:
        return False
    return True


def fetched(url: str, data: object = None) -> bytes:
    """What a GET brings, or a POST of ``data`` as JSON.

    Raises:
        OSError: no answer, or one that is not 2xx.
    """
    body = None if data is None else msgspec.json.encode(data)
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        text: bytes = answer.read()
    return text


def completed(address: str, model: Path) -> list[int]:
    """Token ids that the server adds to a prompt of 780 tokens."""
    asked = {
        "model": str(model),
        "prompt": "A block can be handed on. " * 30,
        "max_tokens": 8,
        "temperature": 0,
        "return_token_ids": True,
    }
    answer = msgspec.json.decode(fetched(f"{address}/v1/completions", asked))
    return msgspec.convert(answer["choices"][0]["token_ids"], list[int])


def figures(address: str) -> dict[str, float]:
    """What the server counts of the tier: name, and label where there is one, to value."""
    from prometheus_client.parser import text_string_to_metric_families  # comes with a release

    text = fetched(f"{address}/metrics").decode()
    return {
        " ".join(filter(None, (sample.name, sample.labels.get("transfer_type")))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_the_server(server: str, model: Path) -> None:
    """Blocks of 128 tokens, chunks of one block: 6 chunks of the prompt's 780 tokens are loaded."""
    first = completed(server, model)
    assert len(first) == 8
    assert msgspec.json.decode(fetched(f"{server}/reset_prefix_cache", {})) == {"success": True}
    assert completed(server, model) == first
    counted = figures(server)
    assert counted["vllm:external_prefix_cache_hits_total"] == 6 * 128
    chunk = 2 * 2 * 2 * 32 * 128 * 2  # layers, K and V, heads, head size, tokens, bytes (bfloat16)
    assert counted["vllm:kv_offload_total_bytes_total GPU_to_CPU"] == 6 * chunk
    assert counted["vllm:kv_offload_total_bytes_total CPU_to_GPU"] == 6 * chunk
