"""What is written for a finding: trace, history, finding, a table, and a pytest file."""

from __future__ import annotations

import hashlib
import pprint
import re
from pathlib import Path

import msgspec

from kvproof.conformance.engines import names
from kvproof.conformance.engines.base import (
    Abort,
    Add,
    Drain,
    Extend,
    History,
    Move,
    ResetCache,
    Step,
    Target,
)
from kvproof.conformance.fuzz import table
from kvproof.conformance.fuzz.session import MakeJudge, monitor, play
from kvproof.conformance.monitor.finding import MISSED, Finding, Signature
from kvproof.conformance.trace import codec

TEMPLATE = Path(__file__).parent / "templates" / "standalone.py.template"
_GIVEN = TEMPLATE.with_name("given.py.template")
"""What the stand-alone file has on top when somebody else's class takes part."""
_SECOND = TEMPLATE.with_name("second.py.template")
"""The same when another connector is composed with the offloading one."""


def write(
    out: Path,
    target: Target,
    history: History,
    make_judge: MakeJudge = monitor,
    signature: Signature | None = None,
) -> list[Path]:
    """Replay ``history`` and write its files into ``out``; returns their paths.

    ``signature`` says which finding of the history they are about; by default its first.

    ``<id>-<digest>.jsonl`` is the trace, ``.history.json`` replays, ``.finding.json`` is the
    verdict, ``.txt`` is for people, and ``test_<id>_<digest>.py`` runs on a vLLM release alone. The
    digest names the history, so that the same finding lands in the same files. A finding of class
    *missed* has no such test: where only work or a hit is lost, bytes tell nothing. Nor has one on
    a release whose connector numbers no jobs: the stand-alone driver knows jobs by number only. Nor
    over a second tier, which that driver does not pace, or on the simulated device.

    Raises:
        ValueError: the history breaks nothing.
    """
    session = play(target, history.setup, history.moves, make_judge, until=signature)
    findings = session.findings()
    finding = session.broken(signature) if signature else next(iter(findings), None)
    if finding is None:
        raise ValueError("the history does not break that: there is no finding to write")
    stem = name_of(history, finding)
    out.mkdir(parents=True, exist_ok=True)
    paths = {
        kind: out / f"{stem}{kind}" for kind in (".jsonl", ".history.json", ".finding.json", ".txt")
    }
    codec.write(paths[".jsonl"], session.engine.header, session.events)
    paths[".history.json"].write_bytes(_json(history))
    paths[".finding.json"].write_bytes(_json(finding))
    paths[".txt"].write_text(table.render(session, finding), encoding="utf-8")
    driven = (
        session.engine.header.features.get("numbers_jobs", True)
        and history.setup.tier == "cpu"
        and not history.setup.device
    )
    if finding.severity == MISSED or not driven:
        return [*paths.values()]
    test = out / f"test_{stem.replace('-', '_').replace('.', '_')}.py"
    test.write_text(standalone(history, finding), encoding="utf-8")
    return [*paths.values(), test]


def name_of(history: History, finding: Finding) -> str:
    """``<id>-<digest>``: a file name that the same history always gets."""
    named = msgspec.json.encode(history)
    if finding.severity == MISSED:
        # One history may show several of them.
        named += str(finding.signature()).encode()
    digest = hashlib.sha256(named).hexdigest()[:8]
    return f"{re.sub(r'[^A-Za-z0-9.]+', '-', finding.id)}-{digest}"


def standalone(history: History, finding: Finding) -> str:
    """A pytest module that plays the history on a vLLM release, with nothing of this project."""
    setup = msgspec.to_builtins(history.setup)
    calls = "".join(f"    {_call(move)!r},\n" for move in history.moves)
    where = finding.facts.get("where")
    title = f"{finding.id}: {finding.sentence}".strip()
    fill = {
        "TITLE": title if title.endswith((".", "!", "?")) else title + ".",
        "TARGET": history.target + (f" (at {where})" if where else ""),
        "SUBSTITUTE": _substitute(history),
        "SETUP": pprint.pformat(setup, sort_dicts=False, width=96),
        "MOVES": f"[\n{calls}]",
        "NAME": name_of(history, finding).replace("-", "_").replace(".", "_"),
    }
    text = TEMPLATE.read_text(encoding="utf-8")
    for key, value in fill.items():
        text = text.replace(f"@@{key}@@", value)
    return text


def _substitute(history: History) -> str:
    """The classes beside the release's own that take part: somebody else's, a second connector."""
    lines = ""
    given = names.given_in(history.target)
    if given is not None:
        lines += _GIVEN.read_text(encoding="utf-8").replace("@@GIVEN@@", repr(given))
    if history.setup.second_connector:
        lines += _SECOND.read_text(encoding="utf-8")
    return lines


def _call(move: Move) -> tuple[object, ...]:
    """A move as the stand-alone driver takes it: its method, then the arguments."""
    match move:
        case Add(req, tokens, max_tokens):
            call = ("add", req, list(tokens), max_tokens)
            plain = Add(req, tokens, max_tokens)
            said = {
                name: value
                for name, value in msgspec.structs.asdict(move).items()
                if value != getattr(plain, name)
            }
            return (*call, said) if said else call
        case Extend(req, tokens, max_tokens):
            return ("extend", req, list(tokens), max_tokens)
        case Abort(req):
            return ("abort", req)
        case ResetCache(connector, running):
            return ("reset", connector, running)
        case Drain():
            return ("drain",)
        case Step(finish, fail):
            return ("step", finish, fail) if fail else ("step", finish)


def _json(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
