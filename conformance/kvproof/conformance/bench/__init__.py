"""Figures: how fast the fuzzer, the monitor and the proofs are, and how soon faults are found.

Whatever is compared is measured in one run, turn by turn, on the same machine; every table says
with which settings.
"""
