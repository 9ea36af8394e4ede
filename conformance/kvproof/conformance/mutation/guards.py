"""Which test needs which guard: ``python -m kvproof.conformance.mutation.guards [--json]``.

Each guard is taken out of the reference, and the histories of the corpus are judged without it. The
test of the first history whose findings change is the guard's: run on such a reference, it fails.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from kvproof.conformance.errors import EXIT_FINDING, EXIT_HOLDS, EXIT_USAGE, UsageError
from kvproof.conformance.mutation import survivors
from kvproof.conformance.mutation.histories import Findings, History, Play
from kvproof.conformance.mutation.trial import noticing
from kvproof.spec.contract import contract
from kvproof.spec.ids import CONTRACT
from kvproof.spec.mutants import Mutant, mutants


@dataclass(frozen=True)
class Guarded:
    """One guard and its test.

    ``number`` counts the action's guards from 0, as ``Broken.index`` does; ``test`` is a pytest
    node id or ""; ``excuse`` says why the guard may do without one.
    """

    action: str
    number: int
    kind: str
    id: str
    condition: str
    mutant: str
    test: str
    excuse: str

    @property
    def missed(self) -> bool:
        """Whether nobody would miss the guard."""
        return not self.test and not self.excuse


def guards() -> list[Guarded]:
    """Every guard of the contract, in its order."""
    found: list[Guarded] = []
    explained = survivors.read()
    deletions = [m for m in mutants(contract()) if m.what == "statement" and m.kind != "update"]
    for mutant in deletions:
        number = sum(1 for guard in found if guard.action == mutant.action)
        found.append(_guarded(mutant, number, explained))
    return found


def _guarded(mutant: Mutant, number: int, explained: Mapping[str, str]) -> Guarded:
    changed = (history.test for history, now in noticing(mutant) if _test_fails(history, now))
    test = next(changed, "")
    excuse = ""
    if not test and mutant.name in explained:
        excuse = explained[mutant.name]
    elif not test and mutant.kind == "conclude":
        excuse = "exempt: it cannot fail while the proof holds"
    return Guarded(
        mutant.action, number, mutant.kind, mutant.id, mutant.deleted, mutant.name, test, excuse
    )


def _test_fails(history: History, now: Findings) -> bool:
    """Whether a test of the history fails on these findings.

    A test of a trace says what ends the run; most say nothing of what was missed on the way.
    """

    def ends(findings: Findings) -> Findings:
        return [f for f in findings if f[0] not in CONTRACT or CONTRACT[f[0]].severity == "unsafe"]

    return isinstance(history, Play) or ends(now) != ends(history.findings)


def main(arguments: list[str]) -> int:
    """Print every guard with its test; returns the exit code, 1 when a guard has none."""
    parser = argparse.ArgumentParser(prog="guards", description="Which test needs which guard.")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    wanted = parser.parse_args(arguments)
    try:
        table = guards()
    except UsageError as error:
        print(f"guards: {error}", file=sys.stderr)
        return EXIT_USAGE
    missed = [guard for guard in table if guard.missed]
    if wanted.json:
        from kvproof.conformance.cli import console

        console.print_json({"guards": [asdict(g) for g in table], "missed": len(missed)})
    else:
        for guard in table:
            print(f"{_called(guard)}\n    -> {guard.test or guard.excuse or 'no test'}")
        excused = sum(1 for guard in table if guard.excuse)
        tested = len(table) - len(missed) - excused
        print(
            f"\n{len(table)} guards: {tested} have a test, {excused} do without, "
            f"{len(missed)} would not be missed"
        )
    for guard in missed:
        print(f"no test needs {_called(guard)}", file=sys.stderr)
    return EXIT_FINDING if missed else EXIT_HOLDS


def _called(guard: Guarded) -> str:
    kind = f"{guard.kind} {guard.id}".rstrip()
    condition = guard.condition if len(guard.condition) <= 80 else f"{guard.condition[:77]}..."
    return f"{guard.action} {guard.number} {kind} {condition}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
