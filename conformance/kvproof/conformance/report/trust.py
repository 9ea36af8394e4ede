"""What has to be believed for the ledger to mean what it says."""

from __future__ import annotations

import msgspec


class Trusted(msgspec.Struct, frozen=True):
    """One thing that nothing here checks. ``what`` names it, ``why`` says what rests on it."""

    what: str
    why: str


BASE = (
    Trusted(
        "Z3",
        "An obligation counts as proved when Z3 answers unsat to its negation. The answer is"
        " believed: no certificate is checked, and no second solver is asked.",
    ),
    Trusted(
        "Relation and Broken",
        "The executable reference keeps its rows in model/relation.py and raises model/broken.py."
        " Both are written by hand; the proof takes them for finite sets of rows and for an end.",
    ),
    Trusted(
        "The parser and the obligation maker",
        "The proof of the reference is about the formulas that spec/parse.py reads out of its text"
        " and that spec/obligations.py and spec/encode.py make of them. What is expected of the"
        " text (the invariants too) is the spec as spec/lang.py traces it. For the functions, the"
        " same is true of spec/functions/source.py, terms.py and execute.py.",
    ),
    Trusted(
        "The taps",
        "A finding is about what the recorder saw of a release, about the pieces that the release's"
        " own arithmetic decodes to (engines/vllm/decode.py), and about the moves that the"
        " monitor's mapping takes each event for.",
    ),
    Trusted(
        "Python",
        "The reference runs as the interpreter runs it, which the parser takes to be: unbounded"
        " integers, and conditions evaluated from left to right.",
    ),
)
