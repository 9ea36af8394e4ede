"""What commands print: results to standard output, progress to standard error.

Colour and bars appear only on a terminal; ``rich`` sees to the former, ``progress`` to the latter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import msgspec
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Column, Table

Advance = Callable[[str, int, int], None]
"""``(what is being done, how much is done, of how much)``; of 0 means that nobody can tell."""

_WIDTH_OF_A_FILE = 400


def output() -> Console:
    """The console for results. Text is printed as it is: facts may hold square brackets."""
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console.width = _WIDTH_OF_A_FILE
    return console


def print_json(value: object) -> None:
    """One JSON document on standard output; structs become objects."""
    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


@contextmanager
def progress(title: str, *, in_bytes: bool = False) -> Iterator[Advance]:
    """A progress bar on standard error while the body runs; nothing when that is no terminal."""
    console = Console(stderr=True)
    amount: ProgressColumn = DownloadColumn() if in_bytes else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), amount, TimeElapsedColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bars:
        task = bars.add_task(title, total=None)

        def advance(doing: str, done: int, total: int) -> None:
            described = f"{title} {doing}".rstrip()
            bars.update(task, description=described, completed=done, total=total)
            if not total:
                bars.tasks[0].total = None  # to `update`, None means: as before

        yield advance


def print_counts(title: str, counts: Mapping[str, int]) -> None:
    """A table of counts, the largest first."""
    table = Table(title, Column("count", justify="right"), box=None, pad_edge=False)
    for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        table.add_row(name, str(count))
    output().print(table)
