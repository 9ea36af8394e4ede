"""Functions with theorems: the arithmetic of offloading, for symbolic sizes.

What is written and proved, in this order:

    arithmetic   products and quotients
    kinds        what a forward needs of each kind of group, and where a group may start
    spans        blocks and positions; how many blocks a window spans
    groups       the greatest boundary that all groups serve
    lookup       runs of chunks in the tier
    store        which chunks are offered and kept, and where a block lies
    plan         which piece of a job goes where, and that no two share a byte
    duality      what is kept is what is needed

How: ``language`` has the words, ``source`` reads a ``program`` from text, ``terms`` and ``execute``
turn them into questions, ``verify`` asks them, and ``emit`` writes what runs.
"""
