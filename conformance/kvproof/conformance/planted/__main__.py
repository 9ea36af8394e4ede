"""``scripts/planted``: each fault, and what the fuzzer says of it."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from kvproof.conformance.cli import console
from kvproof.conformance.errors import EXIT_FINDING, EXIT_HOLDS, EXIT_USAGE, UsageError
from kvproof.conformance.planted import FAULTS
from kvproof.conformance.releases.child import child_environment

RELEASE = "0.32.0"


class Outcome(msgspec.Struct, frozen=True):
    """How one fault was found: as which id, in which run, after how many seconds; or not."""

    fault: str
    what: str
    expected: list[str]
    id: str | None
    kind: str
    run: int
    seconds: float

    @property
    def holds(self) -> bool:
        """Found, as what it is."""
        return self.id in self.expected


def search(fault: str, seed: int, seconds: float) -> Outcome:
    """Fuzz until the fault is found or the time is spent; in the release's own process."""
    from kvproof.conformance.engines.names import OURS
    from kvproof.conformance.engines.vllm import VllmTarget
    from kvproof.conformance.fuzz import campaign

    target = VllmTarget(OURS, tells_caught=True)
    with tempfile.TemporaryDirectory() as folder:
        result = campaign.run(
            target,
            seed=seed,
            seconds=seconds,
            max_examples=None,
            out=Path(folder),
            behind={"tier": "ours", "device": "simulated", "planted": fault},
            severity="unsafe",
            max_replays=20,
            stop_at=1,
            plain=target.plain(),
        )
    first = result.found[0] if result.found else None
    return Outcome(
        fault,
        FAULTS[fault].what,
        list(FAULTS[fault].ids),
        first.finding.id if first else None,
        first.finding.kind if first else "",
        first.example if first else result.examples,
        first.seconds if first else result.seconds,
    )


def main(arguments: list[str]) -> int:
    """Print every fault with what finds it; returns the exit code."""
    parser = argparse.ArgumentParser(prog="planted", description="Which fault is found as what.")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--seed", type=int, default=4, metavar="N", help="[default: 4]")
    parser.add_argument(
        "--time", type=float, default=240.0, metavar="S", help="seconds for each [default: 240]"
    )
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    wanted = parser.parse_args(arguments)
    if not wanted.here:
        try:
            environment = child_environment(RELEASE)
        except UsageError as error:
            print(f"planted: {error}", file=sys.stderr)
            return EXIT_USAGE
        command = [sys.executable, "-m", "kvproof.conformance.planted", "--here", *arguments]
        return subprocess.run(command, env=environment, check=False).returncode
    outcomes = []
    for fault in FAULTS:
        outcomes.append(search(fault, wanted.seed, wanted.time))
        if not wanted.json:
            _say(outcomes[-1])
    if wanted.json:
        console.print_json({"faults": outcomes, "seed": wanted.seed, "seconds": wanted.time})
    found = sum(one.holds for one in outcomes)
    if not wanted.json:
        print(f"\n{found} of {len(outcomes)} faults are found as what they are")
    return EXIT_HOLDS if found == len(outcomes) else EXIT_FINDING


def _say(one: Outcome) -> None:
    found: Any = one.id or "not found"
    said = f"{found} ({one.kind})" if one.kind else found
    wrong = "" if one.holds else f"; expected {' or '.join(one.expected)}"
    print(f"{one.fault}: {one.what}\n    {said}, run {one.run}, {one.seconds:.1f} s{wrong}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
