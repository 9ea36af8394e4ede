"""The ledger as one HTML page that needs nothing beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import jinja2
import msgspec
from markupsafe import Markup

from kvproof.conformance.fuzz.table import one_line
from kvproof.conformance.report.evidence import Case
from kvproof.conformance.report.film import EVENTS_KEPT, Film, shoot
from kvproof.conformance.report.ledger import Ledger
from kvproof.conformance.trace import codec
from kvproof.conformance.trace.events import Header
from kvproof.spec.contract import contract

TEMPLATES = Path(__file__).parent / "templates"

FRAMES_IN_ALL = 8000
"""Events that one page shows step by step; later histories are listed without a stepper."""


class Scene(msgspec.Struct, frozen=True):
    """One history on the page; ``film`` is None when ``note`` says why it has none."""

    number: int
    case: Case
    setup: str
    moves: list[str]
    film: Film | None
    note: str


def render(ledger: Ledger, progress: Callable[[int, int], None] | None = None) -> str:
    """The page as HTML text.

    Raises:
        UsageError: a trace that was read before cannot be read any more.
    """
    scenes: list[Scene] = []
    room = FRAMES_IN_ALL
    for number, case in enumerate(ledger.cases):
        if progress:
            progress(number, len(ledger.cases))
        made = scene(number, case, room)
        room -= len(made.film.frames) if made.film else 0
        scenes.append(made)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["embed"] = embed
    environment.filters["thousands"] = lambda number: f"{number:,}".replace(",", "\u202f")
    return environment.get_template("ledger.html.j2").render(
        ledger=ledger,
        scenes=scenes,
        fields={name: f.doc for name, f in contract().fields.items() if f.kind != "attribute"},
        css=Markup((TEMPLATES / "ledger.css").read_text(encoding="utf-8")),
        js=Markup((TEMPLATES / "ledger.js").read_text(encoding="utf-8")),
    )


def embed(value: object) -> Markup:
    """``value`` as JSON that is safe inside a script element: no character there can end it."""
    text = msgspec.json.encode(value).decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def scene(number: int, case: Case, room: int) -> Scene:
    """What the page shows of a history; ``room`` is how many events may still be shown."""
    moves = [one_line(move) for move in case.history.moves] if case.history else []
    if case.judged is None:
        return Scene(number, case, "", moves, None, "No trace lies beside it: nothing to step.")
    header, events = codec.read(Path(case.judged.file))
    setup = setup_line(header)
    judged = events[: case.judged.events]
    if case.finding is not None:
        judged = judged[: case.finding.index + 1]
    if min(len(judged), EVENTS_KEPT) > room:
        note = f"This page already shows {FRAMES_IN_ALL} events step by step: this one is left out."
        return Scene(number, case, setup, moves, None, note)
    film = shoot(header, judged)
    cut = []
    if film.first:
        cut.append(f"The first {film.first} of {len(judged)} events are left out here.")
    if len(judged) < len(events):
        cut.append(f"The trace goes on for {len(events) - len(judged)} events after the finding.")
    return Scene(number, case, setup, moves, film, " ".join(cut))


def setup_line(header: Header) -> str:
    """The sizes of a recorded run in one line."""
    groups = ", ".join(
        f"{group.kind} of {group.tokens_per_block}"
        + (f" (window {group.window})" if group.window is not None else "")
        for group in header.groups
    )
    options = [name.replace("_", " ") for name, on in header.options.items() if on is True]
    return "; ".join(
        [
            f"blocks: {groups}",
            f"{header.blocks_per_chunk} to a chunk",
            f"{header.num_gpu_blocks} on the GPU",
            f"{header.num_slots} slots",
            f"{header.num_workers} worker{'s' if header.num_workers != 1 else ''}",
            *options,
        ]
    )
