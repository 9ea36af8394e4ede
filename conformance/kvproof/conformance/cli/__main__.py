"""``python -m kvproof.conformance.cli``: the way in for a child process of a release."""

from __future__ import annotations

import sys

from kvproof.conformance.cli import main

if __name__ == "__main__":
    sys.exit(main())
