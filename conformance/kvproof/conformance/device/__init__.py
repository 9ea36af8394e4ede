"""A device that is not there: every order of copies that streams and events allow, and its races.

``device`` is a runtime like any other, so the engine of transfers runs on it unchanged. It carries
out each copy and each write of the model as late or as early as a ``policy`` says, and knows of any
two accesses to the same bytes whether something orders them (``clocks``). ``histories`` has jobs
and the model's work for it, ``without`` takes single edges away, and ``edges`` shows that none of
them can be spared.
"""
