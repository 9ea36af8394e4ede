"""The child process: one campaign on the release that is importable here.

Reads a ``Task`` from standard input and says ``Message`` lines on standard output.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import BinaryIO

import msgspec

from kvproof.conformance.errors import UsageError
from kvproof.conformance.fuzz import campaign
from kvproof.conformance.matrix.messages import Ended, Failed, Message, Standing, Task


def work(task: Task, channel: BinaryIO) -> None:
    """Carry ``task`` out; every outcome is a line on ``channel``."""

    def say(message: Message) -> None:
        try:
            channel.write(msgspec.json.encode(message) + b"\n")
            channel.flush()
        except BrokenPipeError:
            # Nobody waits for this campaign any more. An exception would only end the example.
            os._exit(1)

    try:
        from kvproof.conformance.engines.vllm import VllmTarget

        target = VllmTarget()
        if target.name != f"vllm:{task.release}":
            raise UsageError(f"{target.name} is imported in its place")
        result = campaign.run(
            target,
            seed=task.asked.seed,
            seconds=task.asked.seconds,
            max_examples=task.asked.max_examples,
            out=Path(task.out),
            allow=frozenset(task.asked.allow),
            avoid=task.asked.avoid,
            severity=task.asked.severity,
            max_replays=task.max_replays,
            progress=lambda now: say(Standing(now)),
        )
    except UsageError as error:
        say(Failed(" ".join(str(error).split())))
    except Exception as error:
        say(Failed(" ".join(f"{type(error).__name__}: {error}".split())))
    else:
        say(Ended(result))


def main() -> None:
    """Serve one task. What a release prints by itself goes to standard error."""
    with os.fdopen(os.dup(1), "wb") as channel:
        os.dup2(2, 1)
        work(msgspec.json.decode(sys.stdin.buffer.read(), type=Task), channel)


if __name__ == "__main__":
    main()
