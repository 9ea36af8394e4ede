"""Typed events, their JSON-lines codec, and the header that every trace starts with."""
