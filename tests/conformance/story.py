"""Hand-made traces: a story says what happens, the events follow.

Blocks, leases, slots and jobs are numbered as the teller likes; hashes are derived from the tokens.
One full group and one window group of blocks of four, one block a chunk, unless told otherwise.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

from kvproof.conformance.monitor.finding import Finding
from kvproof.conformance.monitor.monitor import Monitor
from kvproof.conformance.trace import events as ev
from kvproof.conformance.trace.events import SCHEDULER_RANK as S

FULL = ev.GroupGeometry("full", 4)
WINDOW = ev.GroupGeometry("window", 4, 8)
RECURRENT = ev.GroupGeometry("recurrent", 4)


def tokens(first: int, count: int) -> list[int]:
    """A prompt."""
    return list(range(first, first + count))


@dataclass
class Story:
    """Collects events. ``step`` is the open scheduling window."""

    groups: tuple[ev.GroupGeometry, ...] = (FULL,)
    blocks_per_chunk: int = 1
    num_workers: int = 1
    num_slots: int = 16
    lanes: str = "direction"
    events: list[ev.AnyEvent] = field(default_factory=list)
    step: int = 1
    known: dict[str, list[int]] = field(default_factory=dict)
    hashed: dict[str, int] = field(default_factory=dict)
    leases: dict[int, int] = field(default_factory=dict)

    @property
    def header(self) -> ev.Header:
        return ev.Header(
            schema=ev.SCHEMA_VERSION,
            target="story",
            groups=list(self.groups),
            blocks_per_chunk=self.blocks_per_chunk,
            tokens_per_hash=4,
            num_gpu_blocks=32,
            num_slots=self.num_slots,
            num_workers=self.num_workers,
            lanes=self.lanes,
            features={},
            options={},
        )

    # --- judging ---

    def finding(self) -> Finding | None:
        monitor = Monitor(self.header)
        for event in self.events:
            if found := monitor.feed(event):
                return found
        return None

    def verdict(self) -> tuple[str, int] | None:
        """(id, event index) of the finding."""
        found = self.finding()
        return (found.id, found.index) if found else None

    def last(self) -> int:
        """The index of the latest event."""
        return len(self.events) - 1

    def emit(self, event: ev.AnyEvent) -> None:
        self.events.append(event)

    # --- engine ---

    def arrive(self, req: str, prompt: list[int]) -> None:
        self.known[req] = list(prompt)
        self.emit(ev.Arrive(self.step, S, req, prompt))
        self.rehash(req)

    def rehash(self, req: str) -> None:
        """Announce the block hashes that the request's tokens allow by now."""
        first, count = self.hashed.get(req, 0), len(self.known[req]) // 4
        if count > first:
            hashes = [self.hash_of(req, i) for i in range(first, count)]
            self.emit(ev.Hashed(self.step, S, req, first, hashes))
            self.hashed[req] = count

    def hash_of(self, req: str, index: int) -> str:
        prefix = self.known[req][: (index + 1) * 4]
        return f"{zlib.crc32(repr(prefix).encode()):08x}"

    def key(self, req: str, index: int, group: int = 0) -> str:
        """The key of the chunk that ends with the request's hash block ``index``."""
        return f"{self.hash_of(req, index)}:{group}"

    def lease(self, req: str, position: int, block: int, group: int = 0) -> None:
        number = 1000 + sum(isinstance(e, ev.Lease) for e in self.events)
        self.leases[block] = number
        self.emit(ev.Lease(self.step, S, number, block, req, group, position))

    def share(self, req: str, position: int, block: int, group: int = 0) -> None:
        self.emit(ev.Share(self.step, S, self.leases[block], req, group, position))

    def free(self, req: str, *blocks: int, why: str = "finish") -> None:
        for block in blocks:
            self.emit(ev.Free(self.step, S, self.leases[block], req, why))

    def finish(self, req: str, *blocks: int) -> None:
        self.emit(ev.Finish(self.step, S, req, "stopped"))
        self.free(req, *blocks)

    def schedule(self, *computing: tuple[str, int, int, list[int]]) -> list[ev.Computing]:
        """Close the window."""
        plan = [ev.Computing(*c) for c in computing]
        self.emit(ev.Scheduled(self.step, S, plan))
        self.step += 1
        return plan

    def launch(self, rank: int = 0, step: int | None = None) -> None:
        self.emit(ev.Launch(step or self.step - 1, rank))

    def forward(self, plan: list[ev.Computing], rank: int = 0, step: int | None = None) -> None:
        self.emit(ev.Forward(step or self.step - 1, rank, plan))
        for c in plan:
            self.known[c.req] += c.sampled[: c.end + len(c.sampled) - len(self.known[c.req])]

    def run(self, *computing: tuple[str, int, int, list[int]]) -> None:
        """A whole step with nothing to copy: schedule, launch and forward on every worker."""
        plan = self.schedule(*computing)
        for rank in range(self.num_workers):
            self.launch(rank)
            self.forward(plan, rank)
        for c in computing:
            self.rehash(c[0])

    # --- scheduler, tier ---

    def ask(self, req: str, *hits: str) -> None:
        """A question, hits, and the answer: all tokens up to the end of the last key."""
        self.question(req)
        for key in hits:
            self.probe(req, key, "hit")
        named = {self.hash_of(req, i): (i + 1) * 4 for i in range(len(self.known[req]) // 4)}
        self.answer(req, max((named.get(key.partition(":")[0], 0) for key in hits), default=0))

    def question(self, req: str, computed: int = 0) -> None:
        self.emit(ev.Ask(self.step, S, req, computed))

    def probe(self, req: str, key: str, result: str) -> None:
        self.emit(ev.Probe(self.step, S, req, key, result))

    def answer(self, req: str, tokens: int | None) -> None:
        """``tokens`` is None when the answer is put off."""
        self.emit(ev.Answer(self.step, S, req, tokens, bool(tokens)))

    def accept(self, req: str, *accepted: tuple[str, int], evicted: tuple[str, ...] = ()) -> None:
        self.emit(
            ev.PrepareStore(
                self.step, S, req, [k for k, _ in accepted], False, list(evicted), list(accepted)
            )
        )

    def issue(self, job: int, kind: str, req: str, *pieces: tuple[int, int, int, int]) -> None:
        """``pieces`` are (group, block, slot, offset)."""
        self.emit(ev.Issue(self.step, S, job, kind, req, [ev.Piece(*p) for p in pieces]))

    def prepare_load(self, req: str, *keys: str) -> None:
        self.emit(ev.PrepareLoad(self.step, S, req, list(keys), [0] * len(keys)))

    def flush(self, *jobs: int) -> None:
        self.emit(ev.Flush(self.step, S, list(jobs)))

    # --- workers ---

    def submit(self, job: int, rank: int = 0) -> None:
        self.emit(ev.Submit(self.step - 1, rank, job))

    def done(self, job: int, rank: int = 0, ok: bool = True) -> None:
        self.emit(ev.Done(self.step - 1, rank, job, ok))

    def wait(self, *jobs: int, rank: int = 0) -> None:
        self.emit(ev.Wait(self.step - 1, rank, list(jobs)))

    def report(self, job: int, rank: int = 0, ok: bool = True) -> None:
        self.emit(ev.Report(self.step, rank, job, ok))

    def complete_store(self, *keys: str, ok: bool = True) -> None:
        self.emit(ev.CompleteStore(self.step, S, list(keys), ok))

    def complete_load(self, *keys: str) -> None:
        self.emit(ev.CompleteLoad(self.step, S, list(keys)))

    def received(self, req: str, ok: bool = True) -> None:
        self.emit(ev.Received(self.step, S, req, ok))

    def reset(self) -> None:
        self.emit(ev.Reset(self.step, S))
        self.emit(ev.TierReset(self.step, S))

    def drained(self, **residue: int) -> None:
        self.emit(ev.Drained(self.step, S, residue))

    # --- chapters ---

    def compute_prompt(self, req: str, prompt: list[int], first_block: int) -> list[int]:
        """Arrive, lease one block of group 0 per four tokens, and compute the whole prompt."""
        self.arrive(req, prompt)
        blocks = [first_block + i for i in range((len(prompt) + 3) // 4)]
        for position, block in enumerate(blocks):
            self.lease(req, position, block)
        self.run((req, 0, len(prompt), [999]))
        return blocks

    def offer(self, job: int, req: str, blocks: list[int], first_slot: int = 0) -> list[str]:
        """Accept and issue a store of the first ``len(blocks)`` chunks of group 0."""
        keys = [self.key(req, i) for i in range(len(blocks))]
        self.accept(req, *((key, first_slot + i) for i, key in enumerate(keys)))
        self.issue(job, "store", req, *((0, b, first_slot + i, 0) for i, b in enumerate(blocks)))
        return keys

    def carry_out(self, job: int, *keys: str) -> None:
        """Submit, end, report and complete a store on every worker."""
        for rank in range(self.num_workers):
            self.submit(job, rank)
            self.done(job, rank)
            self.report(job, rank)
        self.complete_store(*keys)

    def stored(self, req: str, prompt: list[int], first_block: int = 1, job: int = 1) -> list[str]:
        """A prompt computed and stored; the request still holds its blocks."""
        blocks = self.compute_prompt(req, prompt, first_block)
        keys = self.offer(job, req, blocks[: len(prompt) // 4])
        self.idle()
        self.carry_out(job, *keys)
        return keys

    def idle(self) -> None:
        """A step that computes nothing."""
        self.schedule()
        for rank in range(self.num_workers):
            self.launch(rank)
