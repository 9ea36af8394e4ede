"""The monitor: each event becomes moves of the reference, whose guards judge it.

``world`` names things, ``forward`` tells what a forward reads and writes, ``mapping`` turns events
into moves, ``facts`` explains a broken guard, ``monitor`` puts them together.
"""
