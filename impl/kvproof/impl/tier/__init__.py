"""A tier in host memory; it knows no engine.

``tier`` says which key lies in which slot; ``policy`` which slot is given up next (``lru``, ``arc``
or a class of somebody else's). ``region`` holds the bytes.
"""
