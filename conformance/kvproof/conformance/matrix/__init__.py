"""Many releases, one table: which invariants each of them breaks, and how soon that shows.

Reading order: ``budgets`` (what each release's two campaigns are asked), ``store`` (finished ones
are kept), ``messages`` with ``worker`` and ``process`` (a campaign in a child process),
``schedule`` (all of them, several at a time), ``document`` (the outcome), ``table`` (the outcome
for people).
"""
