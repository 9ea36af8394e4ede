"""``scripts/edges``: each edge, and the race that is there without it."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict

from kvproof.conformance.cli import console
from kvproof.conformance.device.edges import WITNESSES, Shown, random_history, show
from kvproof.conformance.errors import EXIT_FINDING, EXIT_HOLDS


def main(arguments: list[str]) -> int:
    """Print every edge with its race; returns the exit code."""
    parser = argparse.ArgumentParser(prog="edges", description="Which race needs which edge.")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument(
        "--seeds", type=int, default=200, metavar="N", help="random histories [default: 200]"
    )
    wanted = parser.parse_args(arguments)
    shown = [show(edge) for edge in WITNESSES]
    seeds = range(wanted.seeds)
    seen = {edge: sum(bool(random_history(seed, edge)) for seed in seeds) for edge in WITNESSES}
    raced = {seed: [str(race) for race in random_history(seed)] for seed in seeds}
    complete = {seed: races for seed, races in raced.items() if races}
    if wanted.json:
        edges = [{**asdict(one), "edge": one.edge.name, "seeds": seen[one.edge]} for one in shown]
        console.print_json({"edges": edges, "seeds": len(seeds), "complete": complete})
    else:
        for one in shown:
            _say(one, seen[one.edge], len(seeds))
        print(
            f"with all {len(shown)} edges: {len(complete)} races in {len(seeds)} random histories"
        )
    for seed, found in complete.items():
        print(f"seed {seed}: {found[0]}", file=sys.stderr)
    spared = [one.edge.name for one in shown if not one.races or not one.lost]
    for name in spared:
        print(f"nothing is lost without {name}", file=sys.stderr)
    return EXIT_FINDING if spared or complete else EXIT_HOLDS


def _say(one: Shown, seeds: int, of: int) -> None:
    print(f"{one.edge.name}: {one.edge.value}")
    for race in one.races:
        print(f"    without it: {race}")
    print(
        f"    bytes are lost in {one.lost} of {one.orders} orders, with it in none of"
        f" {one.orders_with}; a race in {seeds} of {of} random histories\n"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
