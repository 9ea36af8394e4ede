"""``kvproof replay``: play a recorded history again and judge it anew."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kvproof.conformance.cli.options import Json
from kvproof.conformance.cli.targets import open_target
from kvproof.conformance.errors import EXIT_FINDING, EXIT_HOLDS, UsageError

if TYPE_CHECKING:
    from kvproof.conformance.engines.base import History, Target
    from kvproof.conformance.monitor.finding import Finding

_HISTORY = ".history.json"


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
    path = history_of(file)
    history = read_history(path)
    target = open_target(history.target, context)

    from kvproof.conformance.cli import console, verdict

    finding, events = _play(target, history)
    if as_json:
        console.print_json(
            {
                "verdict": "holds" if finding is None else "finding",
                "file": str(path),
                "target": history.target,
                "moves": len(history.moves),
                "events": events,
                "finding": finding,
            }
        )
    elif finding is None:
        print(f"holds: {len(history.moves)} moves, {events} events on {history.target}")
    else:
        out = console.output()
        out.print(f"{path} ({history.target}, {len(history.moves)} moves)")
        verdict.show(out, finding)
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


def read_history(path: Path) -> History:
    """Read a history.

    Raises:
        UsageError: it cannot be read or is no history.
    """
    import msgspec

    from kvproof.conformance.engines.base import History

    try:
        return msgspec.json.decode(path.read_bytes(), type=History)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from None
    except msgspec.DecodeError as error:
        raise UsageError(f"{path}: not a history: {error}") from None


def _play(target: Target, history: History) -> tuple[Finding | None, int]:
    """The first finding, if any, and how many events it took."""
    from kvproof.conformance.cli import console
    from kvproof.conformance.monitor.monitor import Monitor
    from kvproof.conformance.trace.events import AnyEvent

    refusal = target.supports(history.setup)
    if refusal is not None:
        raise UsageError(f"{target.name} cannot run this history: {refusal}")
    events: list[AnyEvent] = []
    engine = target.start(history.setup, events.append)
    monitor = Monitor(engine.header)
    judged = 0
    try:
        with console.progress("replaying") as advance:
            for number, move in enumerate(history.moves, start=1):
                engine.play(move)
                for event in events[judged:]:
                    judged += 1
                    finding = monitor.feed(event)
                    if finding is not None:
                        return finding, judged
                advance("", number, len(history.moves))
    finally:
        engine.close()
    return None, judged
