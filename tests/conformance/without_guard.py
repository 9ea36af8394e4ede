"""Runs tests on a reference with a guard deleted: ``python -m tests.conformance.without_guard``.

Reads pairs of a mutant's name and a test, as JSON, from standard input; prints a list of pytest's
exit codes: first on the whole reference, then without the guard.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import redirect_stdout

import pytest

from kvproof.conformance.mutation.installed import installed
from kvproof.spec.contract import contract
from kvproof.spec.mutants import mutants


def outcome(test: str) -> int:
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        return int(pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", test]))


def main() -> None:
    by_name = {mutant.name: mutant for mutant in mutants(contract())}
    codes = []
    for name, test in json.load(sys.stdin):
        whole = outcome(test)
        with installed(contract(), by_name[name]):
            codes.append((whole, outcome(test)))
    print(json.dumps(codes))


if __name__ == "__main__":
    main()
