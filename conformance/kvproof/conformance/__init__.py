"""Does a scheduler keep the contract? ``check_scheduler`` is the way in for other projects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kvproof.conformance.check import Checked as Checked
    from kvproof.conformance.check import ContractBroken as ContractBroken
    from kvproof.conformance.check import check_scheduler as check_scheduler

__all__ = ["Checked", "ContractBroken", "check_scheduler"]


def __getattr__(name: str) -> Any:
    # On demand: the command line must start in an installation that lacks what these need.
    if name in __all__:
        from kvproof.conformance import check

        return getattr(check, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
