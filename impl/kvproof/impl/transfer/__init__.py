"""Copies between an engine's KV caches and a tier in host memory; it knows no engine.

``pieces`` says which block goes where, ``layout`` where that lies, ``plan`` what is copied. The
``engine`` carries out jobs on a ``runtime``: ``host`` copies on threads, ``cuda`` on a GPU.
``memory`` has the tier's bytes.
"""
