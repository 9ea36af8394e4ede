"""One event in a few words, and the lane of the time line that it belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kvproof.conformance.trace import events as ev

LANES = ("requests", "blocks", "jobs", "tier")
LONGEST = 140


def narrate(event: ev.AnyEvent) -> tuple[str, str]:
    """``(lane, text)`` of an event."""
    lane, text = _told(event)
    return lane, text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _told(event: ev.AnyEvent) -> tuple[str, str]:
    for lane, tell in (("requests", _request), ("blocks", _block), ("jobs", _job)):
        text = tell(event)
        if text is not None:
            return lane, text
    return "tier", _tier(event)


def _request(event: ev.AnyEvent) -> str | None:
    match event:
        case ev.Arrive(req=req, tokens=tokens, salt=salt):
            return f"{req} arrives with {_n(tokens, 'token')}" + (f", salt {salt}" if salt else "")
        case ev.Hashed(req=req, first=first, hashes=hashes):
            return f"{req}: {_n(hashes, 'hash', 'hashes')} from #{first}"
        case ev.Finish(req=req, status=status):
            return f"{req} finishes: {status}"
        case ev.Preempt(req=req):
            return f"{req} is preempted"
        case ev.Scheduled(computing=computing):
            return "scheduled: " + (_computed(computing) or "nothing to compute")
        case ev.Received(req=req, ok=ok):
            return f"{req}: its load {'has ended' if ok else 'has failed'}"
        case ev.Reset():
            return "the engine resets the connector"
        case ev.Drained(residue=residue):
            left = ", ".join(f"{n} {what}" for what, n in residue.items() if n)
            return f"drained; left: {left or 'nothing'}"
        case ev.Stalled(reqs=reqs):
            return f"the engine does not come to rest; left: {', '.join(reqs) or 'no request'}"
        case ev.Raised(call=call, exception=exception):
            return f"{call} raises {exception}"
        case ev.Ask(req=req, computed=computed):
            return f"{req}: what beyond {computed} can be loaded?"
        case ev.Answer(req=req, tokens=tokens):
            return f"{req}: " + ("deferred" if tokens is None else f"{tokens} tokens")
        case ev.Filled(req=req, start=start, end=end, rank=rank):
            return f"rank {rank}: another connector writes {req} [{start}, {end})"
        case ev.Allocated(req=req, external=external):
            return f"{req}: blocks for {external} tokens to load"
        case _:
            return None


def _block(event: ev.AnyEvent) -> str | None:
    match event:
        case ev.Lease(lease=lease, block=block, req=req, group=group, position=position):
            return f"block {block} → {req} as lease {lease}, group {group} @{position}"
        case ev.Share(lease=lease, req=req, group=group, position=position):
            return f"{req} shares lease {lease}, group {group} @{position}"
        case ev.Free(lease=lease, req=req, why=why):
            return f"{req} gives up lease {lease} ({why})"
        case ev.Forward(rank=rank, computing=computing):
            return f"rank {rank} forward: {_computed(computing) or 'nothing'}"
        case ev.CopyBlock(rank=rank, src_lease=source, dst_lease=target):
            return f"rank {rank} copies lease {source} onto lease {target}"
        case ev.Zero(rank=rank, leases=leases):
            return f"rank {rank} clears leases {_list(leases)}"
        case _:
            return None


def _job(event: ev.AnyEvent) -> str | None:
    match event:
        case ev.Launch(rank=rank):
            return f"rank {rank} begins the step"
        case ev.Issue(job=job, kind=kind, req=req, pieces=pieces):
            arrow = "→" if kind == "store" else "←"
            moved = ", ".join(f"block {p.block} {arrow} slot {p.slot}+{p.offset}" for p in pieces)
            return f"{kind} {job} of {req}: {moved or 'no pieces'}"
        case ev.Flush(jobs=jobs):
            return f"flush jobs {_list(jobs)}" if jobs else "flush nothing"
        case ev.Submit(job=job, rank=rank):
            return f"rank {rank} submits job {job}"
        case ev.Done(job=job, rank=rank, ok=ok):
            return f"rank {rank}: the copy of job {job} {'ends' if ok else 'fails'}"
        case ev.Wait(jobs=jobs, rank=rank):
            return f"rank {rank} waits for jobs {_list(jobs)}"
        case ev.Report(job=job, rank=rank, ok=ok):
            return f"rank {rank} reports job {job}: {'done' if ok else 'failed'}"
        case _:
            return None


def _tier(event: ev.AnyEvent) -> str:
    match event:
        case ev.Probe(req=req, key=key, result=result):
            return f"{req}: {_key(key)} is a {result}"
        case ev.PrepareStore(refused=True, req=req, keys=keys):
            return f"no room for {_n(keys, 'key')} of {req}"
        case ev.PrepareStore(req=req, keys=keys, evicted=evicted, accepted=accepted):
            taken = ", ".join(f"{_key(key)} in slot {slot}" for key, slot in accepted)
            gone = f"; evicts {_list(map(_key, evicted))}" if evicted else ""
            return f"takes {len(accepted)} of {_n(keys, 'key')} of {req}: {taken or 'none'}{gone}"
        case ev.PrepareLoad(req=req, slots=slots):
            return f"pins slots {_list(slots)} for {req}" if slots else f"pins nothing for {req}"
        case ev.CompleteStore(keys=keys, ok=ok):
            return f"{_list(map(_key, keys))} {'can be read' if ok else 'dropped'}"
        case ev.CompleteLoad(keys=keys):
            return f"unpins {_list(map(_key, keys))}"
        case ev.Touch(keys=keys):
            return f"touches {_n(keys, 'key')}"
        case ev.Promote(req=req, evicted=evicted, accepted=accepted):
            back = ", ".join(f"{_key(key)} to slot {slot}" for key, slot in accepted)
            gone = f"; evicts {_list(map(_key, evicted))}" if evicted else ""
            return f"brings back for {req}: {back}{gone}"
        case ev.Promoted(keys=keys, ok=ok):
            return f"{_list(map(_key, keys))} {'is back' if ok else 'does not come back'}"
        case ev.TierRequest(req=req, phase=phase):
            return f"is told: {req} {phase}"
        case ev.TierReset():
            return "is emptied"
        case ev.KvEvents(changes=changes):
            what = sorted({change.what for change in changes})
            keys = [key for change in changes for key in change.keys]
            return f"tells of {_n(keys, 'key')}: {_list(what)}"
        case _:
            return str(type(event).__struct_config__.tag)


def _computed(computing: Sequence[ev.Computing]) -> str:
    return ", ".join(f"{c.req} [{c.start}, {c.end})" for c in computing)


def _key(key: str) -> str:
    block_hash, _, group = key.rpartition(":")
    return f"key {block_hash[:8]}:{group}"


def _n(things: Sequence[object], one: str, many: str = "") -> str:
    return f"{len(things)} {one if len(things) == 1 else many or one + 's'}"


def _list(things: Iterable[object]) -> str:
    return ", ".join(map(str, things)) or "none"
