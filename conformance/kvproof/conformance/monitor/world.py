"""Names: which things of a trace are which elements of the reference's sorts.

Elements are integers. This module gives them out, sets their attributes when they are made, and
can say afterwards what an element was called in the trace.
"""

from __future__ import annotations

from collections.abc import Hashable

from kvproof.conformance.monitor.contents import Contents
from kvproof.conformance.monitor.limits import Limits
from kvproof.conformance.trace.events import Header
from kvproof.model.contract import (
    Block,
    Content,
    Contract,
    Job,
    Key,
    Lane,
    Lease,
    Piece,
    Place,
    Position,
    Request,
    Residency,
    Slot,
    Worker,
)


class Names:
    """A two-way table between names in a trace and integers, per sort."""

    def __init__(self) -> None:
        self._numbers: dict[str, dict[Hashable, int]] = {}
        self._names: dict[str, list[str]] = {}
        self._originals: dict[str, list[Hashable]] = {}

    def number(self, sort: str, name: Hashable, shown: str = "") -> int:
        """The element called ``name``, made on first use; ``shown`` is how to print it."""
        table = self.table(sort)
        found = table.get(name)
        if found is None:
            found = table[name] = len(table)
            self._names.setdefault(sort, []).append(shown or str(name))
            self._originals.setdefault(sort, []).append(name)
        return found

    def table(self, sort: str) -> dict[Hashable, int]:
        """The elements of a sort by name, for looking at: most names that come have come before."""
        return self._numbers.setdefault(sort, {})

    def original(self, sort: str, number: int) -> Hashable:
        """The name that element ``number`` was made under."""
        return self._originals[sort][number]

    def count(self, sort: str) -> int:
        """How many elements of a sort there are."""
        return len(self._names.get(sort, []))

    def show(self, sort: str, number: int) -> str:
        """What element ``number`` was called."""
        names = self._names.get(sort, [])
        return names[number] if 0 <= number < len(names) else str(number)


class World:
    """The reference of one run, and the elements that its trace has named so far."""

    def __init__(self, header: Header) -> None:
        self.header = header
        self.names = Names()
        self.contents = Contents()
        self.reference = Contract([Worker(rank) for rank in range(header.num_workers)])
        self.marks: dict[Request, list[Content]] = {}
        self.limits: dict[Request, Limits] = {}
        self.asked_from: dict[Request, int] = {}
        self.hashes: dict[str, Content] = {}
        self.named: dict[Content, str] = {}
        # Of how many tokens the engine has shown the hashes of a request.
        self.hashed: dict[Request, int] = {}
        self.tables: dict[Request, dict[int, dict[int, Lease]]] = {}
        self.residencies: dict[Key, Residency] = {}
        self.in_slot: dict[Slot, Residency] = {}
        self.computed: set[Request] = set()
        self.ended_in: dict[Request, int] = {}
        self.reused: set[Request] = set()
        self.preempted_in: dict[Request, int] = {}
        self.failed_in: dict[Job, int] = {}
        self.dead_jobs: set[Job] = set()
        self._requests = self.names.table("Request")
        self._blocks = self.names.table("Block")
        self._leases = self.names.table("Lease")
        self._keys = self.names.table("Key")
        self._slots = self.names.table("Slot")
        self._places = self.names.table("Place")
        self._said: dict[Content, str] = {}
        self._positions: dict[Position, tuple[int, int]] = {}
        self._position_at: dict[tuple[int, int], Position] = {}
        self._read_at: dict[tuple[Request, Block, Position], Lease] = {}
        for rank in range(header.num_workers):
            self.names.number("Worker", rank, f"rank {rank}")

    # --- engine ---

    def request(self, req: str) -> Request:
        """An incarnation."""
        found = self._requests.get(req)
        return Request(self.names.number("Request", req) if found is None else found)

    def position(self, group: int, index: int) -> Position:
        """A place in a block table."""
        at = group, index
        found = self._position_at.get(at)
        if found is None:
            found = Position(self.names.number("Position", at, f"group {group} @{index}"))
            self._position_at[at] = found
            self._positions[found] = at
        return found

    def group_of(self, position: Position) -> int | None:
        """The group of a position; None when it is no place in any table."""
        return self._positions[position][0] if position in self._positions else None

    def block(self, block: int) -> Block:
        """A GPU block."""
        found = self._blocks.get(block)
        return Block(
            self.names.number("Block", block, f"block {block}") if found is None else found
        )

    def lease(self, number: int) -> Lease:
        """A hand-out that was announced before."""
        found = self._leases.get(number)
        return Lease(
            self.names.number("Lease", number, f"lease {number}") if found is None else found
        )

    def new_lease(self, number: int, block: int, group: int, index: int) -> Lease:
        """A fresh hand-out."""
        lease = Lease(self.names.number("Lease", number, f"lease {number} of block {block}"))
        reference = self.reference
        reference.lease_block[lease] = self.block(block)
        reference.lease_position[lease] = self.position(group, index)
        reference.lease_seq[lease] = len(reference.lease_seq)
        return lease

    def table_add(self, r: Request, group: int, index: int, lease: Lease) -> None:
        """The request's table lists the lease from now on."""
        self.tables.setdefault(r, {}).setdefault(group, {})[index] = lease
        block = self.reference.lease_block[lease]
        self._read_at[r, block, self.position(group, index)] = lease

    def table_drop(self, r: Request, lease: Lease) -> None:
        """The request's table no longer lists the lease."""
        group, index = self._positions[self.reference.lease_position[lease]]
        table = self.tables.get(r, {}).get(group, {})
        if table.get(index) == lease:
            del table[index]

    def lists(self, r: Request, position: Position) -> bool:
        """Whether the request's table has a block at a position."""
        group, index = self._positions.get(position, (-1, -1))
        return index in self.tables.get(r, {}).get(group, {})

    def meant(self, r: Request, block: int, position: Position) -> Lease:
        """The lease that a job of ``r`` means when it names ``block`` for ``position``.

        It is the one that ``r`` held there last, gone or not: a stale block id is then seen as
        what it is. Failing that, whoever has the block now; failing that, nobody's.
        """
        b = self.block(block)
        held = self._read_at.get((r, b, position))
        if held is not None:
            return held
        if b in self.reference.current:
            return self.reference.current[b]
        return self.ghost_lease(b)

    def ghost_lease(self, block: Block) -> Lease:
        """A lease that nobody was ever given (of the null block, say)."""
        shown = f"no lease of {self.names.show('Block', block)}"
        lease = Lease(self.names.number("Lease", ("ghost", block), shown))
        self.reference.lease_block[lease] = block
        self.reference.lease_position[lease] = Position(-1)
        self.reference.lease_seq[lease] = -1
        return lease

    # --- keys and places ---

    def key(self, key: str) -> Key:
        """An offload key."""
        found = self._keys.get(key)
        return Key(self.names.number("Key", key, self._short(key)) if found is None else found)

    @staticmethod
    def _short(key: str) -> str:
        block_hash, _, group = key.rpartition(":")
        return f"key {block_hash[:8]}:{group}"

    def residency(self, key: str) -> Residency:
        """The residency that the key has, had last, or (never stored) a ghost that it never had."""
        k = self.key(key)
        if k not in self.residencies:
            shown = f"no residency of {self._short(key)}"
            ghost = Residency(self.names.number("Residency", ("ghost", k), shown))
            self.reference.residency_key[ghost] = k
            return ghost
        return self.reference.where.get(k, self.residencies[k])

    def new_residency(self, key: str, slot: int) -> Residency:
        """A slot handed out to a key."""
        reference = self.reference
        k, s = self.key(key), self.slot(slot)
        number = len(reference.residency_seq)
        shown = f"{self._short(key)} in slot {slot}"
        x = Residency(self.names.number("Residency", number, shown))
        reference.residency_key[x] = k
        reference.residency_slot[x] = s
        reference.residency_seq[x] = number
        self.residencies[k] = x
        self.in_slot[s] = x
        return x

    def slot(self, slot: int) -> Slot:
        """A slot of the tier, whether it exists or not."""
        found = self._slots.get(slot)
        if found is not None:
            return Slot(found)
        s = Slot(self.names.number("Slot", slot, f"slot {slot}"))
        self.reference.slot_exists[s] = 0 <= slot < self.header.num_slots
        return s

    def place(self, x: Residency, offset: int) -> Place:
        """One offset of a residency, with the position and content that its key gives it."""
        found = self._places.get((x, offset))
        if found is not None:
            return Place(found)
        reference = self.reference
        y = Place(
            self.names.number("Place", (x, offset), f"{self.names.show('Residency', x)} +{offset}")
        )
        reference.place_residency[y] = x
        key = str(self.names.original("Key", reference.residency_key[x]))
        position, content = self._named_by(key, offset)
        reference.place_position[y] = position
        reference.place_content[y] = content
        return y

    def named_and_own(self, r: Request, key: str) -> tuple[Content, Content]:
        """What a key names, and what the request itself has at that depth; -1, -2 for neither."""
        named = self.hashes.get(key.rpartition(":")[0], Content(-1))
        depth = self.contents.depth(named) if named >= 0 else len(self.marks[r])
        return named, self.marks[r][depth] if depth < len(self.marks[r]) else Content(-2)

    def key_of(self, content: Content, group: int) -> Key | None:
        """The offload key of a prefix in a group; None when no hash names the prefix."""
        block_hash = self.named.get(content)
        return None if block_hash is None else self.key(f"{block_hash}:{group}")

    def depth_named_by(self, key: str) -> int:
        """Of how many tokens a key names the prefix; 0 when its hash is not known."""
        named = self.hashes.get(key.rpartition(":")[0])
        return 0 if named is None else self.contents.depth(named)

    def positions_named_by(self, key: str) -> list[Position]:
        """The table positions of the chunk that a key names, in order."""
        count = self.header.blocks_per_chunk
        return [self._named_by(key, offset)[0] for offset in range(count)]

    def has_own_job(self, r: Request) -> bool:
        """Whether a job of the request itself is in flight."""
        reference = self.reference
        return any(reference.job_request[j] == r for j, _ in reference.unreported)

    def _named_by(self, key: str, offset: int) -> tuple[Position, Content]:
        """What the block at ``offset`` of the chunk that ``key`` names must hold.

        A key names the prefix up to some token; the chunk that ends there starts at the chunk
        boundary before it, and may be partial.
        """
        block_hash, _, group_text = key.rpartition(":")
        group = int(group_text)
        tokens_per_block = self.header.groups[group].tokens_per_block
        tokens_per_chunk = tokens_per_block * self.header.blocks_per_chunk
        if block_hash not in self.hashes:
            return Position(-2), Content(-1)
        prefix = self.hashes[block_hash]
        end = self.contents.depth(prefix)
        index = (end - 1) // tokens_per_chunk * self.header.blocks_per_chunk + offset
        return (
            self.position(group, index),
            self.contents.ancestor(prefix, (index + 1) * tokens_per_block),
        )

    # --- jobs ---

    def new_job(self, name: Hashable, r: Request, kind: str) -> Job:
        """A job of a request. Copies of one direction share a lane where the copier orders them."""
        job = Job(self.names.number("Job", name, f"{kind} {name}"))
        lane = kind if self.header.lanes == "direction" else ("own", job)
        self.reference.job_request[job] = r
        self.reference.job_lane[job] = Lane(self.names.number("Lane", lane, f"lane {lane}"))
        return job

    def new_piece(self, job: Job, lease: Lease, place: Place) -> Piece:
        """One block's worth of a job."""
        reference = self.reference
        shown = f"piece {self.names.show('Lease', lease)} <-> {self.names.show('Place', place)}"
        p = Piece(self.names.number("Piece", len(reference.piece_job), shown))
        reference.piece_job[p] = job
        reference.piece_lease[p] = lease
        reference.piece_place[p] = place
        return p

    # --- tokens ---

    def show(self, sort: str, value: int) -> str:
        """An element as the trace called it; a content as a prefix of the request it came from."""
        if sort in ("Int", "Bool"):
            return str(value)
        if sort == "Content":
            unknown = f"content {value}" if value >= 0 else "unknown content"
            return self._said.get(Content(value), unknown)
        return self.names.show(sort, value)

    def tokens(self, r: Request, start: int, tokens: list[int]) -> bool:
        """Tokens ``start, …`` of a request are known; False if they contradict others."""
        marks = self.marks[r]
        for offset, token in enumerate(tokens):
            index = start + offset
            if index >= len(marks):
                return False
            mark = self.contents.child(marks[index], token)
            if index + 1 == len(marks):
                marks.append(mark)
                self._said.setdefault(mark, f"{self.names.show('Request', r)}[:{index + 1}]")
            elif marks[index + 1] != mark:
                return False
        return True
