"""Memory that workers share, and what becomes of it when they end, in whatever way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvproof.impl.tier.region import HUGE_PAGE, SHARED, Region, RegionError, remove_left_over


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory, where there is one."""
    with tempfile.TemporaryDirectory(dir=SHARED if SHARED.is_dir() else None) as name:
        yield Path(name)


def test_a_worker_alone_shares_nothing(folder: Path) -> None:
    with Region(1000, folder=folder) as region:
        assert region.part.shape == (1000,)
        assert not region.part.any()
        region.part[999] = 7
        assert (region.path, list(folder.iterdir())) == (None, [])


def test_workers_see_one_file_and_have_their_own_parts(folder: Path) -> None:
    first = Region(5000, 2, 0, "engine", folder)
    second = Region(5000, 2, 1, "engine", folder)
    first.part[:] = 1
    second.part[:] = 2
    assert first.path == second.path == folder / "kvproof-tier-engine"
    data = (folder / "kvproof-tier-engine").read_bytes()
    assert len(data) == 2 * HUGE_PAGE
    assert (data[:5000], data[HUGE_PAGE:][:5000]) == (b"\x01" * 5000, b"\x02" * 5000)
    first.close()
    assert second.part[4999] == 2
    assert list(folder.iterdir()) == [folder / "kvproof-tier-engine"]
    second.close()
    assert list(folder.iterdir()) == []


def test_an_engine_id_is_no_path(folder: Path) -> None:
    with Region(10, 2, 0, "../a b/c", folder) as region:
        assert region.path == folder / "kvproof-tier-.._a_b_c"


def test_another_size_under_the_same_id_is_refused(folder: Path) -> None:
    with Region(10, 2, 0, "engine", folder):
        with pytest.raises(RegionError, match="is in use and has 4 MiB, not 6 MiB: another engine"):
            Region(10, 3, 0, "engine", folder)
        # Who was refused leaves the file to those who use it.
        assert len(list(folder.iterdir())) == 1


_KILLED = """
import os, pathlib, signal, sys
from kvproof.impl.tier.region import Region
region = Region(10, 2, 0, sys.argv[1], pathlib.Path(sys.argv[2]))
region.part[:] = 9
os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(engine_id: str, folder: Path) -> None:
    """A process makes a file and has no time to remove it."""
    ended = subprocess.run([sys.executable, "-P", "-c", _KILLED, engine_id, str(folder)])
    assert ended.returncode == -signal.SIGKILL
    assert len(list(folder.iterdir())) == 1


def test_what_a_killed_engine_left_is_empty_for_the_next_of_its_id(folder: Path) -> None:
    killed("engine", folder)
    with Region(10, 2, 0, "engine", folder) as region:
        assert not region.part.any()


def test_what_a_killed_engine_left_is_removed_by_any_other(folder: Path) -> None:
    killed("old", folder)
    with Region(10, 2, 0, "new", folder):
        assert [path.name for path in folder.iterdir()] == ["kvproof-tier-new"]
        assert remove_left_over(folder) == []


def test_a_file_that_is_no_tier_stays(folder: Path) -> None:
    (folder / "other").write_bytes(b"x")
    assert remove_left_over(folder) == []
    assert (folder / "other").exists()


def test_too_little_room_is_said_in_one_line_and_leaves_nothing(folder: Path) -> None:
    system = os.statvfs(folder)
    more = 2 * system.f_blocks * system.f_frsize
    with pytest.raises(RegionError, match=r"no room in .* MiB are free") as caught:
        Region(more, 2, 0, "engine", folder)
    assert "\n" not in str(caught.value)
    assert list(folder.iterdir()) == []


def test_a_folder_that_is_not_there_is_said_in_one_line(folder: Path) -> None:
    with pytest.raises(RegionError, match=r"no shared memory in .*/none: No such file") as caught:
        Region(10, 2, 0, "engine", folder / "none")
    assert "\n" not in str(caught.value)


def test_more_than_an_address_space_is_said_in_one_line() -> None:
    with pytest.raises(RegionError, match="no memory for a tier of 70,368,744,177,664 MiB"):
        Region(1 << 66)
