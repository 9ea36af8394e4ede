"""``kvproof fuzz``: search for the shortest history in which a scheduler breaks the contract."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kvproof.conformance.cli.options import Json, Scheduler, TargetName
from kvproof.conformance.cli.targets import open_target
from kvproof.conformance.errors import EXIT_FINDING, EXIT_HOLDS, UsageError

if TYPE_CHECKING:
    from kvproof.conformance.fuzz.campaign import CampaignProgress, CampaignResult, Found


def fuzz(
    context: typer.Context,
    target: TargetName,
    scheduler: Scheduler = None,
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
            "--allow", help="Known findings to pass over: one `ID ACTION [WHERE]` a line."
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
    well, for `report`. Exit code 0: nothing found. 1: a finding.
    """
    if seconds is None and max_examples is None:
        raise UsageError("say when to stop: --time SECONDS, --max-examples N, or both")
    known = read_allowed(allow) if allow is not None else frozenset()
    opened = open_target(target, context, scheduler)

    out.mkdir(parents=True, exist_ok=True)  # should fail now, not when there is a finding to write

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
            stop_at=stop_at,
            progress=lambda now: advance(*_position(now, seconds, max_examples)),
        )
    write_campaign(out, result)
    if as_json:
        console.print_json(result)
    else:
        _print(result)
    raise typer.Exit(EXIT_FINDING if result.found else EXIT_HOLDS)


def _position(
    now: CampaignProgress, seconds: float | None, max_examples: int | None
) -> tuple[str, int, int]:
    """What the progress bar shows: runs where their number is the limit, else seconds."""
    if max_examples is not None and seconds is None:
        return (now.phase, now.examples, max_examples)
    return (f"{now.phase}, {now.examples} runs", int(now.seconds), int(seconds or 0))


def _print(result: CampaignResult) -> None:
    print(
        f"{result.target}, seed {result.seed}: {result.examples} runs, {result.steps} moves, "
        f"{result.events} events in {result.seconds:.1f} s"
    )
    for signature, count in result.allowed.items():
        print(f"passed over, as allowed: {signature} ({count} times)")
    if result.coverage.never:
        print(f"never happened: {', '.join(result.coverage.never)}")
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
        "explained by",
        "culprit",
        "where",
        "run",
        "moves",
        "again",
        box=None,
        pad_edge=False,
    )
    for found in result.found:
        finding = found.finding
        signature = " ".join(finding.signature()).rstrip()
        where = finding.facts.get("where", finding.action).rpartition("/")[2]
        table.add_row(
            finding.id,
            finding.explained_by or "",
            finding.culprit,
            where,
            str(found.example),
            str(len(found.history.moves)),
            str(result.again.get(signature, 0)),
        )
    print()
    console.output().print(table)


def read_allowed(path: Path) -> frozenset[tuple[str, str, str]]:
    """The finding signatures of an allow file: ``ID ACTION [WHERE]`` a line, ``#`` for remarks.

    Raises:
        UsageError: the file cannot be read, or a line is not written so.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from None
    signatures = set()
    for number, line in enumerate(lines, start=1):
        words = line.partition("#")[0].split(maxsplit=2)
        if not words:
            continue
        if len(words) < 2:
            raise UsageError(
                f"{path}:{number}: expected `ID ACTION [WHERE]`, found {line.strip()!r}"
            )
        identifier, action, where = (*words, "")[:3]
        signatures.add((identifier, action, where.strip()))
    return frozenset(signatures)
