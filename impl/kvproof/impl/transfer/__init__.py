"""Copies between an engine's KV caches and a tier in host memory; it knows no engine.

``pieces`` says which block goes where, ``memory`` holds the tier's bytes and copies, ``host`` does
so in the background.
"""
