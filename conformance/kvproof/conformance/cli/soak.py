"""``kvproof soak``: long lives of engines, watched for findings, leaks and growth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kvproof.conformance.cli.options import (
    Class,
    Json,
    Scheduler,
    Severity,
    TargetName,
    Tier,
    TierName,
)
from kvproof.conformance.cli.targets import check_behind, open_target
from kvproof.conformance.errors import EXIT_FINDING, EXIT_HOLDS

if TYPE_CHECKING:
    from kvproof.conformance.soak.run import SoakResult


def soak(
    context: typer.Context,
    target: TargetName,
    scheduler: Scheduler = None,
    tier: Tier = TierName.CPU,
    steps: Annotated[
        int, typer.Option("--steps", min=1, help="Engine steps of all lives together.")
    ] = 1_000_000,
    life: Annotated[
        int, typer.Option("--life", min=1, help="Engine steps of one life; then comes another.")
    ] = 50_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Same seed, same lives.")] = 0,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for what is found.")] = Path(
        "out/soak"
    ),
    severity: Severity = Class.MISSED,
    as_json: Json = False,
) -> None:
    """Run engines for long, under the whole monitor, and look at what they hold when at rest.

    An engine of a drawn setup lives for --life steps of drawn moves. Every now and then it comes to
    rest: all requests end, everything stored is forgotten. Then nothing may be held, no own table
    of the scheduler may have grown, and resident memory is sampled. Exit code 1: a finding, a leak,
    or memory that grows.
    """
    opened = open_target(target, context, scheduler)
    check_behind(opened, {"tier": tier.value})
    out.mkdir(parents=True, exist_ok=True)

    from kvproof.conformance.cli import console
    from kvproof.conformance.soak import run

    with console.progress("soaking") as advance:
        result = run.run(
            opened,
            seed=seed,
            steps=steps,
            life=life,
            out=out,
            tier=tier.value,
            missed=severity is Class.MISSED,
            plain=opened.plain(),
            progress=lambda now: advance(
                f"life {now.lives}, {now.rss >> 20} MiB", min(now.steps, steps), steps
            ),
        )
    if as_json:
        console.print_json(result)
    else:
        _print(result)
    raise typer.Exit(EXIT_HOLDS if result.holds else EXIT_FINDING)


def _print(result: SoakResult) -> None:
    print(
        f"{result.target}, seed {result.seed}, over {result.tier}: {result.steps} steps,"
        f" {result.requests} requests, {result.events} events in {result.seconds:.0f} s;"
        f" {result.lives} lives, {result.rests} points of rest"
    )
    print(
        f"at rest: {sum(result.tables.values())} entries in own tables, {result.objects} own"
        f" objects; memory {_mebibytes(min(result.rss, default=0))} to"
        f" {_mebibytes(max(result.rss, default=0))}"
    )
    if result.growth is None:
        print("too few points of rest to say whether memory grows")
    else:
        is_flat = "flat" if result.flat else "not flat"
        print(f"memory is {is_flat}: {result.growth / (1 << 20):+.1f} MiB")
    for signature, count in result.engine.items():
        print(f"the engine's own, around the release's scheduler too: {signature} ({count} lives)")
    for leak in result.leaks:
        print(f"leak: {leak.what}: {leak.held} held at rest, {leak.most} allowed")
    if result.finding is not None:
        from kvproof.conformance.cli import console, verdict

        verdict.show_all(console.output(), [result.finding])
    for file in result.files:
        print(file)
    if result.holds:
        print("nothing found, nothing leaks")


def _mebibytes(count: int) -> str:
    return f"{count / (1 << 20):.0f} MiB"
