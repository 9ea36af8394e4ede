"""The obligations on functions and lemmas, and their proofs.

constants    the code's constants and functions are those that the spec has
faithful     parameters, result and number of loops are the spec's
ensures      every path that returns keeps each promise; ``returns``: there are no other paths
loop         an invariant holds at first and is kept, the variant descends
requires-of  what a callee requires holds wherever it is called
divisors     nothing is divided by a number below 1

Lemmas have the same obligations. What is promised comes from the spec in any case; the functions
under proof are the spec's or those of the emitted text.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import z3

from kvproof.spec.functions.emit import functions_path
from kvproof.spec.functions.execute import Execution, Query
from kvproof.spec.functions.program import Code, Function, Program, Text
from kvproof.spec.functions.source import read_program, read_text

MODULES = ("arithmetic", "kinds", "spans", "groups", "lookup", "store", "plan", "duality")
"""The modules of functions and lemmas, each after those that it uses."""

Constants = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class FunctionObligation:
    """One thing to prove of a function or lemma, on all its paths together.

    ``code`` is None where there is nothing to ask the solver: then ``holds`` is the answer.
    """

    action: str
    id: str
    name: str
    code: Code | None = None
    constants: Constants = ()
    label: str = ""
    holds: bool = False
    kind: str = "function"

    def prove(self, timeout_ms: int) -> tuple[str, str | None]:
        """The status, and a counterexample when it is "failed".

        A path that fails is told before one that is undecided.
        """
        if self.code is None:
            return ("proved" if self.holds else "failed"), None
        status = "proved"
        for query in _queries(os.getpid(), self.code, self.constants)[self.label]:
            answer, model = _ask(query, timeout_ms)
            if answer == "failed":
                return answer, model
            if answer == "unknown":
                status = answer
        return status, None


@cache
def program() -> Program:
    """The spec's functions, lemmas and definitions."""
    return read_program([Path(__file__).with_name(f"{module}.py") for module in MODULES])


def spec_text() -> Text:
    """The spec's functions as if they had been emitted."""
    functions = program().functions.values()
    plain = {f.code.name: f.code for f in functions if not f.is_lemma}
    return Text(program().constants, plain)


def emitted_text(path: Path | None = None) -> Text:
    """The committed module, read back.

    Raises:
        SourceError: it is not written in the language of functions.
    """
    path = path or functions_path()
    return read_text(path.read_text(encoding="utf-8"), str(path))


def function_obligations(subject: Text) -> list[FunctionObligation]:
    """All obligations on the functions of ``subject``, and on the lemmas of the spec.

    Raises:
        SourceError: a function is not written in the language of functions.
    """
    expected = spec_text()
    same = expected.constants == subject.constants and list(expected.functions) == list(
        subject.functions
    )
    found = [FunctionObligation("", "", "function/constants", holds=same)]
    for name, function in program().functions.items():
        code = function.code if function.is_lemma else subject.functions.get(name)
        found += _of_one(function, code, tuple(subject.constants.items()))
    return found


def _of_one(
    function: Function, code: Code | None, constants: Constants
) -> Iterator[FunctionObligation]:
    name = function.code.name
    id = function.ids[0] if function.ids else ""
    same = (
        code is not None
        and (code.params, code.result) == (function.code.params, function.code.result)
        and len(code.loops) == len(function.contract.loops)
    )
    yield FunctionObligation(name, id, f"function/{name}/faithful", holds=same)
    # Without that there is no telling which promise is about what.
    if code is None or not same:
        return
    for label in _queries(os.getpid(), code, constants):
        yield FunctionObligation(name, id, f"function/{name}/{label}", code, constants, label)


@cache
def _queries(process: int, code: Code, constants: Constants) -> dict[str, list[Query]]:
    """What must be proved of ``code``. Z3's terms do not outlive the fork of a process."""
    function = program().functions[code.name]
    return Execution(program(), function, code, dict(constants)).run()


def _ask(query: Query, timeout_ms: int) -> tuple[str, str | None]:
    solver = z3.Solver(ctx=query.goal.ctx)
    solver.set("timeout", timeout_ms)
    solver.set("random_seed", 0)
    solver.add(*query.known)
    solver.add(z3.Not(query.goal))
    match str(solver.check()):
        case "unsat":
            return "proved", None
        case "sat":
            return "failed", _describe(solver.model())
        case _:
            return "unknown", None


def _describe(model: Any) -> str:
    """The values of parameters, variables and results, one a line.

    What a callable gives is told for the numbers that occur.
    """
    values = {d.name(): (d(), model[d]) for d in model.decls() if d.arity() == 0}
    values = {name: values[name] for name in sorted(values) if "!" not in name}
    arrays = {name: array for name, (array, _) in values.items() if z3.is_array(array)}
    numbers = sorted({v.as_long() for _, v in values.values() if z3.is_int_value(v)})
    lines = [f"{name} = {value}" for name, (_, value) in values.items() if name not in arrays]
    for name, array in arrays.items():
        for args in product(numbers, repeat=_arity(array.sort())):
            given = model.eval(z3.Select(array, *args), model_completion=True)
            lines.append(f"{name}({', '.join(map(str, args))}) = {given}")
    return "\n".join(lines)


def _arity(sort: Any) -> int:
    arity: int = z3.Z3_get_array_arity(sort.ctx_ref(), sort.ast)
    return arity
