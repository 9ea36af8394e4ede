"""The bytes of a tier: memory of this process, or a file that the workers of a node share.

A shared file is ``<folder>/kvproof-tier-<engine id>``. Whoever uses it holds a shared lock on it,
so a file that can be locked alone is left over from a process that is gone: it is used again by an
engine of the same id, and removed by any other.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
import re
import weakref
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt

SHARED = Path("/dev/shm")
"""Where files lie in memory."""

PREFIX = "kvproof-tier-"
"""What their names begin with."""

HUGE_PAGE = 2 << 20
"""Each worker's part begins at a multiple of this."""

_MIB = 1 << 20


class RegionError(OSError):
    """There is no such memory; the message says in one line why not."""


class Region:
    """Memory for a tier's slots.

    Each worker has a part of its own, one behind the other, so a part is in one piece. Pages are
    huge where the system gives such (for a shared file: when its ``shmem_enabled`` says so).

    Args:
        size: bytes of each worker's part.
        workers: how many workers there are; one alone shares nothing.
        rank: which of them this is, from 0.
        engine_id: what the workers of one engine have in common.
        folder: where the shared file lies.

    Attributes:
        part: this worker's bytes.
        path: the shared file; None when nothing is shared.

    Raises:
        RegionError: there is not enough room, or another engine of this id has other sizes.
    """

    def __init__(
        self,
        size: int,
        workers: int = 1,
        rank: int = 0,
        engine_id: str = "",
        folder: Path = SHARED,
    ) -> None:
        whole = -(-size // HUGE_PAGE) * HUGE_PAGE
        self.path: Path | None = None
        self._end: Callable[[], object] = lambda: None
        if workers == 1:
            self._map = _anonymous(whole)
            first = 0
        else:
            first = rank * whole
            remove_left_over(folder)
            self.path = folder / f"{PREFIX}{re.sub(r'[^A-Za-z0-9_.-]', '_', engine_id)}"
            file = _open(self.path, workers * whole)
            try:
                _reserve(file, self.path, first, whole)
                self._map = mmap.mmap(file, workers * whole)
            except BaseException:
                _give_back(file, self.path)
                raise
            # However this process ends, unless it is killed.
            self._end = weakref.finalize(self, _give_back, file, self.path)
        with contextlib.suppress(OSError, ValueError):  # a wish, not a need
            self._map.madvise(mmap.MADV_HUGEPAGE, first, whole)
        self.part: npt.NDArray[np.int8] = np.frombuffer(self._map, np.int8, size, first)

    def close(self) -> None:
        """Give the memory back; the last worker removes the file. Then ``part`` is no more."""
        if not hasattr(self, "part"):
            return
        del self.part
        with contextlib.suppress(BufferError):  # somebody has a view: it goes with the last one
            self._map.close()
        self._end()

    def __enter__(self) -> Region:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def remove_left_over(folder: Path = SHARED) -> list[Path]:
    """Remove the files of engines that are gone; those that it removed."""
    removed = []
    for path in sorted(folder.glob(f"{PREFIX}*")):
        # Another user's, or gone already: not ours to care for.
        with contextlib.suppress(OSError):
            file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                if _lock(file, fcntl.LOCK_EX) and _is_at(file, path):
                    path.unlink()
                    removed.append(path)
            finally:
                os.close(file)
    return removed


def _give_back(file: int, path: Path) -> None:
    """Stop using a file, and remove it if nobody else uses it."""
    with contextlib.suppress(OSError):
        if _lock(file, fcntl.LOCK_EX) and _is_at(file, path):
            path.unlink()
    os.close(file)


def _anonymous(size: int) -> mmap.mmap:
    try:
        return mmap.mmap(-1, max(size, mmap.PAGESIZE), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError) as error:
        raise RegionError(f"no memory for a tier of {_said(size)}: {error}") from None


def _open(path: Path, size: int) -> int:
    """The file, ``size`` bytes long, with a shared lock on it.

    Whoever has it alone makes it; all others wait for that with their lock. Between the two locks
    of its maker somebody may remove the file or make it once more: nobody uses it yet, so the first
    is found out, and the second does no harm.
    """
    while True:
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise RegionError(f"no shared memory in {path.parent}: {error.strerror}") from None
        try:
            if _lock(file, fcntl.LOCK_EX) and _is_at(file, path):
                os.ftruncate(file, 0)
                os.ftruncate(file, size)
            fcntl.flock(file, fcntl.LOCK_SH)
            if _is_at(file, path):
                found = os.fstat(file).st_size
                if found == size:
                    return file
                raise RegionError(
                    f"{path} is in use and has {_said(found)}, not {_said(size)}:"
                    " another engine has the same id"
                )
        except OSError as error:
            os.close(file)
            if isinstance(error, RegionError):
                raise
            raise RegionError(f"{path} cannot be made: {error.strerror}") from None
        os.close(file)


def _reserve(file: int, path: Path, first: int, size: int) -> None:
    """Take memory for a part now: a write to what is not there would end the process later."""
    try:
        os.posix_fallocate(file, first, size)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.ENOMEM):
            raise RegionError(f"{path} cannot be reserved: {error.strerror}") from None
        system = os.statvfs(path.parent)
        free = system.f_bavail * system.f_frsize
        raise RegionError(
            f"no room in {path.parent} for a tier of {_said(size)} a worker: {_said(free)} are free"
        ) from None


def _lock(file: int, kind: int) -> bool:
    """Whether the lock was to be had at once."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(file: int, path: Path) -> bool:
    """Whether a path still leads to an open file."""
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def _said(size: int) -> str:
    return f"{-(-size // _MIB):,} MiB"
