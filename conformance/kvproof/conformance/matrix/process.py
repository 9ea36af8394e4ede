"""A campaign in a child process of its release, as seen from the parent."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress

import msgspec

from kvproof.conformance.fuzz.campaign import CampaignProgress, CampaignResult
from kvproof.conformance.matrix.messages import (
    CampaignFailed,
    Ended,
    Failed,
    Message,
    Standing,
    Task,
)
from kvproof.conformance.releases.child import child_environment

_COMMAND = ("-P", "-m", "kvproof.conformance.matrix.worker")

_LONGEST_LINE = 1 << 28
"""Bytes; the last line holds the whole result, with a history for each finding."""

_PATIENCE = 5.0
"""Seconds that a child gets to end by itself once it was asked to."""


async def run(task: Task, report: Callable[[CampaignProgress], None]) -> CampaignResult:
    """Carry ``task`` out in a child process; cancelling ends that process.

    Raises:
        CampaignFailed: it could not be carried out.
    """
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        *_COMMAND,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=_LONGEST_LINE,
        env=child_environment(task.release),
        # An interrupt from the keyboard is the parent's, which ends the child in its own time.
        start_new_session=True,
    )
    try:
        last, errors, _ = await asyncio.gather(
            _listen(child, report), _errors(child), _hand_over(child, task)
        )
        code = await child.wait()
    finally:
        await _end(child)
    if isinstance(last, Ended):
        return last.result
    if isinstance(last, Failed):
        raise CampaignFailed(last.problem)
    told = errors[-1] if errors else "without a word"
    raise CampaignFailed(f"the process ended with exit code {code}: {told}")


async def _hand_over(child: asyncio.subprocess.Process, task: Task) -> None:
    assert child.stdin is not None
    # A child that ends before it listens has said why on its standard error.
    with suppress(BrokenPipeError, ConnectionResetError):
        child.stdin.write(msgspec.json.encode(task))
        await child.stdin.drain()
        child.stdin.close()
        await child.stdin.wait_closed()


async def _listen(
    child: asyncio.subprocess.Process, report: Callable[[CampaignProgress], None]
) -> Message | None:
    """Pass on where the campaign stands; returns the last message, None when there was none."""
    assert child.stdout is not None
    message: Message | None = None
    async for line in child.stdout:
        message = msgspec.json.decode(line, type=Message)
        if isinstance(message, Standing):
            report(message.now)
    return message


async def _errors(child: asyncio.subprocess.Process) -> list[str]:
    """The lines of standard error that are not blank."""
    assert child.stderr is not None
    text = (await child.stderr.read()).decode(errors="replace")
    return [line.strip() for line in text.splitlines() if line.strip()]


async def _end(child: asyncio.subprocess.Process) -> None:
    if child.returncode is not None:
        return
    with suppress(ProcessLookupError):
        child.terminate()
    try:
        await asyncio.wait_for(child.wait(), _PATIENCE)
    except TimeoutError:
        with suppress(ProcessLookupError):
            child.kill()
        await child.wait()
