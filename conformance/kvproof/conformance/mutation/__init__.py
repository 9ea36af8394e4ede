"""Whether anything would notice: the spec, and the monitor's guards, with one thing deleted.

``histories`` is the corpus of histories with the findings that each must give, ``installed`` runs a
mutated action in place of the committed one, ``trial`` tries one mutant, ``campaign`` all of them,
``survivors`` is the list of those that live and why, ``guards`` names the test that needs a guard.
"""
