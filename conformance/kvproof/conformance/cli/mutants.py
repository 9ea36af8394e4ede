"""``kvproof prove --mutants``: whether anything would notice a slip in the spec."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kvproof.conformance.errors import EXIT_FINDING, EXIT_HOLDS, UsageError

if TYPE_CHECKING:
    from kvproof.conformance.mutation.campaign import Campaign
    from kvproof.conformance.mutation.trial import Trial


def prove_mutants(actions: Sequence[str], jobs: int, timeout_ms: int, as_json: bool) -> int:
    """Try all mutants, print what became of them, and return the exit code.

    Raises:
        UsageError: an action does not exist, or the corpus or the list of survivors is broken.
    """
    from kvproof.conformance.cli import console
    from kvproof.conformance.mutation import survivors
    from kvproof.conformance.mutation.campaign import held_against, try_all
    from kvproof.spec.contract import contract

    for name in actions:
        if name not in contract().actions:
            raise UsageError(f"the contract has no action {name}")
    listed = survivors.read()
    began = time.monotonic()
    with console.progress("deleting") as advance:
        trials = try_all(actions, jobs, timeout_ms, lambda done, total: advance("", done, total))
    campaign = held_against(trials, listed, actions)
    seconds = time.monotonic() - began
    if as_json:
        console.print_json(_document(campaign, seconds))
    else:
        _print(campaign, seconds)
    return EXIT_HOLDS if campaign.holds else EXIT_FINDING


def _rate(campaign: Campaign) -> float:
    return campaign.killed / len(campaign.trials)


def _document(campaign: Campaign, seconds: float) -> dict[str, object]:
    by = Counter(trial.killed_by for trial in campaign.trials)
    return {
        "verdict": "holds" if campaign.holds else "failed",
        "seconds": round(seconds, 3),
        "total": len(campaign.trials),
        "killed": campaign.killed,
        "survived": len(campaign.trials) - campaign.killed,
        "rate": round(_rate(campaign), 4),
        "killed_by": {"history": by["history"], "proof": by["proof"]},
        "unexplained": [trial.mutant.name for trial in campaign.unexplained],
        "stale": list(campaign.stale),
        "mutants": [_as_dict(trial, campaign) for trial in campaign.trials],
    }


def _as_dict(trial: Trial, campaign: Campaign) -> dict[str, object]:
    mutant = trial.mutant
    return {
        "name": mutant.name,
        "action": mutant.action,
        "kind": mutant.kind,
        "id": mutant.id,
        "what": mutant.what,
        "deleted": mutant.deleted,
        "killed_by": trial.killed_by or None,
        "killer": trial.killer or None,
        "undecided": list(trial.undecided),
        "equivalent": trial.equivalent,
        "explanation": campaign.explained.get(mutant.name),
        "seconds": round(trial.seconds, 3),
    }


def _print(campaign: Campaign, seconds: float) -> None:
    from rich.table import Table

    from kvproof.conformance.cli import console

    out = console.output()
    columns = ("deleted", "total", "by histories", "by proofs", "survived")
    table = Table(*columns, box=None, pad_edge=False)
    kinds = Counter((t.mutant.kind, t.mutant.what, t.killed_by) for t in campaign.trials)
    for kind in ("assume", "oblige", "conclude", "update"):
        for what in ("statement", "part"):
            counts = [kinds[kind, what, by] for by in ("history", "proof", "")]
            table.add_row(f"{kind}, {what}", str(sum(counts)), *map(str, counts))
    out.print(table)
    if campaign.explained:
        out.print("\nsurvive, and why:", style="bold")
        proved = {trial.mutant.name for trial in campaign.trials if trial.equivalent}
        for name, why in campaign.explained.items():
            sure = " [proved: the action is allowed where it was]" if name in proved else ""
            out.print(f"{name}\n    {why}{sure}", soft_wrap=True)
    survived = len(campaign.trials) - campaign.killed
    print(
        f"\n{campaign.killed} of {len(campaign.trials)} deletions are noticed "
        f"({_rate(campaign):.1%}), {survived} survive, in {seconds:.1f} s"
    )
    # Last, so that nobody has to scroll for it.
    for name in campaign.stale:
        out.print(
            f"stale: {name} no longer survives: take it off the list",
            style="bold red",
            soft_wrap=True,
        )
    for trial in campaign.unexplained:
        unsure = f" (undecided: {', '.join(trial.undecided)})" if trial.undecided else ""
        out.print(f"nothing notices: {trial.mutant.name}{unsure}", style="bold red", soft_wrap=True)
