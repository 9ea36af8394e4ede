"""The proof notices: each fault planted in the emitted text fails in the function that has it."""

from __future__ import annotations

import ast

import pytest

from kvproof.spec.functions.emit import functions_path
from kvproof.spec.functions.program import Code
from kvproof.spec.functions.source import read_text
from kvproof.spec.functions.verify import FunctionObligation, function_obligations

TEXT = functions_path().read_text(encoding="utf-8")
INTACT = read_text(TEXT, "text")
TIMEOUT_MS = 1000

# (what is wrong, before, after, an obligation that must then fail)
FAULTS = [
    (
        "a window of one position too many",
        "max(0, boundary - window + 1)",
        "max(0, boundary - window)",
        "first_needed/ensures-0",
    ),
    (
        "a window that begins before the prompt",
        "max(0, boundary - window + 1)",
        "boundary - window + 1",
        "first_needed/ensures-0",
    ),
    (
        "a recurrent state of the wrong token",
        "return boundary - 1\n",
        "return boundary\n",
        "first_needed/ensures-0",
    ),
    (
        "a recurrent group that starts anywhere",
        "if kind == RECURRENT and boundary % tokens_per_block != 0:\n"
        "        return False\n"
        "    first = max(",
        "first = max(",
        "served/ensures-0",
    ),
    (
        "a needed position that is on the GPU asked of the tier",
        "max(first_needed(kind, window, boundary), floor)",
        "first_needed(kind, window, boundary)",
        "served/ensures-0",
    ),
    (
        "a last block not looked at",
        "while block <= last:",
        "while block < last:",
        "served/ensures-0",
    ),
    (
        "a last block without a needed position",
        "last = (boundary - 1) // tokens_per_block",
        "last = boundary // tokens_per_block",
        "served/ensures-0",
    ),
    (
        "a pending block taken for a ready one",
        "if status(block) < at_least:",
        "if status(block) < at_least - 1:",
        "served/loop-0/invariant-1/kept",
    ),
    (
        "every other block skipped",
        "        block += 1\n",
        "        block += 2\n",
        "served/loop-0/invariant-1/kept",
    ),
    ("a loop that never ends", "        block += 1\n", "        pass\n", "served/loop-0/variant"),
    (
        "a boundary passed over",
        "        boundary -= 1\n",
        "        boundary -= 2\n",
        "greatest_served/loop-0/invariant-1/kept",
    ),
    (
        "groups not asked again after one lowered the boundary",
        "            boundary = found\n            group = 0\n",
        "            boundary = found\n            group += 1\n",
        "greatest_boundary/loop-0/invariant-2/kept",
    ),
    (
        "a last group not asked",
        "while group < groups:",
        "while group + 1 < groups:",
        "greatest_boundary/ensures-1",
    ),
    (
        "a pending chunk taken for an absent one",
        "while chunk < end and status(chunk) != ABSENT:",
        "while chunk < end and status(chunk) > PENDING:",
        "prefix_hits/ensures-2",
    ),
    (
        "a deferral forgotten",
        "pending = pending or status(chunk) == PENDING",
        "pending = status(chunk) == PENDING",
        "prefix_hits/loop-0/invariant-2/kept",
    ),
    (
        "a run across a gap",
        "            stop = chunk\n",
        "            stop = chunk + 1\n",
        "suffix_hits/loop-0/invariant-2/kept",
    ),
    (
        "a shorter run before the end not found",
        "if stop == end and end - chunk - 1 > window:",
        "if stop == end and end - chunk - 1 > last_window:",
        "suffix_hits/loop-0/invariant-3/kept",
    ),
    (
        "the window for the end used everywhere",
        "(last_window if stop == end else window)",
        "last_window",
        "suffix_hits/loop-0/invariant-1/kept",
    ),
    (
        "a chunk offered whose last block is not allocated",
        "by_blocks = allocated_blocks // blocks_per_chunk",
        "by_blocks = (allocated_blocks + blocks_per_chunk - 1) // blocks_per_chunk",
        "chunk_range/ensures-1",
    ),
    (
        "a chunk without a key offered",
        "min(by_tokens, by_blocks, keyed)",
        "min(by_tokens, by_blocks)",
        "chunk_range/ensures-1",
    ),
    (
        "a cursor that goes back",
        "max(stored, min(by_tokens, by_blocks, keyed))",
        "min(by_tokens, by_blocks, keyed)",
        "chunk_range/ensures-0",
    ),
    (
        "a chunk that ends where the window begins",
        "first < start + tokens_per_chunk and",
        "first <= start + tokens_per_chunk and",
        "needed_chunk/ensures-0",
    ),
    (
        "a boundary that nobody asked about",
        "    if boundary == 0:\n        return False\n",
        "",
        "needed_chunk/requires-of-first_needed",
    ),
    (
        "the last boundary left out of the mask",
        "while boundary <= tokens and",
        "while boundary < tokens and",
        "keeps_chunk/ensures-1",
    ),
    (
        "a mask of one window less",
        "        boundary += alignment\n",
        "        boundary += alignment + 1\n",
        "keeps_chunk/loop-0/invariant-1/kept",
    ),
    (
        "a mask that looks at one boundary only",
        "            return True\n        boundary += alignment\n",
        "            return True\n        return False\n",
        "keeps_chunk/ensures-1",
    ),
    (
        "a piece at the next offset",
        "block % blocks_per_chunk\n",
        "block % blocks_per_chunk + 1\n",
        "place_of/ensures-0",
    ),
    (
        "a path without a result",
        "    return floor\n",
        "    pass\n",
        "greatest_served/returns",
    ),
    (
        "a parameter of another type",
        "def place_of(block: int,",
        "def place_of(block: bool,",
        "place_of/faithful",
    ),
    (
        "a loop less",
        "    while boundary > floor:\n",
        "    if boundary > floor:\n",
        "greatest_served/faithful",
    ),
    (
        "another number for a status",
        "PENDING, READY = 0, 1, 2",
        "PENDING, READY = 0, 1, 3",
        "constants",
    ),
    ("a function with another name", "def place_of(", "def place(", "constants"),
]


def planted(before: str, after: str) -> list[FunctionObligation]:
    assert TEXT.count(before) == 1, before
    text = read_text(TEXT.replace(before, after), "text")
    for name, code in INTACT.functions.items():
        # Functions without the fault are the same objects, so they are not executed again.
        if name in text.functions and dump(text.functions[name]) == dump(code):
            text.functions[name] = code
    return function_obligations(text)


def dump(code: Code) -> tuple[object, ...]:
    return code.params, code.result, [ast.dump(statement) for statement in code.body]


@pytest.mark.parametrize(
    ("before", "after", "name"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS]
)
def test_a_fault_fails_in_its_function(before: str, after: str, name: str) -> None:
    of_function = name.split("/")[0]
    (obligation,) = [o for o in planted(before, after) if o.name == f"function/{name}"]
    assert obligation.action == ("" if name == "constants" else of_function)
    assert obligation.prove(TIMEOUT_MS)[0] != "proved"


def test_a_fault_is_told_with_the_numbers_that_show_it() -> None:
    found = planted("return boundary - 1\n", "return boundary\n")
    (obligation,) = [o for o in found if o.name == "function/first_needed/ensures-0"]
    status, model = obligation.prove(60_000)
    assert status == "failed"
    assert model is not None
    facts = dict(line.split(" = ") for line in model.splitlines())
    assert facts.keys() == {"boundary", "kind", "window"}
    assert facts["kind"] == "3"


def test_a_fault_in_one_function_leaves_the_others_proved() -> None:
    found = planted("max(0, boundary - window + 1)", "max(0, boundary - window)")
    statuses = {o.name: o.prove(60_000)[0] for o in found if o.action != "greatest_boundary"}
    assert {name for name, status in statuses.items() if status != "proved"} == {
        "function/first_needed/ensures-0"
    }
