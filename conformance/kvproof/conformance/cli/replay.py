"""``kvproof replay``: play a recorded history again and judge it anew."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kvproof.conformance.cli.options import Json
from kvproof.conformance.cli.targets import open_target
from kvproof.conformance.errors import EXIT_FINDING, EXIT_HOLDS, UsageError

if TYPE_CHECKING:
    from kvproof.conformance.monitor.finding import Finding

_HISTORY = ".history.json"
_FINDING = ".finding.json"


def replay(
    context: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A history (X.history.json), or the X.jsonl beside it."
        ),
    ],
    as_json: Json = False,
) -> None:
    """Replay a history on the target that it was found on.

    Exit code 1: it breaks the contract again, and the finding is printed. 0: nothing is found.
    """
    from kvproof.conformance.fuzz import replay as player

    path = history_of(file)
    history = player.load(path)
    target = open_target(history.target, context)

    from kvproof.conformance.cli import console, verdict

    session = player.run(history, target)
    finding = session.finding
    recorded = recorded_with(path)
    same = finding.signature() == recorded.signature() if finding and recorded else None
    if as_json:
        console.print_json(
            {
                "verdict": "holds" if finding is None else "finding",
                "file": str(path),
                "target": history.target,
                "moves": len(history.moves),
                "events": len(session.events),
                "finding": finding,
                "as_recorded": same,
            }
        )
    elif finding is None:
        print(f"holds: {len(history.moves)} moves, {len(session.events)} events on {target.name}")
    else:
        out = console.output()
        out.print(f"{path} ({target.name}, {len(history.moves)} moves)")
        verdict.show(out, finding)
        if same is False and recorded is not None:
            out.print(f"not the finding that was recorded, which is {recorded.id}")
    raise typer.Exit(EXIT_HOLDS if finding is None else EXIT_FINDING)


def history_of(file: Path) -> Path:
    """The history that ``file`` is, or that lies beside the trace ``file``.

    Raises:
        UsageError: there is none.
    """
    path = file if file.suffix == ".json" else file.with_suffix(_HISTORY)
    if not path.is_file():
        raise UsageError(f"{path}: there is no such history")
    return path


def recorded_with(history: Path) -> Finding | None:
    """The finding that was written beside a history, if it is there.

    Raises:
        UsageError: what lies there is no finding.
    """
    import msgspec

    from kvproof.conformance.monitor.finding import Finding

    path = history.with_name(history.name.removesuffix(_HISTORY) + _FINDING)
    if not path.is_file():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=Finding)
    except msgspec.DecodeError as error:
        raise UsageError(f"{path}: not a finding: {error}") from None
