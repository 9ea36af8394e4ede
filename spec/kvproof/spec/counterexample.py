"""A counterexample as a small table of facts, in the spec's own names."""

from __future__ import annotations

from typing import Any

import z3

from kvproof.spec.encode import Encoder


def describe(encoder: Encoder, model: Any) -> str:
    """The constants and function tables of ``model``, one fact a line.

    Relations list the rows that hold; everything that is at its default is left out.
    """
    lines: list[str] = []
    for declaration in model.decls():
        name = declaration.name()
        value = model[declaration]
        if not isinstance(value, z3.FuncInterp):
            lines.append(f"{name} = {short(value)}")
            continue
        default = short(value.else_value())
        for i in range(value.num_entries()):
            entry = value.entry(i)
            args = ", ".join(short(entry.arg_value(k)) for k in range(entry.num_args()))
            lines.append(f"{name}({args}) = {short(entry.value())}")
        if value.num_entries() == 0 and "Var" not in default:
            lines.append(f"{name}(…) = {default}")
    return "\n".join(sorted(lines))


def short(value: Any) -> str:
    """Z3's universe elements without their noise: ``Lease!val!0`` becomes ``Lease0``."""
    return str(value).replace("!val!", "")
