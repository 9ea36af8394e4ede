"""``kvproof fuzz``: search for the shortest history in which a scheduler breaks the contract."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kvproof.conformance.cli.options import (
    Class,
    Device,
    DeviceName,
    Json,
    Scheduler,
    Severity,
    TargetName,
    Tier,
    TierName,
)
from kvproof.conformance.cli.targets import check_behind, open_target
from kvproof.conformance.errors import EXIT_FINDING, EXIT_HOLDS, EXIT_UNDECIDED, UsageError

if TYPE_CHECKING:
    from kvproof.conformance.fuzz.campaign import CampaignProgress, CampaignResult, Found


def fuzz(
    context: typer.Context,
    target: TargetName,
    scheduler: Scheduler = None,
    tier: Tier = TierName.CPU,
    device: Device = DeviceName.NONE,
    planted: Annotated[
        str | None,
        typer.Option(
            "--planted",
            metavar="FAULT",
            help="A fault that is put into kvproof's own tier and transfers, to see it found.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Same seed, same runs.")] = 0,
    seconds: Annotated[
        float | None, typer.Option("--time", min=0.0, help="Stop after this many seconds.")
    ] = None,
    max_examples: Annotated[
        int | None, typer.Option("--max-examples", min=1, help="Stop after this many runs.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for what is found.")] = Path(
        "out/fuzz"
    ),
    allow: Annotated[
        Path | None,
        typer.Option(
            "--allow", help="Known findings to pass over: one `ID ACTION [WHERE] [(KIND)]` a line."
        ),
    ] = None,
    severity: Severity = Class.MISSED,
    demand: Annotated[
        str | None,
        typer.Option(
            "--demand",
            metavar="all|FILE",
            help="Fail when an id or a move had no chance; FILE excuses some: `NAME  # reason`.",
        ),
    ] = None,
    stop_at: Annotated[
        int | None, typer.Option("--stop-at", min=1, help="Stop after this many distinct findings.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Fuzz a scheduler: drawn configurations, drawn engine moves, judged by the contract.

    Goes on until the budget is spent. Each distinct finding that is not allowed is shrunk and
    written to --out at once, for `replay` and as a pytest file; the campaign's counts go there as
    well, for `report`. Exit code 0: nothing found. 1: a finding. 3: none, but something that is
    demanded had no chance.
    """
    from kvproof.conformance.fuzz.allowed import read_allowed
    from kvproof.conformance.fuzz.demand import idle_excuses, read_demand, unmet

    if seconds is None and max_examples is None:
        raise UsageError("say when to stop: --time SECONDS, --max-examples N, or both")
    known = read_allowed(allow) if allow is not None else frozenset()
    excused = read_demand(demand) if demand is not None else None
    opened = open_target(target, context, scheduler)
    behind = {"tier": tier.value, "device": device.value, "planted": planted or ""}
    check_behind(opened, behind)

    out.mkdir(parents=True, exist_ok=True)  # should fail now, not when there is a finding to write

    import msgspec

    from kvproof.conformance.cli import console
    from kvproof.conformance.fuzz import campaign
    from kvproof.conformance.report.evidence import write_campaign

    with console.progress("") as advance:
        result = campaign.run(
            opened,
            seed=seed,
            seconds=seconds,
            max_examples=max_examples,
            out=out,
            allow=known,
            severity=severity,
            stop_at=stop_at,
            behind=behind,
            plain=opened.plain(),
            progress=lambda now: advance(*_position(now, seconds, max_examples)),
        )
    write_campaign(out, result)
    missing = unmet(result.coverage, excused) if excused is not None else []
    if as_json:
        console.print_json({**msgspec.to_builtins(result), "unmet": missing})
    else:
        _print(result)
        for name in idle_excuses(result.coverage, excused or {}):
            print(f"excused, but it had a chance: {name}")
        if missing:
            print(f"demanded, but had no chance: {', '.join(missing)}")
    if result.found:
        raise typer.Exit(EXIT_FINDING)
    raise typer.Exit(EXIT_UNDECIDED if missing else EXIT_HOLDS)


def _position(
    now: CampaignProgress, seconds: float | None, max_examples: int | None
) -> tuple[str, int, int]:
    """What the progress bar shows: runs where their number is the limit, else seconds."""
    if max_examples is not None and seconds is None:
        return (now.phase, now.examples, max_examples)
    return (f"{now.phase}, {now.examples} runs", int(now.seconds), int(seconds or 0))


def _print(result: CampaignResult) -> None:
    from kvproof.conformance.cli import console, coverage

    print(
        f"{result.target}, seed {result.seed}: {result.examples} runs, {result.steps} moves, "
        f"{result.events} events in {result.seconds:.1f} s"
    )
    for signature, count in result.allowed.items():
        print(f"passed over, as allowed: {signature} ({count} times)")
    for signature, count in result.engine.items():
        print(f"the engine's own, around the release's scheduler too: {signature} ({count} times)")
    print()
    console.output().print(coverage.table(result.coverage))
    print()
    for number, found in enumerate(result.found, start=1):
        _print_found(number, found)
    if result.found:
        _print_summary(result)
    else:
        print("nothing found")


def _print_found(number: int, found: Found) -> None:
    files = [Path(file) for file in found.files]
    print(
        f"\nfinding {number}: run {found.example}, after {found.seconds:.1f} s, "
        f"shrunk in {found.replays} replays\n"
    )
    print("\n".join(file.read_text(encoding="utf-8") for file in files if file.suffix == ".txt"))
    for file in files:
        print(file)
    for file in files:
        if file.name.endswith(".history.json"):
            print(f"\nagain: kvproof replay {file}")


def _print_summary(result: CampaignResult) -> None:
    from rich.table import Table

    from kvproof.conformance.cli import console

    table = Table(
        "finding",
        "class",
        "explained by",
        "culprit",
        "where",
        "kind",
        "run",
        "moves",
        "again",
        box=None,
        pad_edge=False,
    )
    for found in result.found:
        finding = found.finding
        where = finding.facts.get("where", finding.action).rpartition("/")[2]
        table.add_row(
            finding.id,
            finding.severity,
            finding.explained_by or "",
            finding.culprit,
            where,
            finding.kind,
            str(found.example),
            str(len(found.history.moves)),
            str(result.again.get(str(finding.signature()), 0)),
        )
    print()
    console.output().print(table)
