"""Somebody else's scheduler is checked inside a real release, by call and by command."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kvproof.conformance import Checked, ContractBroken, check_scheduler
from kvproof.conformance.engines import names
from kvproof.conformance.errors import UsageError
from kvproof.conformance.releases import importable
from kvproof.conformance.releases.child import child_environment
from kvproof.conformance.releases.folders import locate

ROOT = Path(__file__).parents[2]
ALLOWED = ROOT / "conformance" / "allow" / "0.32.0.allow"
STOCK = "vllm.distributed.kv_transfer.kv_connector.v1.offloading"
EXAMPLES = 60

# Each class is the stock one with one fault planted.
PLANTED = f"""
from {STOCK}.scheduler import OffloadingConnectorScheduler
from {STOCK}_connector import OffloadingConnector
from vllm.v1.kv_offload.cpu.spec import CPUOffloadingSpec


class Doubling(OffloadingConnectorScheduler):
    '''It tells the tier twice that a load has ended.'''

    def update_connector_output(self, output):
        before = [
            (job, status.keys, self._req_status[status.req_id].req_context)
            for job, status in self._jobs.items()
            if not status.is_store
        ]
        super().update_connector_output(output)
        for job, keys, context in before:
            if job not in self._jobs:
                self.manager.complete_load(keys, context)


class MyConnector(OffloadingConnector):
    '''The connector under another name.'''


class MySpec(CPUOffloadingSpec):
    '''The CPU tier under another name.'''


class Dumb:
    '''No scheduler.'''


class Stubborn(OffloadingConnectorScheduler):
    '''It cannot be made.'''

    def __init__(self, *args, **kwargs):
        raise RuntimeError("not today")
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with somebody's schedulers in ``planted.py``; one stands in it."""
    (tmp_path / "planted.py").write_text(PLANTED, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ids(checked: Checked) -> set[str]:
    return {found.finding.id for found in checked.findings}


def check(name: str, out: Path) -> Checked:
    return check_scheduler(
        name, release="0.32.0", max_examples=EXAMPLES, seed=1, allow=ALLOWED, out=out
    )


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Checked:
    """What the same budget finds in the stock class, beyond what is known of it."""
    return check(
        f"{STOCK}.scheduler:OffloadingConnectorScheduler", tmp_path_factory.mktemp("stock")
    )


@pytest.mark.vllm
def test_a_planted_fault_is_found_under_its_id_and_the_stock_class_does_not_have_it(
    here: Path, stock: Checked
) -> None:
    doubling = check("planted:Doubling", here / "out")
    assert "P5" in ids(doubling) - ids(stock)
    assert doubling.campaign.examples == stock.campaign.examples == EXAMPLES

    found = next(one for one in doubling.findings if one.finding.id == "P5")
    assert (found.finding.culprit, found.history.target) == (
        "scheduler",
        "vllm:0.32.0+planted:Doubling",
    )
    with pytest.raises(ContractBroken, match=re.escape(found.files[0])) as broken:
        doubling.raise_for_findings()
    assert broken.value.findings == doubling.findings

    # Outside of a campaign: replayed by its name, and by the stand-alone test, which has the class.
    (history,) = (file for file in found.files if file.endswith(".history.json"))
    (alone,) = (file for file in found.files if file.endswith(".py"))
    replayed = run("0.32.0", "-m", "kvproof.conformance.cli", "replay", history, "--json")
    assert json.loads(replayed.stdout)["as_recorded"] is True
    assert run("0.32.0", "-m", "pytest", "-q", "-p", "no:cacheprovider", alone).returncode == 1


def run(release: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env=child_environment(release),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.vllm
def test_a_connector_and_a_spec_take_part_as_well(here: Path) -> None:
    for name in ("planted.py:MyConnector", "planted:MySpec"):
        campaign = check_scheduler(name, release="0.32.0", max_examples=3).campaign
        assert (campaign.target, campaign.examples) == (f"vllm:0.32.0+{name}", 3)
        assert campaign.coverage.events["Arrive"] > 0


@pytest.mark.vllm
@pytest.mark.parametrize(
    ("scheduler", "told"),
    [
        ("planted:Dumb", "planted:Dumb is no connector scheduler: it lacks get_num_new_matched"),
        ("planted:Stubborn", "planted:Stubborn cannot take part: RuntimeError: not today"),
        ("planted:Nobody", "planted has no class Nobody"),
        ("planted:STOCK", "planted has no class STOCK"),
        ("nowhere.to_be:Found", "nowhere.to_be cannot be imported: ModuleNotFoundError: No module"),
        ("nowhere.py:Found", "nowhere.py cannot be imported: FileNotFoundError: "),
    ],
)
def test_what_cannot_take_part_is_refused_in_one_line(
    here: Path, scheduler: str, told: str
) -> None:
    command = ["-P", "-m", "kvproof.conformance.cli", "fuzz", "--target", "vllm:0.32.0"]
    ended = run("0.32.0", *command, "--max-examples", "1", "--scheduler", scheduler)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"kvproof: {told}")
    assert ended.stderr.count("\n") == 1


@pytest.mark.vllm
def test_a_call_is_told_the_same_as_the_command(here: Path) -> None:
    with pytest.raises(UsageError, match=r"^planted:Stubborn cannot take part: RuntimeError: not "):
        check_scheduler("planted:Stubborn", release="0.32.0", max_examples=1)


@pytest.mark.vllm
def test_the_example_of_the_documentation_runs_where_only_vllm_is_installed(
    tmp_path: Path, stock: Checked
) -> None:
    text = (ROOT / "docs" / "check_scheduler.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (tmp_path / "check_my_scheduler.py").write_text(example)
    # No releases of ours: vLLM comes from the environment alone.
    path = {"PYTHONPATH": str(locate("0.32.0")), "KVPROOF_CACHE": str(tmp_path / "no-releases")}

    def run_here(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *arguments]
        environment = {**os.environ, **path}
        return subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )

    ended = run_here("check_my_scheduler.py")
    assert re.search(r"^S3 scheduler \d+ moves$", ended.stdout, re.MULTILINE), ended
    assert "S3" not in ids(stock)
    assert "ContractBroken: vllm:0.32.0+check_my_scheduler.py:MyScheduler" in ended.stderr
    history = sorted((tmp_path / "out" / "my-scheduler").glob("S3-*.history.json"))[0]
    again = run_here("-m", "kvproof.conformance.cli", "replay", str(history), "--json")
    assert again.returncode == 1, again
    assert json.loads(again.stdout)["as_recorded"] is True


Refuses = Callable[..., str]


@pytest.mark.parametrize("given", ["my_scheduler", "a:b:c", "-m:Class", "pkg.mod:1"])
def test_a_class_needs_a_place_and_a_name(refuses: Refuses, given: str) -> None:
    told = refuses("fuzz", "--target", "vllm:0.32.0", f"--scheduler={given}", "--max-examples", 1)
    assert told == f"{given!r} names no class: expected package.module:Class or file.py:Class"
    with pytest.raises(UsageError, match="names no class"):
        check_scheduler(given)


def test_a_target_that_names_a_class_takes_no_second_one(refuses: Refuses) -> None:
    target = "vllm:0.32.0+a.b:C"
    told = refuses("record", "--target", target, "--scheduler", "d:E", "--out", "t.jsonl")
    assert told == f"{target} names a class already: leave --scheduler out"


def test_target_names_come_apart_and_together_again() -> None:
    for name in ("vllm:0.32.0", "vllm:0.32.0+a.b:C", "vllm:0.33.0+some/file.py:C"):
        assert str(names.parse(name)) == name
    assert names.parse("vllm:1+a.b:C") == names.TargetName("1", "a.b:C")
    assert names.parse("vllm:1") == names.TargetName("1")


def test_a_class_that_no_other_process_finds_is_refused() -> None:
    class Hidden:
        pass

    with pytest.raises(UsageError, match="lies inside a function"):
        check_scheduler(Hidden)


def test_without_any_vllm_the_call_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importable, "folder", lambda: None)
    with pytest.raises(UsageError, match="vllm is not importable: install it"):
        check_scheduler("a.b:C")


def test_the_importable_vllm_is_known_by_its_folder_or_its_metadata(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "vllm", raising=False)
    assert importable.folder() == tmp_path
    assert importable.version() is None
    (tmp_path / "vllm-1.2.3.dist-info").mkdir()
    (tmp_path / "vllm-1.2.3.dist-info" / "METADATA").write_text("Name: vllm\nVersion: 1.2.3\n")
    assert importable.version() == "1.2.3"
