"""``kvproof record``: play the scripted workload on a target and write its trace."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from kvproof.conformance.cli.options import Json, Scheduler, TargetName
from kvproof.conformance.cli.targets import open_target


def record(
    context: typer.Context,
    target: TargetName,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the trace goes.")],
    scheduler: Scheduler = None,
    recurrent: Annotated[
        bool,
        typer.Option(help="A recurrent group too, where the target takes one."),
    ] = True,
    as_json: Json = False,
) -> None:
    """Record a trace of a scheduler under a fixed workload.

    The workload is the same every time: full attention, a sliding window, and a recurrent group
    where the target takes one. `check-trace` judges what is recorded. A scheduler that raises is
    recorded up to there.
    """
    opened = open_target(target, context, scheduler)

    from kvproof.conformance.cli import console
    from kvproof.conformance.engines.workload import scripted
    from kvproof.conformance.trace import codec
    from kvproof.conformance.trace.events import AnyEvent

    out.parent.mkdir(parents=True, exist_ok=True)
    setup, moves = scripted(opened, recurrent=recurrent)
    if opened.supports(setup) is not None:
        setup, moves = scripted(opened)
    events: list[AnyEvent] = []
    engine = opened.start(setup, events.append)
    try:
        with console.progress("recording") as advance:
            for number, move in enumerate(moves, start=1):
                engine.play(move)
                advance("", number, len(moves))
        codec.write(out, engine.header, events)
    finally:
        engine.close()
    counts = Counter(str(type(event).__struct_config__.tag) for event in events)
    if as_json:
        console.print_json(
            {
                "file": str(out),
                "target": opened.name,
                "moves": len(moves),
                "events": len(events),
                "crashed": engine.crashed,
                "counts": dict(sorted(counts.items())),
            }
        )
        return
    console.print_counts("event", counts)
    print(f"{out}: {len(events)} events of {len(moves)} moves on {opened.name}")
    if engine.crashed:
        print("the scheduler raised, and the trace ends there: see its last events")
