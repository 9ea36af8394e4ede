"""Stateful fuzzing of schedulers: drawn setups, drawn engine moves, judged by the contract.

Reading order: ``strategies`` (what is drawn), ``session`` (one run under the monitor), ``machine``
(Hypothesis drives a session), ``shrink`` with ``simpler`` (the shortest failing history),
``outputs`` (what is written for a finding), ``campaign`` (all of it, with budgets).
"""
