"""Campaigns that are told, not run: for the layers above the child processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kvproof.conformance.engines.base import GroupSetup, History, Setup, Step
from kvproof.conformance.fuzz.campaign import CampaignProgress, CampaignResult, Coverage, Found
from kvproof.conformance.matrix.messages import CampaignFailed, Task
from kvproof.conformance.monitor.finding import Finding


def found(
    id: str,
    action: str,
    seconds: float,
    moves: int = 3,
    where: str = "",
    explained_by: str | None = None,
    culprit: str = "scheduler",
    severity: str = "unsafe",
    kind: str = "",
) -> Found:
    """A finding after so many seconds of its campaign."""
    finding = Finding(
        id=id,
        sentence="It holds.",
        culprit=culprit,
        severity=severity,
        index=0,
        step=0,
        action=action,
        event="event",
        facts={"where": where} if where else {},
        explained_by=explained_by,
        kind=kind,
    )
    history = History("vllm:1.2.3", Setup((GroupSetup("full", 4),)), (Step(),) * moves)
    return Found(finding, history, [f"out/{id}-{moves}.history.json"], 5, seconds, 7)


def result(
    seed: int,
    *findings: Found,
    again: dict[str, int] | None = None,
    allowed: dict[str, int] | None = None,
    passed: Sequence[Found] = (),
) -> CampaignResult:
    """A campaign of 10 examples, 200 moves and 3000 events in 4 s."""
    return CampaignResult(
        target="vllm:1.2.3",
        seed=seed,
        examples=10,
        steps=200,
        events=3000,
        seconds=4.0,
        found=list(findings),
        allowed=allowed or {},
        again=again or {},
        coverage=Coverage({}, {}, {}, []),
        passed=list(passed),
    )


class StubRunner:
    """Finds what it is told to, less what it is asked to pass over; remembers what it was asked.

    ``finds`` are by release; a release in ``broken`` cannot be driven; ``interrupted_at`` is the
    number of the call that an interrupt from the keyboard cuts off.
    """

    def __init__(
        self,
        finds: dict[str, list[Found]] | None = None,
        broken: tuple[str, ...] = (),
        interrupted_at: int | None = None,
    ) -> None:
        self.finds, self.broken, self.interrupted_at = finds or {}, broken, interrupted_at
        self.tasks: list[Task] = []

    async def __call__(
        self, task: Task, report: Callable[[CampaignProgress], None]
    ) -> CampaignResult:
        self.tasks.append(task)
        if len(self.tasks) == self.interrupted_at:
            raise KeyboardInterrupt
        if task.release in self.broken:
            raise CampaignFailed("it does not import")
        report(CampaignProgress(1, 2, 3, 0.5))
        told = self.finds.get(task.release, [])
        allow = task.asked.allow
        return result(
            task.asked.seed,
            *(one for one in told if one.finding.signature() not in allow),
            allowed={
                str(one.finding.signature()): 2 for one in told if one.finding.signature() in allow
            },
        )
