"""The words in which functions and their theorems are written.

A function is ordinary typed Python over integers and over callables from integers to integers. What
it promises stands in its body, as statements made of the words below. They do nothing when they
are run, are proved by ``verify`` and are left out of the text that ``emit`` writes.

Statements of a function's head, before anything else:

    requires(…)                     what callers owe
    ensures(lambda result: …)       what it returns
    use(…)                          facts that the proof needs, of its parameters

At the head of a loop:

    invariant(…)                    holds before each test of the loop's condition
    variant(…)                      never negative in the body, smaller after it; several numbers
                                    are compared as a dictionary compares words
    use(…)                          facts that the proof needs, of the loop's variables

A fact is the call of a lemma, or ``forall`` of one. A lemma is a valid formula, "what it requires
implies what it ensures", so calling it anywhere cannot make a proof wrong. It is proved itself,
from lemmas that stand before it.

``definition`` names an expression for use in contracts, ``uninterpreted`` names a relation of which
only contracts say something. Neither is executed, and neither may contain a lemma.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Status = Callable[[int], int]
"""Block (or chunk) index -> ABSENT | PENDING | READY."""

F = TypeVar("F", bound=Callable[..., Any])


def requires(*conditions: bool) -> None:
    """What must hold when the function is called."""


def ensures(*facts: Callable[[Any], bool]) -> None:
    """What holds of the result; ``result[0]`` is the first of several results."""


def invariant(*facts: bool) -> None:
    """What holds whenever the condition of the loop is about to be tested."""


def variant(*measures: int) -> None:
    """What becomes smaller in each round, and is never negative when one begins."""


def use(*lemmas: object) -> None:
    """Lemmas that the proof needs here."""


def forall(body: Callable[..., object]) -> bool:
    """For all integers; in ``use`` the body is the call of a lemma."""
    return True


def exists(body: Callable[..., object]) -> bool:
    """For some integers."""
    return True


def implies(premise: bool, conclusion: bool) -> bool:
    """If the premise holds, so does the conclusion."""
    return conclusion or not premise


def definition(function: F) -> F:
    """A name for an expression: used in contracts, never emitted."""
    return function


def uninterpreted(function: F) -> F:
    """A name of which nothing is known but what contracts require of it."""
    return function


def lemma(function: F) -> F:
    """A theorem: what it ``requires`` implies what it ``ensures``. Never emitted."""
    return function
