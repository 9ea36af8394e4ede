"""How a command ends: whatever goes wrong becomes one line and an exit code.

Imports nothing that a bare installation lacks, so that it can say what is lacking.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback

from kvproof.conformance.errors import EXIT_USAGE, UsageError

TRACEBACK = "KVPROOF_TRACEBACK"
"""Set this environment variable to see where an internal error came from."""

_EXTRA_OF = {
    "hypothesis": "check",
    "jinja2": "check",
    "msgspec": "check",
    "rich": "check",
    "sortedcontainers": "check",
    "torch": "transfer",
    "typer": "check",
    "vllm": "vllm",
    "z3": "check",
}


def guarded(arguments: list[str]) -> int:
    """Run the command line; see ``kvproof.conformance.cli.main``."""
    try:
        from kvproof.conformance.cli.app import run

        code = run(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        return _no_reader()
    except SystemExit as end:
        # Nothing here ends the process, but rich does when the pipe is broken: with 1, a finding.
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        return _no_reader()
    except KeyboardInterrupt:
        # Once is enough: a second one must not cut the line short, nor the clean-up at exit.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return _fail("interrupted", arguments)
    except UsageError as error:
        return _fail(str(error), arguments)
    except ModuleNotFoundError as error:
        return _fail(_missing_module(error), arguments)
    except OSError as error:
        return _fail(_operating_system(error), arguments)
    except Exception as error:
        return _fail(_internal(error), arguments)


def _fail(message: str, arguments: list[str]) -> int:
    line = " ".join(message.split())
    if "--json" in arguments:
        print(json.dumps({"error": line}), flush=True)
    _say(line)
    return EXIT_USAGE


def _no_reader() -> int:
    # What is still buffered has no reader; without this the interpreter trips over it at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    _say("the reader of the output went away")
    return EXIT_USAGE


def _say(line: str) -> None:
    print(f"kvproof: {line}", file=sys.stderr, flush=True)


def _missing_module(error: ModuleNotFoundError) -> str:
    package = (error.name or "").partition(".")[0]
    extra = _EXTRA_OF.get(package)
    if extra is None:
        return _internal(error)
    return f"{package} is not installed: run `pip install 'kvproof[{extra}]'`"


def _operating_system(error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else _internal(error)


def _internal(error: Exception) -> str:
    if os.environ.get(TRACEBACK):
        traceback.print_exception(error)
    return (
        f"internal error: {type(error).__name__}: {error} "
        f"(a fault in kvproof; set {TRACEBACK}=1 to see where)"
    )
