"""From events to moves of the reference.

Every choice that a scheduler, a tier or a worker made is an event parameter, so each event has
exactly one reading: a short sequence of moves (one for a call, one for each piece of a job or each
slot of a forward). Nothing is searched for, and nothing is judged here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from itertools import chain
from typing import Any

from kvproof.conformance.monitor import forward
from kvproof.conformance.monitor.economy.judge import Economy
from kvproof.conformance.monitor.job_readers import Contradiction, JobReaders, Move
from kvproof.conformance.monitor.limits import limits_of
from kvproof.conformance.monitor.world import World
from kvproof.conformance.trace import events as ev
from kvproof.model.contract import Content, Lease, Request, Worker


class Mapping(JobReaders):
    """Reads one trace's events in order. Moves are to be made as they are yielded.

    What an event refers to depends on the state that earlier moves left, so a generator is
    consumed lazily: a move is carried out before the next one is asked for.
    """

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.economy = Economy(world)
        self.snapshots: dict[int, dict[Request, dict[int, dict[int, Lease]]]] = {}
        self.advancing: dict[Hashable, Lease] = {}
        self.replaced: dict[Lease, Lease] = {}
        self._readers: dict[type[Any], Callable[[Any], Iterator[Move]]] = {
            ev.Arrive: self._arrive,
            ev.Extended: self._extended,
            ev.Hashed: self._hashed,
            ev.Finish: self._finish,
            ev.Preempt: self._preempt,
            ev.Lease: self._lease,
            ev.Share: self._share,
            ev.Free: self._free,
            ev.Allocated: self._allocated,
            ev.Scheduled: self._scheduled,
            ev.Launch: self._launch,
            ev.Forward: self._forward,
            ev.CopyBlock: self._copy_block,
            ev.Filled: self._filled,
            ev.Zero: self._zero,
            ev.Received: self._received,
            ev.Reset: self._reset,
            ev.ResetRefused: self._reset_refused,
            ev.TierReset: self._reset,
            ev.Drained: self._drained,
            ev.Stalled: self._stalled,
            ev.Raised: self._raised,
            ev.Answer: self._answer,
            ev.TierRequest: self._tier_request,
            ev.Touch: self._touch,
            ev.Ask: self._ask,
            ev.Probe: self._probe,
            ev.PrepareStore: self._prepare_store,
            ev.PrepareLoad: self._prepare_load,
            ev.Promote: self._promote,
            ev.Promoted: self._promoted,
            ev.CompleteStore: self._complete_store,
            ev.CompleteLoad: self._complete_load,
            ev.Issue: self._issue,
            ev.Flush: self._flush,
            ev.Submit: self._submit,
            ev.Done: self._done,
            ev.Wait: self._wait,
            ev.Report: self._report,
        }

    def moves(self, event: ev.Event) -> Iterator[Move]:
        """The moves that ``event`` is; none for events that only inform."""
        kind = type(event)
        reader = self._readers.get(kind)
        own = reader(event) if reader else iter(())
        if not self.economy.listens_to(kind):
            return own
        # An event's own moves, between what economy says before and after them.
        return chain(self.economy.before(event), own, self.economy.after(event))

    # --- engine ---

    def _arrive(self, event: ev.Arrive) -> Iterator[Move]:
        r = self.world.request(event.req)
        if self._former_life_lingers(event.req):
            self.world.reused.add(r)
        self.world.limits[r] = limits_of(event, self.world.header)
        self.world.marks[r] = [self.world.contents.root(event.salt)]
        self.world.tokens(r, 0, event.tokens)
        yield "arrive", (r,)

    def _extended(self, event: ev.Extended) -> Iterator[Move]:
        r = self.world.request(event.req)
        self.world.limits[r].prompt = event.kept + len(event.tokens)
        del self.world.marks[r][event.kept + 1 :]
        self.world.hashed[r] = min(self.world.hashed.get(r, 0), event.kept)
        self.world.tokens(r, event.kept, event.tokens)
        yield "extend", (r,)

    def _hashed(self, event: ev.Hashed) -> Iterator[Move]:
        r = self.world.request(event.req)
        marks = self.world.marks[r]
        self.world.hashed[r] = (event.first + len(event.hashes)) * self.world.header.tokens_per_hash
        for i, block_hash in enumerate(event.hashes, start=event.first):
            tokens = (i + 1) * self.world.header.tokens_per_hash
            if tokens >= len(marks):
                raise Contradiction(f"{event.req} has a hash of {tokens} tokens before them")
            yield "name_prefix", (self.world.hashes.get(block_hash, marks[tokens]), marks[tokens])
            self.world.hashes[block_hash] = marks[tokens]
            self.world.named[marks[tokens]] = block_hash

    def _former_life_lingers(self, req: str) -> bool:
        """Whether the id's last life ended in this window, or has jobs that are not reported."""
        identity, _, life = req.rpartition("#")
        if not identity or not life.isdigit() or int(life) == 0:
            return False
        former = self.world.request(f"{identity}#{int(life) - 1}")
        reference = self.world.reference
        return self.world.ended_in.get(former) == reference.now or any(
            reference.job_request[j] == former for j, _ in reference.unreported
        )

    def _finish(self, event: ev.Finish) -> Iterator[Move]:
        r = self.world.request(event.req)
        self.world.ended_in[r] = self.world.reference.now
        yield "finish", (r,)

    def _preempt(self, event: ev.Preempt) -> Iterator[Move]:
        r = self.world.request(event.req)
        self.world.preempted_in[r] = self.world.reference.now
        yield "preempt", (r,)

    def _lease(self, event: ev.Lease) -> Iterator[Move]:
        r = self.world.request(event.req)
        lease = self.world.new_lease(event.lease, event.block, event.group, event.position)
        self.world.table_add(r, event.group, event.position, lease)
        if event.block in self.advancing:
            self.replaced[lease] = self.advancing.pop(event.block)
        yield "lease", (r, lease)

    def _share(self, event: ev.Share) -> Iterator[Move]:
        r, lease = self.world.request(event.req), self.world.lease(event.lease)
        self.world.table_add(r, event.group, event.position, lease)
        yield "share", (r, lease)

    def _free(self, event: ev.Free) -> Iterator[Move]:
        r, lease = self.world.request(event.req), self.world.lease(event.lease)
        self.world.table_drop(r, lease)
        if event.why == "advance":
            block = self.world.names.original("Block", self.world.reference.lease_block[lease])
            self.advancing[block] = lease
        yield "free", (r, lease)

    def _scheduled(self, event: ev.Scheduled) -> Iterator[Move]:
        tables = self.world.tables
        self.snapshots[event.step] = {
            r: {group: dict(table) for group, table in tables.get(r, {}).items()}
            for r in (self.world.request(c.req) for c in event.computing)
        }
        self.snapshots.pop(event.step - 8, None)
        for c in event.computing:
            yield "schedule_to", (self.world.request(c.req), c.end)
        yield from self._judge_offers()
        yield from self._judge_flushes(delays=bool(event.computing))
        yield "close_window", ()

    def _launch(self, event: ev.Launch) -> Iterator[Move]:
        yield "launch", (event.rank,)

    def _forward(self, event: ev.Forward) -> Iterator[Move]:
        if event.step not in self.snapshots:
            raise Contradiction(f"a forward of step {event.step}, which was not scheduled")
        tables = self.snapshots[event.step]
        for computing in event.computing:
            r = self.world.request(computing.req)
            if not self.world.tokens(r, computing.end, computing.sampled):
                raise Contradiction(f"{computing.req}: tokens contradict what was known before")
            yield from self._attend(event.rank, r, computing, tables[r])
            yield from self._compute(event.rank, r, computing, tables[r])
            self.world.computed.add(r)

    def _attend(
        self, w: int, r: Request, computing: ev.Computing, tables: dict[int, dict[int, Lease]]
    ) -> Iterator[Move]:
        for number, group in enumerate(self.world.header.groups):
            table = tables.get(number, {})
            for index, tokens in forward.reads(group, computing.start):
                lease = table.get(index)
                if lease is None:
                    lease = self.world.ghost_lease(self.world.block(0))
                elif forward.advances(group, computing.start, computing.end):
                    lease = self.replaced.get(lease, lease)
                yield "attend", (w, lease, self._seen_at(w, r, group, lease, index, tokens))

    def _seen_at(
        self, w: int, r: Request, group: ev.GroupGeometry, lease: Lease, index: int, tokens: int
    ) -> Content:
        """The content that proves the first ``tokens`` tokens' slots of a block to be there.

        Content stands for a block's slots up to its last token, so a later prefix of the same
        request serves as well (a load brings whole blocks); a recurrent state must be exact.
        """
        marks = self.world.marks[r]
        if group.kind != "recurrent":
            settled, worker = self.world.reference.settled, Worker(w)
            last = min(len(marks) - 1, (index + 1) * group.tokens_per_block)
            for reached in range(tokens, last + 1):
                if (lease, worker, marks[reached]) in settled:
                    return marks[reached]
        return marks[tokens]

    def _compute(
        self, w: int, r: Request, computing: ev.Computing, tables: dict[int, dict[int, Lease]]
    ) -> Iterator[Move]:
        marks = self.world.marks[r]
        if computing.end >= len(marks):
            raise Contradiction(f"{computing.req}: token {computing.end - 1} is not known")
        for number, group in enumerate(self.world.header.groups):
            table = tables.get(number, {})
            for index, tokens in forward.writes(group, computing.start, computing.end):
                # A block that the window has already left behind has no lease to write to.
                if index in table:
                    yield "compute", (w, table[index], marks[tokens])

    def _filled(self, event: ev.Filled) -> Iterator[Move]:
        # Whoever writes right KV into a block changes it exactly as a forward does.
        r = self.world.request(event.req)
        self.filled[r] = event.end
        filling = ev.Computing(event.req, event.start, event.end, [])
        yield from self._compute(event.rank, r, filling, self.world.tables.get(r, {}))

    def _copy_block(self, event: ev.CopyBlock) -> Iterator[Move]:
        source, target = self.world.lease(event.src_lease), self.world.lease(event.dst_lease)
        w = Worker(event.rank)
        rows = self.world.reference.settled.match(source, w, None)
        for content in sorted(Content(c) for _, _, c in rows):
            yield "copy_slot", (w, source, target, content)

    def _zero(self, event: ev.Zero) -> Iterator[Move]:
        for lease in event.leases:
            yield "zero", (event.rank, self.world.lease(lease))

    def _reset(self, event: ev.Event) -> Iterator[Move]:
        self.unfinished_loads.clear()
        self.promotions.forget()
        self.world.dead_jobs |= {j for j, _ in self.world.reference.unreported}
        yield "reset", ()

    def _reset_refused(self, event: ev.ResetRefused) -> Iterator[Move]:
        yield "refuse_reset", ()

    def _drained(self, event: ev.Drained) -> Iterator[Move]:
        yield "drained", (sum(event.residue.values()),)

    def _stalled(self, event: ev.Stalled) -> Iterator[Move]:
        yield "stall", ()

    def _raised(self, event: ev.Raised) -> Iterator[Move]:
        yield "crash", ()
