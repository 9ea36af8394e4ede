"""The faked forward: which token follows a prefix.

The next token is a function of the whole prefix, so a request that is preempted, or whose output
was dropped, computes the same tokens again, and equal prefixes have equal contents.
"""

from __future__ import annotations

import zlib

VOCABULARY = 16

STOP = VOCABULARY
"""The token that ends a request, said only where a stream is told to."""


class TokenStream:
    """One request's tokens: its prompt, then what the model says; grown on demand.

    The running checksum covers all tokens so far, so one more token costs O(1).
    """

    def __init__(self, prompt: list[int], stop_after: int | None = None) -> None:
        """``stop_after``: the generated token, counted from 1, that is ``STOP``."""
        self._stop = None if stop_after is None else len(prompt) + stop_after - 1
        self._tokens = list(prompt)
        self._checksum = 0
        for token in prompt:
            self._feed(token)

    def _feed(self, token: int) -> None:
        self._checksum = zlib.crc32(token.to_bytes(4, "little"), self._checksum)

    def token(self, index: int) -> int:
        """The token at ``index``, counted from the start of the prompt."""
        while len(self._tokens) <= index:
            at_stop = len(self._tokens) == self._stop
            following = STOP if at_stop else self._checksum % VOCABULARY
            self._tokens.append(following)
            self._feed(following)
        return self._tokens[index]

    def extended(self, kept: int, tokens: list[int]) -> TokenStream:
        """The stream of a session that keeps its first ``kept`` tokens and goes on with ``tokens``.

        The model is not told to stop any more.
        """
        return TokenStream([self.token(i) for i in range(kept)] + tokens)
