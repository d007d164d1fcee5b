"""Where the values of a JSON text stand. Built in one pass without recursion, for texts that are known to parse."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


class Node:
    """A value: its span, the span of its key, its children. ``twice`` lists keys that came again, with their spans."""

    __slots__ = ("children", "end", "items", "key", "start", "twice")

    def __init__(self, start: int, key: tuple[int, int] | None) -> None:
        self.start, self.end, self.key = start, start, key
        self.children: dict[str, Node] = {}
        self.items: list[Node] = []
        self.twice: list[tuple[str, tuple[int, int]]] = []


class Index:
    def __init__(self, text: str) -> None:
        self.text = text
        self.root: Node | None = None
        self.repeated: list[tuple[str, tuple[int, int]]] = []
        self._build()

    def _build(self) -> None:
        stack: list[tuple[Node, bool]] = []
        key: tuple[int, int] | None = None
        name = ""
        for match in _TOKEN.finditer(self.text, 1 if self.text.startswith("\ufeff") else 0):
            sign, start, end = match[0], match.start(), match.end()
            if sign in "}]":
                if not stack:
                    return
                node, _ = stack.pop()
                node.end = end
                key = None
            elif sign in ",:":
                if sign == ",":
                    key = None
            elif stack and stack[-1][1] and key is None:
                key, name = (start, end), sign
            else:
                node = Node(start, key)
                node.end = end
                self._add(stack, node, name, key)
                key = None
                if sign in "{[":
                    stack.append((node, sign == "{"))

    def _add(self, stack: list[tuple[Node, bool]], node: Node, name: str, key: tuple[int, int] | None) -> None:
        if not stack:
            self.root = self.root or node
            return
        parent, is_object = stack[-1]
        if is_object and key:
            try:
                word = json.loads(name, strict=False)
            except ValueError:
                word = name.strip('"')
            if word in parent.children:
                self.repeated.append((word, key))
            parent.children[word] = node
        parent.items.append(node)

    def find(self, pointer: Sequence[str | int]) -> Node | None:
        node = self.root
        for step in pointer:
            if node is None:
                return None
            if isinstance(step, int):
                node = node.items[step] if 0 <= step < len(node.items) else None
            else:
                node = node.children.get(step)
        return node

    def removal(self, node: Node) -> tuple[int, int]:
        """The span that takes a member out: with the comma behind it, or else the one before it."""
        start, end = node.key[0] if node.key else node.start, node.end
        behind = re.compile(r"\s*,\s*").match(self.text, end)
        if behind:
            return start, behind.end()
        before = re.compile(r",\s*$").search(self.text[:start])
        if before:
            return before.start(), end
        inside = re.compile(r"\s*").match(self.text, end)
        left = len(self.text[:start].rstrip())
        return left, inside.end() if inside else end
