"""The production scheduler: which KV-cache blocks move between the GPU and a larger tier, and when.

Engine-agnostic: an engine and a tier are seen through the protocols in ``views``. Read ``geometry``
(sizes), ``views`` (who is talked to), then ``lookup``, ``storing``, ``alarms``, ``fence`` and
``jobs`` (one concept each), and at last ``scheduler``, which puts them together.
"""
