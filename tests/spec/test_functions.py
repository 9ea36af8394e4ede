"""Functions and theorems: what is proved, that it is not vacuous, and that it is true of integers.

Every contract is evaluated as Python too, with quantifiers that try small numbers. This does not go
through Z3 or through the encoding of quotients, so it would notice a theorem that holds only there.
"""

from __future__ import annotations

import ast
import random
from collections import Counter
from typing import Any

import pytest
import z3

from kvproof.model import functions as emitted
from kvproof.spec.functions.emit import functions_path, render_functions
from kvproof.spec.functions.execute import Execution
from kvproof.spec.functions.program import Code, Function, SourceError
from kvproof.spec.functions.source import read_program, read_text
from kvproof.spec.functions.verify import (
    emitted_text,
    function_obligations,
    program,
    spec_text,
)
from kvproof.spec.ids import CONTRACT

FUNCTIONS = [
    "first_needed",
    "served",
    "greatest_served",
    "greatest_boundary",
    "prefix_hits",
    "suffix_hits",
    "chunk_range",
    "needed_chunk",
    "keeps_chunk",
    "place_of",
    "piece_place",
    "slots_filled",
]
LEMMAS = [name for name, function in program().functions.items() if function.is_lemma]

SMALL = range(-1, 10)
"""What a quantifier tries. Arguments are so small that no bounded quantifier needs more."""


def test_the_emitted_text_is_fresh() -> None:
    assert functions_path().read_text(encoding="utf-8") == render_functions()


def test_every_obligation_on_functions_and_theorems_is_proved() -> None:
    obligations = function_obligations(spec_text())
    assert {o.name: o.prove(60_000) for o in obligations} == {
        o.name: ("proved", None) for o in obligations
    }
    assert len({o.name for o in obligations}) == len(obligations) == 172
    assert set(Counter(o.action for o in obligations)) == {"", *FUNCTIONS, *LEMMAS}


def test_the_same_obligations_are_proved_on_the_emitted_text() -> None:
    obligations = function_obligations(emitted_text())
    assert [o.name for o in obligations] == [o.name for o in function_obligations(spec_text())]
    assert {o.prove(60_000)[0] for o in obligations} == {"proved"}


def test_the_functions_are_those_that_are_emitted() -> None:
    assert list(emitted_text().functions) == FUNCTIONS
    assert list(program().functions) == [
        name for name in program().functions if name in FUNCTIONS or name in LEMMAS
    ]


def test_every_function_names_the_ids_that_it_serves() -> None:
    for name in FUNCTIONS:
        ids = program().functions[name].ids
        assert ids and set(ids) <= set(CONTRACT), name
    for name in LEMMAS:
        assert set(program().functions[name].ids) <= set(CONTRACT), name


# --- none of it is vacuous -----------------------------------------------------------------------


@pytest.mark.parametrize("name", program().functions)
def test_nothing_follows_from_a_contradiction(name: str) -> None:
    """At each point where a promise is due, what is known there is possible.

    Points at which the promise's own premise (such as "for chunks before the first") cannot hold
    are listed; everywhere else a proof of "false" would mean that the contract is a contradiction.
    """
    function = program().functions[name]
    constants = program().constants
    queries = Execution(program(), function, function.code, constants).run()
    impossible = []
    for label, asked in queries.items():
        for number, query in enumerate(asked):
            solver = z3.Solver(ctx=query.goal.ctx)
            solver.set("rlimit", 500_000)  # the same on every machine, unlike a time
            solver.add(*query.known)
            if solver.check() == z3.unsat:
                impossible.append((label, number))
    assert impossible == EMPTY_AT_FIRST.get(name, [])


EMPTY_AT_FIRST = {
    # Ranges that are empty when the loop begins, or (0 <= g < 0) when a round starts again.
    "served": [("loop-0/invariant-1/holds", 0)],
    "greatest_served": [("loop-0/invariant-1/holds", 0)],
    "greatest_boundary": [
        ("loop-0/invariant-2/holds", 0),
        ("loop-0/invariant-3/holds", 0),
        ("loop-0/invariant-2/kept", 0),
    ],
    "suffix_hits": [("loop-0/invariant-3/holds", 0)],
    # At the end of the loop: "if the chunk is kept", and it is not; "some boundary needs it", and
    # none does.
    "keeps_chunk": [("ensures-0", 1), ("ensures-1", 1)],
    # Of no piece: "each of them", "the last of them".
    "slots_filled": [("ensures-1", 0), ("ensures-2", 0)],
}


# --- all of it is true of integers ---------------------------------------------------------------


def python_of_the_contracts() -> dict[str, Any]:
    """Definitions and words as Python; quantifiers try every combination of small numbers."""

    def tries(body: Any) -> list[bool]:
        count = body.__code__.co_argcount
        values: list[tuple[int, ...]] = [()]
        for _ in range(count):
            values = [(*v, n) for v in values for n in SMALL]
        return [body(*v) for v in values]

    names: dict[str, Any] = {
        **program().constants,
        "forall": lambda body: all(tries(body)),
        "exists": lambda body: any(tries(body)),
        "implies": lambda premise, conclusion: conclusion or not premise,
    }
    for definition in program().definitions.values():
        if definition.body is not None:
            names[definition.name] = python(
                [param for param, _ in definition.params], definition.body, names
            )
    return names


def python(params: list[str], body: ast.expr, names: dict[str, Any]) -> Any:
    """``lambda params: body``."""
    arguments = ast.arguments(
        posonlyargs=[],
        args=[ast.arg(p) for p in params],
        kwonlyargs=[],
        kw_defaults=[],
        defaults=[],
    )
    function = ast.Expression(ast.Lambda(arguments, body))
    return eval(compile(ast.fix_missing_locations(function), "contract", "eval"), names)


def draw(code: Code, random_: random.Random) -> dict[str, Any]:
    """Small arguments, whether or not they are what the function requires."""
    arguments: dict[str, Any] = {}
    for name, annotation in code.params:
        if annotation == "int":
            arguments[name] = random_.choice((random_.randint(0, 3), random_.randint(0, 8)))
        else:
            usual = random_.choice((0, 2))
            table = {n: random_.choice((0, 1, 2, usual, usual)) for n in range(-1, 100)}
            arguments[name] = table.__getitem__
    return arguments


def holds(function: Function, arguments: dict[str, Any], names: dict[str, Any]) -> bool | None:
    """Does it keep what it ensures? None when it is not called so."""
    params = [param for param, _ in function.code.params]
    values = [arguments[param] for param in params]
    for each in function.contract.requires:
        # Not evaluated further: what comes later may divide by what this one requires.
        if not python(params, each, names)(*values):
            return None
    result = None
    if not function.is_lemma:
        result = getattr(emitted, function.code.name)(*values)
    return all(python(params, each, names)(*values)(result) for each in function.contract.ensures)


@pytest.mark.parametrize("name", [n for n in program().functions if n != "greatest_boundary"])
def test_the_contract_is_true_of_small_integers(name: str) -> None:
    function = program().functions[name]
    names = python_of_the_contracts()
    random_ = random.Random(name)
    kept = 0
    for _ in range(20_000):
        arguments = draw(function.code, random_)
        verdict = holds(function, arguments, names)
        assert verdict is not False, arguments
        kept += verdict is True
        if kept == 100:
            return
    raise AssertionError(f"only {kept} calls are as {name} requires")


def test_the_contract_of_the_fixpoint_is_true_of_small_integers() -> None:
    function = program().functions["greatest_boundary"]
    random_ = random.Random(0)
    for _ in range(200):
        groups, floor = random_.randint(0, 3), random_.randint(0, 3)
        serves = {
            (g, n) for g in range(3) for n in range(9) if n == floor or random_.random() < 0.5
        }

        def greatest(g: int, n: int, floor: int = floor, serves: Any = serves) -> int:
            return max((m for m in range(floor, n + 1) if (g, m) in serves), default=floor)

        names = python_of_the_contracts()
        names["serves"] = lambda g, n, serves=serves: (g, n) in serves
        arguments = {
            "groups": groups,
            "greatest": greatest,
            "floor": floor,
            "limit": random_.randint(floor, 8),
        }
        assert holds(function, arguments, names) is True


# --- texts that are refused ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(:", "here:1: invalid syntax"),
        ("x = 1", "here:1: neither a constant nor a function"),
        ("import z3", "here:1: neither a constant nor a function"),
        ("from z3 import max", "here:1: neither a constant nor a function"),
        ("from __future__ import annotations as max", "neither a constant nor a function"),
        ("from kvproof.spec.functions.kinds import served", "the text may not import the spec"),
        ("A, B = 1, True", "not the definition of new integer constants"),
        ("A, B = 1, 2\nA, C = 1, 2", "here:2: not the definition of new integer constants"),
        ("@cache\ndef f(x: int) -> int: return x", "neither a constant nor a function"),
        ("def f(x: int = 1) -> int: return x", "plain annotated parameters only"),
        ("def f(x: int): return x", "plain annotated parameters only"),
        ("def f(x) -> int: return x", "the parameter x has no type"),
        ("def f(x: int) -> int:\n    requires(x)", "here:2: a text that runs makes no promises"),
        (
            "def f(x: int) -> int: return x\ndef f(x: int) -> int: return 0",
            "here:2: f is defined twice",
        ),
    ],
)
def test_a_text_that_is_no_module_of_functions_is_refused(text: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        read_text(text, "here")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("print(block)", "here:2: not a statement"),
        ("for i in block: pass", "not a statement"),
        ("if True: break", "here:2: not a statement"),
        ("block = 1", "block may not be assigned"),
        ("place_of = 1", "place_of may not be assigned"),
        ("max = 1", "max may not be assigned"),
        ("x = nothing", "nothing has no value here"),
        ("x = READY", "READY has no value here"),
        ("x = 1\n    x = True", "x changes its type"),
        ("x = block / 2", "Div is not an operation"),
        ("x = block[0]", "not well typed"),
        ("x = block and 1", "not well typed"),
        ("x = place_of(block, blocks_per_chunk)", "there is no place_of to call here"),
        ("x = nested_quotients(1, 2, 3)", "nested_quotients cannot be called so"),
        ("x = first_needed(block)", "first_needed cannot be called so"),
        (
            "x = blocks_have_different_places(1, 2, 3)",
            "there is no blocks_have_different_places to call here",
        ),
    ],
)
def test_a_body_that_is_not_understood_is_refused(body: str, message: str) -> None:
    text = f"def place_of(block: int, blocks_per_chunk: int) -> tuple[int, int]:\n    {body}\n"
    code = read_text(text, "here").functions["place_of"]
    function = program().functions["place_of"]
    with pytest.raises(SourceError, match=message):
        Execution(program(), function, code, {}).run()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f() -> None:\n    pass", "f has no docstring"),
        ('def f() -> None:\n    """."""\n    invariant(True)', "belongs to the head of a loop"),
        (
            'def f() -> None:\n    """."""\n    while True:\n        requires(True)',
            "belongs to the head of a function",
        ),
        ('def f() -> None:\n    """."""\n    while True:\n        pass', "the loop has no variant"),
        ("@property\ndef f() -> None:\n    pass", "an unknown decorator"),
        ("@definition\ndef f() -> int:\n    pass", "f is not one expression"),
        ("@definition\ndef max() -> int:\n    return 1", "max is defined twice"),
    ],
)
def test_a_spec_that_is_not_written_by_the_rules_is_refused(
    text: str, message: str, tmp_path: Any
) -> None:
    path = tmp_path / "here.py"
    path.write_text(text)
    with pytest.raises(SourceError, match=message):
        read_program([path])


@pytest.mark.parametrize(
    ("used", "message"),
    [
        ("f(x)", "f is not proved before"),
        ("forall(lambda n: f(n))", "f is not proved before"),
        ("x < 0", "only lemmas can be used"),
        ("forall(lambda n: n < 0)", "only lemmas can be used"),
        ("exists(lambda n: f(n))", "only lemmas can be used"),
        ("g(x)", "g is no lemma"),
        ("d(x)", "only lemmas can be used"),
    ],
)
def test_nothing_is_used_that_is_not_proved_before(used: str, message: str, tmp_path: Any) -> None:
    path = tmp_path / "here.py"
    path.write_text(
        "@definition\ndef d(x: int) -> bool:\n    return x < 0\n"
        'def g(x: int) -> int:\n    """."""\n    return x\n'
        '@lemma\ndef f(x: int) -> None:\n    """."""\n'
        f"    ensures(lambda result: x < 0)\n    use({used})\n"
    )
    read = read_program([path])
    function = read.functions["f"]
    with pytest.raises(SourceError, match=message):
        Execution(read, function, function.code, {}).run()
