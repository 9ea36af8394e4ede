"""From the intermediate form to the reference: readable, typed Python, one method an action."""

from __future__ import annotations

import textwrap
from importlib.util import find_spec
from pathlib import Path

from kvproof.spec import ir
from kvproof.spec.contract import contract
from kvproof.spec.hoist import hoist

WIDTH = 100

HEADER = '''\
"""The contract, executable. Generated from the spec by ``kvproof generate``: do not edit.

Each method is one action. Its guards raise ``Broken``; its updates change the fields. Attributes
of a thing (``lease_block`` and the like) must be set before the thing is first used.
"""

from __future__ import annotations

from typing import NewType

from kvproof.model.broken import Broken
from kvproof.model.relation import ANY, EACH, Relation

'''


ON_TOP = '''\
"""The mechanism, executable. Generated from the spec by ``kvproof generate``: do not edit.

It is the contract with more fields, conditions and moves: how the production scheduler keeps it.
Here stands what differs. Attributes of its own must be set before the thing is first used, too.
"""

from __future__ import annotations

from kvproof.model.broken import Broken
'''


def reference_path(name: str = "contract.py") -> Path:
    """Where the committed text lies: found by name, for spec/ imports nothing of model/."""
    found = find_spec("kvproof.model")
    if found is None or not found.submodule_search_locations:
        raise FileNotFoundError("kvproof.model is not installed")
    return Path(found.submodule_search_locations[0]) / name


def render(machine: ir.Machine | None = None) -> str:
    """The text of the reference."""
    m = machine or contract()
    parts = [HEADER]
    parts += [f'{sort} = NewType("{sort}", int)\n' for sort in m.sorts]
    parts.append(f'\n\nclass {m.name}:\n    """State and moves; ``workers`` are all ranks."""\n\n')
    parts.append("    def __init__(self, workers: list[Worker]) -> None:\n")
    parts.append("        self.workers = workers\n")
    parts += [_field(f) for f in m.fields.values()]
    parts += [_action(m, a) for a in m.actions.values()]
    return "".join(parts)


def render_on_top(base: ir.Machine, top: ir.Machine) -> str:
    """The text of a machine that is laid on top of another, whose text is the contract's."""
    fields = [f for f in top.fields.values() if f.name not in base.fields]
    actions = [
        a for a in top.actions.values() if a.name not in base.actions or a.body != _body(base, a)
    ]
    used = {s for f in fields for s in (*f.args, f.value)}
    used |= {v.sort for a in actions for v in a.params} | {base.name, "Worker"}
    imported = "".join(f"    {name},\n" for name in sorted(used - {"Int", "Bool"}))
    parts = [ON_TOP, f"from kvproof.model.contract import (\n{imported})\n"]
    parts.append("from kvproof.model.relation import ANY, EACH, Relation\n")
    parts.append(f'\n\nclass {top.name}({base.name}):\n    """More state and moves."""\n\n')
    parts.append("    def __init__(self, workers: list[Worker]) -> None:\n")
    parts.append("        super().__init__(workers)\n")
    parts += [_field(f) for f in fields]
    parts += [_action(top, a) for a in actions]
    return "".join(parts)


def _body(machine: ir.Machine, action: ir.Action) -> tuple[ir.Statement, ...]:
    return machine.actions[action.name].body


def text(machine: ir.Machine, part: ir.Node | ir.Statement) -> str:
    """A condition, a guard's condition or an update, on one line as the reference would have it."""
    if isinstance(part, ir.Guard):
        return _inline(machine, part.cond)
    if isinstance(part, ir.Insert | ir.Discard | ir.Put):
        return " ".join(_update(machine, part).split())
    return _inline(machine, part)


# --- fields --------------------------------------------------------------------------------------


def _python(sort: str) -> str:
    return {"Int": "int", "Bool": "bool"}.get(sort, sort)


def _field(f: ir.Field) -> str:
    args = [_python(a) for a in f.args]
    key = args[0] if len(args) == 1 else f"tuple[{', '.join(args)}]"
    value = _python(f.value)
    match f.kind:
        case "relation" if len(args) == 1:
            line = f"self.{f.name}: set[{args[0]}] = set()"
        case "relation":
            line = f"self.{f.name}: Relation[{', '.join(args)}] = Relation()"
        case "scalar":
            line = f"self.{f.name} = {f.init}"
        case "map" if f.total:
            line = f"self.{f.name}: dict[{key}, {value}] = dict.fromkeys(workers, {f.init})"
        case _:
            line = f"self.{f.name}: dict[{key}, {value}] = {{}}"
    served = f" ({f.serves})" if f.serves else ""
    return f"        # {f.doc}{served}\n        {line}\n"


# --- actions -------------------------------------------------------------------------------------


def _action(m: ir.Machine, action: ir.Action) -> str:
    params = "".join(f", {p.name}: {_python(p.sort)}" for p in action.params)
    lines = [f"\n    def {action.name}(self{params}) -> None:\n"]
    lines += _docstring(f"[{action.by}] {action.doc.strip()}")
    action, aliases = hoist(m, action)
    lines += [f"        {name} = {_inline(m, node)}\n" for name, node in aliases]
    values = ", ".join(p.name for p in action.params) + ("," if len(action.params) == 1 else "")
    number = 0
    for statement in action.body:
        if isinstance(statement, ir.Guard):
            call = f'Broken("{statement.kind}", "{statement.id}", "{action.name}", {number}, '
            test = _expression(m, ir.Not(statement.cond), 8)
            lines.append(f"        if {test}:\n            raise {call}({values}))\n")
            number += 1
        else:
            lines.append(_update(m, statement))
    return "".join(lines)


def _docstring(text: str) -> list[str]:
    """The lines of a method's docstring, the first paragraph wrapped to the width."""
    first, _, rest = text.partition("\n\n")
    wrapped = textwrap.wrap(" ".join(first.split()), WIDTH - 11)
    if rest:
        wrapped += ["", *rest.splitlines()]
    if len(wrapped) == 1 and len(wrapped[0]) > WIDTH - 14:
        # The closing quotes need room as well.
        wrapped = textwrap.wrap(wrapped[0], WIDTH - 14)
    if len(wrapped) == 1:
        return [f'        """{wrapped[0]}"""\n']
    body = [f"        {line}\n" if line else "\n" for line in wrapped[1:]]
    return [f'        """{wrapped[0]}\n', *body, '        """\n']


def _update(m: ir.Machine, update: ir.Update) -> str:
    indent = 8
    text = ""
    if update.when != ir.TRUE:
        text += " " * indent + f"if {_expression(m, update.when, indent)}:\n"
        indent += 4
    f = m.fields[update.field]
    if isinstance(update, ir.Insert) and any(isinstance(a, ir.Any) for a in update.args):
        text += " " * indent + "for worker in self.workers:\n"
        indent += 4
    args = [
        ("worker" if isinstance(update, ir.Insert) else "ANY")
        if isinstance(a, ir.Any)
        else _inline(m, a)
        for a in update.args
    ]
    joined = ", ".join(args)
    match update:
        case ir.Put(_, (), value, _):
            line = f"self.{f.name} = {_inline(m, value)}"
        case ir.Put(_, _, value, _):
            line = f"self.{f.name}[{joined}] = {_inline(m, value)}"
        case ir.Insert():
            line = f"self.{f.name}.add({joined})"
        case ir.Discard() if len(args) == 1 and args[0] == "ANY":
            line = f"self.{f.name}.clear()"
        case ir.Discard() if f.kind == "map":
            line = f"self.{f.name}.pop({joined}, None)"
        case ir.Discard():
            line = f"self.{f.name}.discard({joined})"
    return text + " " * indent + line + "\n"


# --- expressions ---------------------------------------------------------------------------------


def _inline(m: ir.Machine, node: ir.Node) -> str:
    """``node`` on one line; parenthesised wherever it is not atomic."""
    match node:
        case ir.Var(name, _):
            return name
        case ir.Lit(value):
            return str(value)
        case ir.Read(name, args):
            return _read(m, name, [_inline(m, a) for a in args])
        case ir.Has(name, args):
            return f"{_key([_inline(m, a) for a in args])} in self.{name}"
        case ir.Cmp(op, left, right):
            return f"{_operand(m, left)} {op} {_operand(m, right)}"
        case ir.Plus(left, right):
            return f"{_operand(m, left)} + {_operand(m, right)}"
        case ir.Not(body):
            return f"not {_operand(m, body)}"
        case ir.And(parts):
            return " and ".join(_operand(m, p) for p in parts)
        case ir.Or(parts):
            return " or ".join(_operand(m, p) for p in parts)
        case ir.Implies(left, right):
            return f"{_operand(m, right)} if {_operand(m, left)} else True"
        case ir.ForAll((variable,), body) if variable.sort == "Worker":
            return f"all({_inline(m, body)} for {variable.name} in self.workers)"
        case ir.Every(name, args, variables, body):
            return _every(m, name, args, variables, body)
        case _:
            raise ValueError(f"{node} cannot be executed")


def _read(m: ir.Machine, name: str, args: list[str]) -> str:
    f = m.fields[name]
    if f.kind == "relation":
        return f"{_key(args)} in self.{name}"
    return f"self.{name}[{', '.join(args)}]" if args else f"self.{name}"


def _key(args: list[str]) -> str:
    return args[0] if len(args) == 1 else f"({', '.join(args)})"


def _operand(m: ir.Machine, node: ir.Node) -> str:
    text = _inline(m, node)
    atomic = isinstance(node, ir.Var | ir.Lit | ir.ForAll | ir.Every) or (
        isinstance(node, ir.Read) and m.fields[node.field].kind != "relation"
    )
    if isinstance(node, ir.Every) and node.body == ir.FALSE and len(node.args) == 1:
        atomic = False
    return text if atomic else f"({text})"


def _every(
    m: ir.Machine,
    name: str,
    args: tuple[ir.Node, ...],
    variables: tuple[ir.Var, ...],
    body: ir.Node,
) -> str:
    pattern = ", ".join("EACH" if a in variables else _inline(m, a) for a in args)
    if len(args) == 1:
        if body == ir.FALSE:
            return f"not self.{name}"
        return f"all({_inline(m, body)} for {variables[0].name} in self.{name})"
    if body == ir.FALSE:
        return f"self.{name}.none({pattern})"
    targets = ", ".join(a.name if isinstance(a, ir.Var) and a in variables else "_" for a in args)
    return f"all({_inline(m, body)} for {targets} in self.{name}.match({pattern}))"


def _expression(m: ir.Machine, node: ir.Node, indent: int) -> str:
    """``node`` for an ``if`` at ``indent``: on one line if it fits, else broken at its joints."""
    line = _inline(m, node)
    if indent + len("if :") + len(line) <= WIDTH:
        return line
    return _broken(m, node, indent)


def _broken(m: ir.Machine, node: ir.Node, indent: int) -> str:
    pad = " " * (indent + 4)
    close = " " * indent

    def part(p: ir.Node) -> str:
        line = _operand(m, p)
        if indent + 8 + len(line) <= WIDTH:
            return line
        inner = _broken(m, p, indent + 4)
        return inner if inner.endswith(")") else f"({inner})"

    match node:
        case ir.Not(body):
            return f"not {_wrapped(_broken(m, body, indent))}"
        case ir.And(parts):
            return f"(\n{pad}" + f"\n{pad}and ".join(part(p) for p in parts) + f"\n{close})"
        case ir.Or(parts):
            return f"(\n{pad}" + f"\n{pad}or ".join(part(p) for p in parts) + f"\n{close})"
        case ir.Implies(left, right):
            return f"(\n{pad}{part(right)}\n{pad}if {part(left)}\n{pad}else True\n{close})"
        case ir.ForAll() | ir.Every():
            head = _inline(m, node)
            body_text = _inline(m, node.body)
            rest = head[len("all(") + len(body_text) + 1 : -1]
            return f"all(\n{pad}{part(node.body)}\n{pad}{rest}\n{close})"
        case _:
            return _inline(m, node)


def _wrapped(text: str) -> str:
    return text if text.startswith(("(", "all(", "self.")) and text.endswith(")") else f"({text})"
