"""Component files in Markdown: skills, commands, agents, output styles."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel_linter import frontmatter
from kernel_linter.frontmatter import Front
from kernel_linter.rule import Edit, Fix, FixClass
from kernel_linter.source import File, Pointer
from kernel_linter.tools import ToolEntry, split_tools
from kernel_linter.words import links

if TYPE_CHECKING:
    from kernel_linter.bundle import Plugin

_FENCE = re.compile(r"^[ \t]{0,3}(`{3,}|~{3,})[^\n]*\n.*?(?:^[ \t]{0,3}\1[`~]*[ \t]*\r?$|\Z)", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"(`+)(?!`)(?:[^`\n]|(?<!`)`(?!`))*?(?<!`)\1(?!`)")
_INJECTED = re.compile(r"(^|.)!`([^`\n]+)`", re.MULTILINE)
_INJECTED_BLOCK = re.compile(r"^```!\s*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_LINE = re.compile(r"[^\n]+")


def _blank(text: str) -> str:
    """Spaces in place of everything but line ends."""
    return _LINE.sub(lambda line: " " * len(line[0]), text)


class TextFile(File):
    """A Markdown component. ``kind`` is ``skill``, ``command``, ``agent`` or ``style``; ``name`` what it is called by."""

    def __init__(self, path: Path, shown: str, kind: str, plugin: Plugin | None = None, *, rel: str = "", sub: str = "",
                 in_plugin: bool = True) -> None:
        super().__init__(path, shown, plugin)
        self.kind, self.rel, self.sub, self.in_plugin = kind, rel or path.name, sub, in_plugin

    @cached_property
    def front(self) -> Front:
        return frontmatter.parse(self.text)

    @property
    def data(self) -> dict[str, Any]:
        return self.front.data

    @property
    def has_fields(self) -> bool:
        return self.front.state == "ok"

    @cached_property
    def stem(self) -> str:
        """The name that the place gives: the folder of a skill, the file name of the others."""
        if self.kind == "skill":
            return self.path.parent.name
        return self.path.stem

    @cached_property
    def name(self) -> str:
        name = self.data.get("name")
        return str(name) if self.kind in ("skill", "agent", "style") and isinstance(name,
            str | int | float) and name != "" else self.stem

    # -- places ----------------------------------------------------------------------------------------------------
    def locate(self, pointer: tuple[Pointer, ...]) -> tuple[int, int]:
        if not pointer:
            return 0, min(3, len(self.text))
        key = self.front.keys.get(str(pointer[0]))
        return key.value if key and key.value[1] > key.value[0] else key.key if key else (0, min(3, len(self.text)))

    def named(self, pointer: tuple[Pointer, ...]) -> str:
        return ".".join(map(str, pointer))

    # -- repairs ---------------------------------------------------------------------------------------------------
    def set_field(self, key: str, text: str, message: str, kind: FixClass = "safe") -> Fix | None:
        """Replace the value of a top-level field by YAML text."""
        at = self.front.keys.get(key)
        if not at:
            return None
        start, end = at.value
        while end > start and self.text[end - 1] in "\r\n ":
            end -= 1
        return Fix(kind, message, (Edit(self, start, end, text if start != at.key[1] + 1 else f" {text}"),))

    def rename_field(self, key: str, new: str, message: str, kind: FixClass = "safe") -> Fix | None:
        at = self.front.keys.get(key)
        return Fix(kind, message, (Edit(self, *at.key, new),)) if at and new not in self.front.keys else None

    def set_tools(self, key: str, entries: list[ToolEntry], message: str, kind: FixClass = "safe") -> Fix | None:
        """Write a tool list again, in the form it had."""
        words = [e.raw for e in entries]
        if isinstance(self.data.get(key), list):
            return self.set_field(key, "[" + ", ".join(frontmatter.quote(w) if re.search(r"[:,#\[\]{}*&!|>'\"%@`]", w) else w
                                                      for w in words) + "]", message, kind)
        text = ", ".join(words)
        return self.set_field(key, frontmatter.quote(text) if re.search(r": |#|^[*&!|>'\"%@`\[{]", text) else text, message, kind)

    # -- the text --------------------------------------------------------------------------------------------------
    @property
    def body(self) -> str:
        return self.text[self.front.body:] if self.front.state in ("ok", "broken", "empty",
                                                                   "not-mapping") else self.text.lstrip("\ufeff")

    @cached_property
    def fences(self) -> list[tuple[int, int]]:
        return [(m.start(), m.end()) for m in _FENCE.finditer(self.text, self.front.body)]

    @cached_property
    def masked(self) -> str:
        """The file with the frontmatter, code and comments blanked: same length, same lines. For rules about prose."""
        text = _blank(self.text[:self.front.body]) + self.text[self.front.body:]
        for pattern in (_FENCE, _INLINE, _COMMENT):
            text = pattern.sub(lambda m: _blank(m[0]), text)
        return text

    @cached_property
    def unfenced(self) -> str:
        """The file with the frontmatter and fenced code blanked; inline code stays."""
        text = _blank(self.text[:self.front.body]) + self.text[self.front.body:]
        return _FENCE.sub(lambda m: _blank(m[0]), text)

    @cached_property
    def links(self) -> list[tuple[str, int]]:
        """Targets of the links in prose, with their offsets."""
        return list(links(self.masked))

    @cached_property
    def injections(self) -> list[tuple[str, int]]:
        """Commands that run before the model sees the text, with the offset of each."""
        if self.kind not in ("skill", "command"):
            return []
        found = [(m[2], m.start(2)) for m in _INJECTED.finditer(self.unfenced) if not m[1] or m[1].isspace()]
        return found + [(m[1].strip(), m.start(1)) for m in _INJECTED_BLOCK.finditer(self.text, self.front.body)]

    @cached_property
    def glued_injections(self) -> list[tuple[int, int]]:
        """``!`cmd` `` behind another character, which stays literal."""
        if self.kind not in ("skill", "command"):
            return []
        return [(m.start(), m.end()) for m in _INJECTED.finditer(self.unfenced) if m[1] and re.match(r"[=:\w(\[>,;/-]", m[1])]

    # -- fields ----------------------------------------------------------------------------------------------------
    def tools(self, key: str) -> list[ToolEntry]:
        return split_tools(self.data.get(key))

    @property
    def granted(self) -> list[ToolEntry]:
        return self.tools("allowed-tools")

    @cached_property
    def description(self) -> str:
        value = self.data.get("description")
        return value if isinstance(value, str) else str(value) if isinstance(value, int | float) and not isinstance(value,
                                                                                                                    bool) else ""

    def flag(self, key: str, default: bool) -> bool:
        from kernel_linter.tables import TRUE_WORDS

        value = self.data.get(key, default)
        return value if isinstance(value, bool) else str(value).lower() in TRUE_WORDS
