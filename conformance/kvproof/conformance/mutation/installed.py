"""A mutated action in place of the committed reference's own, for as long as it takes to judge."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kvproof.model.contract import Contract
from kvproof.spec import ir
from kvproof.spec.generate import render
from kvproof.spec.mutants import Mutant, without


def method(spec: ir.Machine, mutant: Mutant) -> Callable[..., None]:
    """The changed action as the generator writes it, compiled."""
    namespace: dict[str, Any] = {}
    exec(compile(render(without(spec, mutant)), f"<{mutant.name}>", "exec"), namespace)
    compiled: Callable[..., None] = vars(namespace[spec.name])[mutant.action]
    return compiled


@contextmanager
def installed(spec: ir.Machine, mutant: Mutant) -> Iterator[None]:
    """While the body runs, every reference of this process makes the mutant's move."""
    committed = vars(Contract)[mutant.action]
    setattr(Contract, mutant.action, method(spec, mutant))
    try:
        yield
    finally:
        setattr(Contract, mutant.action, committed)
