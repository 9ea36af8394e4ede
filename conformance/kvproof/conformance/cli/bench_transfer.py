"""``kvproof bench transfer``: planning copies, and copying, in host memory and to a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kvproof.conformance.cli.bench_scheduler import RELEASE
from kvproof.conformance.cli.options import Json
from kvproof.conformance.errors import UsageError
from kvproof.conformance.releases.child import active_release, home_of, run_in

if TYPE_CHECKING:
    from kvproof.conformance.bench.transfer.gpu import OnGpu
    from kvproof.conformance.bench.transfer.host import Copied
    from kvproof.conformance.bench.transfer.planning import Planned


def transfer(
    context: typer.Context,
    release: Annotated[
        str, typer.Option("--release", metavar="RELEASE", help="The release of vLLM.")
    ] = RELEASE,
    chunks: Annotated[int, typer.Option("--chunks", min=64, help="Chunks of a job.")] = 8192,
    tensors: Annotated[int, typer.Option("--tensors", min=1, help="Tensors of a block.")] = 64,
    runs: Annotated[int, typer.Option("--runs", min=1, help="Times that each is done.")] = 9,
    megabytes: Annotated[
        int, typer.Option("--megabytes", min=1, help="Bytes that a copy moves, in MiB.")
    ] = 128,
    growth: Annotated[bool, typer.Option(help="Also how planning grows.")] = True,
    as_json: Json = False,
) -> None:
    """Planning against the release's pointer computation, and copies against one large copy.

    Sides take turns in one process. Planning and copies in host memory are CPU time of the thread,
    copies to and from a GPU are by the clock; a figure is the median. Without a GPU there are no
    rows for it, and the settings say why.
    """
    if active_release() != release:
        home_of(release)
        arguments: list[str] = context.find_root().obj
        raise typer.Exit(run_in(release, arguments))
    from kvproof.conformance.bench import settings
    from kvproof.conformance.cli import console

    before = settings.machine()
    try:
        from kvproof.conformance.bench.transfer import gpu, host, planning

        with console.progress("measuring") as advance:
            advance("plans", 0, 4)
            plans = planning.goals(chunks, tensors, runs)
            advance("growth of plans", 1, 4)
            grown = planning.growth(chunks, tensors, runs) if growth else []
            advance("copies in host memory", 2, 4)
            copies = host.table(megabytes << 20, runs)
            advance("copies to and from the GPU", 3, 4)
            lacking = gpu.missing()
            on_gpu = [] if lacking else gpu.table(megabytes << 20, runs)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"this benchmark does not fit vLLM {release}: {error}") from error
    asked = {
        "vLLM": release,
        "runs": str(runs),
        "MiB of a copy": str(megabytes),
        "GPU": lacking or "cuda:0",
        **before,
    }
    if as_json:
        tables = {"plans": plans, "growth": grown, "host": copies, "gpu": on_gpu}
        console.print_json({"settings": asked, **tables})
        return
    print("; ".join(f"{name}: {value}" for name, value in asked.items()))
    for planned in filter(None, (plans, grown)):
        _print_plans(planned)
    _print_copies(copies)
    if on_gpu:
        _print_gpu(on_gpu)


def _print_plans(rows: list[Planned]) -> None:
    lines = [
        (
            row.case,
            f"{row.copies:,}",
            f"{row.ours:,}",
            f"{row.release:.3g} ms",
            f"{row.kvproof:.3g} ms",
            f"{row.ratio:.1f}x",
            "" if row.goal is None else f"{row.goal:g}x",
            f"{row.unwritten:.3g} ms",
        )
        for row in rows
    ]
    numbers = ("copies", "left", "vLLM", "kvproof", "ratio", "goal", "unwritten")
    _print("planning", numbers, lines)


def _print_copies(rows: list[Copied]) -> None:
    lines = [
        (
            row.case,
            _kib(row.page),
            _kib(row.chunk),
            f"{row.store:.2f}",
            f"{row.load:.2f}",
            f"{row.large:.2f}",
            f"{row.share:.0%}",
            f"{row.goal:.0%}",
        )
        for row in rows
    ]
    numbers = ("page", "chunk", "store", "load", "large copy, GB/s", "share", "goal")
    _print("in host memory", numbers, lines)


def _print_gpu(rows: list[OnGpu]) -> None:
    lines = [
        (
            row.way,
            _kib(row.page),
            _kib(row.chunk),
            f"{row.kvproof:.1f}",
            "–" if row.release is None else f"{row.release:.1f}",
            f"{row.large:.1f}",
            f"{row.kvproof / row.large:.0%}",
        )
        for row in rows
    ]
    _print("on the GPU", ("page", "chunk", "kvproof", "vLLM", "large copy, GB/s", "share"), lines)


def _kib(size: int) -> str:
    return f"{size >> 10} KiB"


def _print(title: str, numbers: tuple[str, ...], lines: Sequence[tuple[str, ...]]) -> None:
    from rich.table import Column, Table

    from kvproof.conformance.cli import console

    columns = [Column(name, justify="right") for name in numbers]
    table = Table(title, *columns, box=None, pad_edge=False)
    for line in lines:
        table.add_row(*line)
    print()
    console.output().print(table)
