"""Campaigns in child processes: how they fail and how they are ended, on releases that are none."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from kvproof.conformance.fuzz.campaign import CampaignProgress
from kvproof.conformance.matrix import process
from kvproof.conformance.matrix.budgets import Asked
from kvproof.conformance.matrix.messages import CampaignFailed, Task


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """A campaign on an installed release 1.2.3, whose package is still empty."""
    monkeypatch.setenv("KVPROOF_CACHE", str(tmp_path))
    (tmp_path / "releases" / "1.2.3" / "vllm").mkdir(parents=True)
    return Task("1.2.3", Asked(1, None, 1, []), str(tmp_path / "out"))


def imports_as(tmp_path: Path, text: str) -> None:
    (tmp_path / "releases" / "1.2.3" / "vllm" / "__init__.py").write_text(text)


def ignore(_now: CampaignProgress) -> None:
    pass


def test_a_release_that_cannot_be_imported_says_why(task: Task, tmp_path: Path) -> None:
    imports_as(tmp_path, "print('noise')\nraise RuntimeError('no\\nkernels')\n")
    with pytest.raises(CampaignFailed, match=r"^RuntimeError: no kernels$"):
        asyncio.run(process.run(task, ignore))


def test_a_process_that_ends_by_itself_is_told_with_its_last_words(
    task: Task, tmp_path: Path
) -> None:
    imports_as(tmp_path, "import os, sys\nprint('out of luck', file=sys.stderr)\nos._exit(9)\n")
    told = r"^the process ended with exit code 9: out of luck$"
    with pytest.raises(CampaignFailed, match=told):
        asyncio.run(process.run(task, ignore))


def test_cancelling_ends_the_child(task: Task, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    imports_as(
        tmp_path,
        "import os, pathlib, time\n"
        f"part = pathlib.Path({str(begun)!r} + '.part')\n"
        "part.write_text(str(os.getpid()))\n"
        f"part.rename({str(begun)!r})\n"
        "time.sleep(60)\n",
    )

    async def cancelled() -> None:
        running = asyncio.create_task(process.run(task, ignore))
        while not begun.exists():
            await asyncio.sleep(0.02)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(asyncio.wait_for(cancelled(), 60))
    with pytest.raises(ProcessLookupError):
        os.kill(int(begun.read_text()), 0)
