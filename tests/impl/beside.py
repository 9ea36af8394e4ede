"""The proved mechanism, run beside the production scheduler: what the one does, the other allows.

A trace is read as the monitor reads it, but the machine that makes the moves is the mechanism. Its
own moves stand between those of the contract, where the code makes them: the flush set is decided
when a plan begins, a worker's waits are over when it first changes a block, a job is worked off
after its keys are completed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kvproof.conformance.monitor import forward
from kvproof.conformance.monitor.finding import Finding
from kvproof.conformance.monitor.job_readers import Contradiction, Move
from kvproof.conformance.monitor.mapping import Mapping
from kvproof.conformance.monitor.world import World
from kvproof.conformance.trace import events as ev
from kvproof.model.broken import Broken
from kvproof.model.contract import Job, Lease, Place, Request, Residency, Worker
from kvproof.model.mechanism import Mechanism
from kvproof.spec.ids import CONTRACT

PLANNED = (ev.PrepareStore, ev.Issue, ev.Flush)
"""The first of these in a window tells that its plan has begun."""

AFTER_THE_WAITS = (ev.Zero, ev.CopyBlock, ev.Filled, ev.Forward, ev.Launch)
"""A worker changes blocks, or begins the next step."""


class MechanismWorld(World):
    """Names for elements of the mechanism, which knows two attributes more."""

    def __init__(self, header: ev.Header) -> None:
        super().__init__(header)
        self.mechanism = Mechanism([Worker(rank) for rank in range(header.num_workers)])
        self.reference = self.mechanism

    def new_residency(self, key: str, slot: int) -> Residency:
        """A slot handed out to a key."""
        x = super().new_residency(key, slot)
        self.mechanism.chunk_blocks[x] = self.header.blocks_per_chunk
        return x

    def place(self, x: Residency, offset: int) -> Place:
        """One offset of a residency."""
        y = super().place(x, offset)
        self.mechanism.place_offset[y] = offset
        return y


class Beside:
    """Judges one run of the production scheduler by the mechanism. A ``Judge`` of the fuzzer.

    An event is held back while a plan is being made, since what comes first in the code (the flush
    set) comes last in the trace.
    """

    def __init__(self, header: ev.Header) -> None:
        self.world = MechanismWorld(header)
        self.machine = self.world.mechanism
        self.mapping = Mapping(self.world)
        self.missed: list[Finding] = []
        self.finding: Finding | None = None
        self.calls: Counter[str] = Counter()
        self._held: list[ev.Event] = []
        self._flushed: set[int] = set()
        self._counted: list[tuple[Request, int, Lease, int]] = []
        self._events = 0

    def feed(self, event: ev.Event) -> Finding | None:
        """Make the moves that an event is; the first that the mechanism does not allow, if any."""
        if self.finding is None:
            try:
                self._take(event)
            except Broken as broken:
                self.finding = self._found(event, f"{broken}, guard {broken.index}", broken.action)
            except Contradiction as contradiction:
                self.finding = self._found(event, str(contradiction), "")
        self._events += 1
        return self.finding

    def coverage(self) -> dict[str, int]:
        """How often each move was made."""
        return dict(self.calls)

    def _found(self, event: ev.Event, why: str, action: str) -> Finding:
        return Finding(
            id="M",
            sentence=why,
            culprit="scheduler",
            severity="unsafe",
            index=self._events,
            step=event.step,
            action=action,
            event=str(event.__struct_config__.tag),
            facts={},
        )

    # --- windows ---

    def _take(self, event: ev.Event) -> None:
        if not self._held and not isinstance(event, (*PLANNED, ev.Scheduled)):
            self._play(event)
            return
        self._held.append(event)
        if isinstance(event, ev.Scheduled | ev.Raised):
            held, self._held = self._held, []
            self._plan(held, event)
            for one in held:
                self._play(one)

    def _plan(self, held: list[ev.Event], end: ev.Event) -> None:
        """A plan begins: what the step computes is known, and the flush set is decided."""
        self._foresee()
        if isinstance(end, ev.Scheduled):
            for computing in end.computing:
                r = self.world.request(computing.req)
                self._move("schedule_to", r, computing.end)
                self._count(r, computing)
        self._flushed = {n for e in held if isinstance(e, ev.Flush) for n in e.jobs}
        for number in sorted(self._flushed & self.mapping.jobs.keys()):
            self._move("flush", self.mapping.jobs[number])
        self._move("decide")

    def _count(self, r: Request, computing: ev.Computing) -> None:
        """The engine counts what a step computes."""
        for number, group in enumerate(self.world.header.groups):
            table = self.world.tables.get(r, {}).get(number, {})
            for index, tokens in forward.writes(group, computing.start, computing.end):
                if index in table:
                    self._counted.append((r, tokens, table[index], self.machine.now))
        self._foresee()

    def _foresee(self) -> None:
        """Of what is counted the content is known when its tokens are, sampled ones included."""
        unknown = []
        for r, tokens, lease, step in self._counted:
            marks = self.world.marks[r]
            if tokens >= len(marks):
                unknown.append((r, tokens, lease, step))
            elif (lease, marks[tokens]) not in self.machine.due_in:
                self._move("foresee", lease, marks[tokens], step)
        self._counted = unknown

    # --- events ---

    def _play(self, event: ev.Event) -> None:
        self._before(event)
        for name, params in self.mapping.moves(event):
            for own, own_params in self._first(event, name, params):
                self._move(own, *own_params)
            if not (name == "flush" and params[0] in self.machine.flush_at):
                self._move(name, *params)
            if name == "issue_store" and isinstance(event, ev.Issue) and event.job in self._flushed:
                self._move("flush", *params)
        self._after(event)

    def _move(self, name: str, *params: int) -> None:
        self.calls[name] += 1
        try:
            getattr(self.machine, name)(*params)
        except Broken as broken:
            # Lost hits and wasted work are none of the mechanism's business.
            if broken.id not in CONTRACT or CONTRACT[broken.id].severity != "missed":
                raise

    def _before(self, event: ev.Event) -> None:
        """Own moves before an event."""
        if isinstance(event, AFTER_THE_WAITS):
            self._waits_are_over(Worker(event.rank))
        elif isinstance(event, ev.Submit):
            job = self.mapping.jobs[event.job]
            if job in self.machine.load:
                self._waits_are_over(Worker(event.rank))
            elif self.machine.job_step[job] == self.machine.at[Worker(event.rank)]:
                self._clear(Worker(event.rank))

    def _clear(self, w: Worker) -> None:
        if self.machine.cleared_to[w] < self.machine.at[w]:
            self._move("clear", w)

    def _waits_are_over(self, w: Worker) -> None:
        self._clear(w)
        if self.machine.waited_to[w] < self.machine.at[w]:
            self._move("wait_all", w)

    def _first(self, event: ev.Event, name: str, params: tuple[int, ...]) -> Iterator[Move]:
        """Own moves before one of the contract's."""
        machine = self.machine
        if name == "compute":
            self._foresee()
            w, lease, content = params
            if isinstance(event, ev.Filled) and (lease, content) not in machine.due_in:
                yield "foresee", (lease, content, machine.at[Worker(w)])
        elif name == "copy_slot":
            w, _, lease, content = params
            if (lease, content) not in machine.due_in:
                yield "foresee", (lease, content, machine.at[Worker(w)])
        elif name == "unpin":
            j, x = Job(params[0]), Residency(params[1])
            r, failed = machine.job_request[j], not machine.said_failed.none(j, None)
            if failed and r in machine.tracked and (r, x) not in machine.refused:
                yield "mark_failed", params

    def _after(self, event: ev.Event) -> None:
        """Own moves after an event."""
        match event:
            case ev.Allocated(req=req, external=external) if external > 0:
                self._hand_over(self.world.request(req))
            case ev.Extended(req=req, kept=kept):
                r = self.world.request(req)
                self._counted = [c for c in self._counted if c[0] != r or c[1] <= kept]
            case ev.CompleteStore() | ev.CompleteLoad():
                self._work_off()
            case ev.Reset() | ev.TierReset():
                for j in sorted(self.machine.listed - self.machine.job_step.keys()):
                    self._move("give_up", j)

    def _hand_over(self, r: Request) -> None:
        """The blocks that come with an answer: new ones, of this request alone."""
        machine = self.machine
        computed = self.world.asked_from.get(r, 0)
        for number, table in self.world.tables.get(r, {}).items():
            size = self.world.header.groups[number].tokens_per_block
            for index, lease in table.items():
                new = index * size >= computed and machine.handed_at[lease] == machine.now
                if new and all(other == r for other, _ in machine.holds.match(None, lease)):
                    self._move("take", r, self.world.position(number, index), lease)

    def _work_off(self) -> None:
        machine = self.machine
        for j in sorted(machine.all_reported):
            if machine.to_complete.none(j, None) and machine.to_unpin.none(j, None):
                self._move("end_job", j)
