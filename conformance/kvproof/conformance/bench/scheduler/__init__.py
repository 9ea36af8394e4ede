"""CPU time of two connector schedulers on the same work: the release's own class, and kvproof's.

Both see the same requests, step outputs and block tables, and each has a CPU tier with the same
contents. ``scene`` builds the two sides, ``fleet`` the requests that they serve; ``rows`` and
``growth`` are what is measured.
"""
