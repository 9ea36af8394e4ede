"""A failing history for people: a line a move, then the broken obligation and its facts."""

from __future__ import annotations

import io
from collections import defaultdict

from rich.console import Console
from rich.table import Table

from kvproof.conformance.engines.base import (
    Abort,
    Add,
    Drain,
    Extend,
    Move,
    ResetCache,
    Step,
)
from kvproof.conformance.fuzz.session import Session
from kvproof.conformance.monitor.finding import MISSED, Finding
from kvproof.conformance.trace import events as ev

WIDTH = 160


def render(session: Session, finding: Finding | None = None) -> str:
    """The session's moves and a finding of it as plain text, at most ``WIDTH`` columns wide.

    By default the finding that ended the session.
    """
    console = Console(
        file=io.StringIO(), width=WIDTH, highlight=False, markup=False, color_system=None
    )
    console.print(f"{session.target.name}: {setup_line(session)}\n")
    rows = Table("move", "requests", "leases", "jobs", "tier", box=None, pad_edge=False)
    told: dict[int, list[ev.AnyEvent]] = defaultdict(list)
    for owner, event in zip(session.owners, session.events, strict=True):
        told[owner].append(event)
    for index, move in enumerate(session.moves):
        rows.add_row(f"{index + 1}. {one_line(move)}", *columns(told[index]))
    console.print(rows)
    finding = finding or session.finding
    if finding is not None:
        console.print(f"\n{finding.id}: {finding.sentence}")
        console.print(
            f"broken by the {finding.culprit} ({finding.severity}), event {finding.index} "
            f"({finding.event}), step {finding.step}, action {finding.action}"
        )
        if finding.explained_by:
            console.print(f"explained by {finding.explained_by}")
        if finding.kind:
            console.print(f"kind: {finding.kind}")
        if finding.severity == MISSED:
            console.print("no stand-alone test: nothing is wrong with any byte, so none could tell")
        facts = Table("fact", "value", box=None, pad_edge=False)
        for name, value in finding.facts.items():
            facts.add_row(name, value)
        if finding.facts:
            console.print(facts)
    file = console.file
    assert isinstance(file, io.StringIO)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


def setup_line(session: Session) -> str:
    """The setup in one line."""
    setup = session.setup
    groups = ", ".join(
        f"{group.kind} of {group.tokens_per_block}"
        + (f" (window {group.window})" if group.window is not None else "")
        for group in setup.groups
    )
    extras = [
        name
        for name, on in (
            ("asynchronous", setup.asynchronous),
            ("prompt only", setup.prompt_only),
            ("no prefix cache", not setup.prefix_caching),
            (f"retention {setup.retention_interval}", setup.retention_interval is not None),
            (setup.kv_role, setup.kv_role != "kv_both"),
            (f"{setup.num_workers} workers", setup.num_workers > 1),
            (f"stored when asked for {setup.store_threshold} times", setup.store_threshold > 1),
            (f"eviction {setup.eviction}", setup.eviction != "lru"),
            (f"loads of {setup.sync_load_bytes} bytes at once", setup.sync_load_bytes > 0),
            ("a second connector", setup.second_connector),
            (f"failed loads: {setup.load_failure}", setup.load_failure != "recompute"),
        )
        if on
    ]
    return "; ".join(
        [
            f"blocks: {groups}",
            f"{setup.blocks_per_chunk} blocks a chunk",
            f"{setup.num_gpu_blocks} GPU blocks",
            f"{setup.num_slots} slots",
            f"{setup.max_batch_tokens} tokens and {setup.max_running} requests a step",
            *extras,
        ]
    )


def one_line(move: Move) -> str:
    """A move as people read it."""
    match move:
        case Add(req, tokens, max_tokens):
            return f"add {req} ({len(tokens)} tokens, {max_tokens} to come{_options(move)})"
        case Extend(req, tokens, max_tokens) if tokens:
            return f"extend {req} ({len(tokens)} tokens, {max_tokens} to come)"
        case Extend(req):
            return f"close {req}"
        case Abort(req):
            return f"abort {req}"
        case ResetCache(connector, running):
            what = "everything" if connector else "the GPU prefix cache"
            return f"reset {what}{', running requests preempted' if running else ''}"
        case Drain():
            return "drain"
        case Step(finish, fail):
            failing = f", failing: {fail}" if fail else ""
            return f"step ({finish} of the copies end{failing})"


def _options(add: Add) -> str:
    """What else an ``Add`` says."""
    told = [
        text
        for text, said in (
            (f"loads {add.max_load} at most", add.max_load is not None),
            (f"offers {add.max_offload} at most", add.max_offload is not None),
            ("skips reading", add.skip_reading),
            (f"stops after {add.stop_after}", add.stop_after is not None),
            ("a session", add.session),
        )
        if said
    ]
    return "".join(f", {text}" for text in told)


def columns(told: list[ev.AnyEvent]) -> tuple[str, str, str, str]:
    """What a move's events say of requests, leases, jobs and the tier."""
    requests: list[str] = []
    leases: dict[str, list[str]] = defaultdict(list)
    jobs: list[str] = []
    tier: list[str] = []
    for event in told:
        match event:
            case ev.Arrive(req=req):
                requests.append(f"{req} arrives")
            case ev.Extended(req=req, kept=kept, tokens=tokens_after):
                requests.append(f"{req} keeps {kept}, goes on with {len(tokens_after)}")
            case ev.Received(req=req, ok=False):
                requests.append(f"{req}'s load failed")
            case ev.Finish(req=req, status=status):
                requests.append(f"{req} {status}")
            case ev.Preempt(req=req):
                requests.append(f"{req} preempted")
            case ev.Scheduled(computing=computing):
                requests += [f"{c.req} [{c.start}, {c.end})" for c in computing]
            case ev.Answer(req=req, tokens=tokens):
                requests.append(f"{req} {'deferred' if tokens is None else f'hits {tokens}'}")
            case ev.Reset():
                requests.append("reset")
            case ev.Stalled(reqs=reqs):
                requests.append(f"does not come to rest: {', '.join(reqs) or 'no request is left'}")
            case ev.Raised(call=call, exception=exception):
                requests.append(f"{call} raises {exception}")
            case ev.Lease(req=req, group=group, block=block, position=position):
                leases[f"{req}/{group}"].append(f"{position}:{block}")
            case ev.Free(req=req, lease=lease, why=why):
                leases[f"{req} {why}"].append(f"#{lease}")
            case ev.Issue(job=job, kind=kind, req=req, pieces=pieces):
                moved = " ".join(f"{p.block}>{p.slot}.{p.offset}" for p in pieces)
                jobs.append(f"{kind} {job} of {req} {moved}")
            case ev.Filled(req=req, start=start, end=end, rank=rank):
                jobs.append(f"w{rank} another connector writes {req} [{start}, {end})")
            case ev.Flush(jobs=flushed) if flushed:
                jobs.append(f"flush {flushed}")
            case ev.Submit(job=job, rank=rank):
                jobs.append(f"w{rank} submits {job}")
            case ev.Done(job=job, rank=rank, ok=ok):
                jobs.append(f"w{rank} {'ends' if ok else 'fails'} {job}")
            case ev.PrepareStore(keys=keys, refused=refused, accepted=accepted, evicted=evicted):
                took = "refused" if refused else f"takes {len(accepted)} of {len(keys)}"
                tier.append(took + (f", evicts {len(evicted)}" if evicted else ""))
            case ev.PrepareLoad(slots=slots):
                tier.append(f"pins {slots}")
            case ev.CompleteStore(keys=keys, ok=ok):
                tier.append(f"{len(keys)} {'ready' if ok else 'dropped'}")
            case ev.CompleteLoad(keys=keys):
                tier.append(f"unpins {len(keys)}")
            case ev.Promote(accepted=accepted, evicted=evicted):
                tier.append(
                    f"brings back {len(accepted)}" + (f", evicts {len(evicted)}" if evicted else "")
                )
            case ev.Promoted(keys=keys, ok=ok):
                tier.append(f"{len(keys)} {'back' if ok else 'not back'}")
            case ev.TierReset():
                tier.append("emptied")
            case _:
                pass
    shown = [f"{owner} {' '.join(blocks)}" for owner, blocks in leases.items()]
    return ("\n".join(requests), "\n".join(shown), "\n".join(jobs), "\n".join(tier))
