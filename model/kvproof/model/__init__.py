"""The reference: the contract as executable Python.

``contract.py`` (the machine), ``mechanism.py`` (the production scheduler's, on top of it) and
``functions.py`` (arithmetic) are generated from the spec and committed; ``kvproof prove
--generated`` proves that very text. ``relation.py`` and ``broken.py`` are written by hand and are
part of the trust base.
"""
