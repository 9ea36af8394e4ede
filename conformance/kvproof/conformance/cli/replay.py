"""``kvproof replay``: play a recorded history again and judge it anew."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kvproof.conformance.cli.options import Class, Json, Severity
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
    severity: Severity = Class.MISSED,
    as_json: Json = False,
) -> None:
    """Replay a history on the target that it was found on.

    Exit code 1: it breaks the contract again, and what it breaks is printed. 0: nothing is found.
    """
    from kvproof.conformance.fuzz import replay as player

    path = history_of(file)
    history = player.load(path)
    target = open_target(history.target, context)

    from kvproof.conformance.cli import console, verdict

    session = player.run(history, target)
    findings = session.findings(severity)
    recorded = recorded_with(path)
    same = None
    if findings and recorded is not None:
        same = recorded.signature() in [finding.signature() for finding in findings]
    if as_json:
        console.print_json(
            {
                "verdict": "finding" if findings else "holds",
                "file": str(path),
                "target": history.target,
                "moves": len(history.moves),
                "events": len(session.events),
                "finding": session.finding,
                "missed": [one for one in findings if one is not session.finding],
                "as_recorded": same,
            }
        )
    elif not findings:
        print(f"holds: {len(history.moves)} moves, {len(session.events)} events on {target.name}")
    else:
        out = console.output()
        out.print(f"{path} ({target.name}, {len(history.moves)} moves)")
        verdict.show_all(out, findings)
        if same is False and recorded is not None:
            out.print(f"not the finding that was recorded, which is {recorded.signature()}")
    raise typer.Exit(EXIT_FINDING if findings else EXIT_HOLDS)


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
