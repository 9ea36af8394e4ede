"""Known faults that can be put into our own tier, transfers and connector, to see them found.

Nothing here is active unless a setup names a fault. ``faults`` lists them with the invariants that
each breaks, ``runtime`` has those that lie between the engine of transfers and the device.
"""

from kvproof.conformance.planted.faults import FAULTS, Fault, planted, planted_runtime

__all__ = ["FAULTS", "Fault", "planted", "planted_runtime"]
