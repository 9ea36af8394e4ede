"""Contents: what a slot can hold, which is a token prefix. Exact, by interning, not by hashing."""

from __future__ import annotations

from kvproof.model.contract import Content


class Contents:
    """A trie of token prefixes. Each node is one content; its depth is its number of tokens."""

    def __init__(self) -> None:
        self._child: dict[tuple[int, int], Content] = {}
        self._parent: list[Content] = [Content(0)]
        self._depth: list[int] = [0]
        self._roots: dict[str, Content] = {"": Content(0)}

    def __len__(self) -> int:
        return len(self._parent)

    def root(self, salt: str) -> Content:
        """The empty prefix under a salt: equal prompts under different salts differ."""
        if salt not in self._roots:
            self._roots[salt] = self._new(Content(len(self._parent)), 0)
        return self._roots[salt]

    def child(self, prefix: Content, token: int) -> Content:
        """``prefix`` and one token more."""
        found = self._child.get((prefix, token))
        if found is None:
            found = self._child[prefix, token] = self._new(prefix, self._depth[prefix] + 1)
        return found

    def depth(self, content: Content) -> int:
        """How many tokens it is the prefix of."""
        return self._depth[content]

    def ancestor(self, content: Content, tokens: int) -> Content:
        """The first ``tokens`` tokens of it (at most its depth)."""
        while self._depth[content] > tokens:
            content = self._parent[content]
        return content

    def _new(self, parent: Content, depth: int) -> Content:
        self._parent.append(parent)
        self._depth.append(depth)
        return Content(len(self._parent) - 1)
